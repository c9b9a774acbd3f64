//! Where clients do meet: exactly one of n equal inserts wins, and n increments add up to n.

use futures_util::future::join_all;

use crate::support::{Db, Gateway, code};

const SCHEMA: &str = "create table counters (id bigint primary key, n bigint not null)";
const CLIENTS: usize = 32;

async fn one_of_equal_inserts_wins(db: Db, toml: &str) {
    db.run(SCHEMA).await;
    let gateway = Gateway::with(&db.url(), toml).await;
    for id in 0..20 {
        let rows: Vec<String> = (0..CLIENTS)
            .map(|n| format!("{{\"id\": {id}, \"n\": {n}}}"))
            .collect();
        let answers = join_all(rows.iter().map(|row| gateway.insert("counters", row))).await;
        let winners: Vec<usize> = (0..CLIENTS).filter(|n| answers[*n].0 == 201).collect();
        assert_eq!(winners.len(), 1, "{answers:?}");
        for (status, answer) in answers.iter().filter(|a| a.0 != 201) {
            assert_eq!((*status, code(answer)), (409, "23505"));
        }
        let stored = db
            .number(&format!("select n from counters where id = {id}"))
            .await;
        assert_eq!(
            stored,
            i64::try_from(winners[0]).unwrap(),
            "the row is the winner's"
        );
    }
    gateway.stop().await;
}

/// Each client adds one by compare and set: an update whose key is the id and the value that it
/// saw. However the updates are batched, each success counts once.
async fn increments_add_up(db: Db, toml: &str) {
    db.run(SCHEMA).await;
    db.run("insert into counters values (1, 0)").await;
    let gateway = Gateway::with(&db.url(), toml).await;
    let add_one = async || {
        let mut tries = 0;
        loop {
            let (_, row) = gateway
                .send("GET", "/v1/tables/counters/rows/1", None)
                .await;
            let seen = row["n"].as_i64().unwrap();
            let path = format!("/v1/tables/counters/rows/1,{seen}?key=id,n");
            let (status, answer) = gateway
                .send("PATCH", &path, Some(format!("{{\"n\": {}}}", seen + 1)))
                .await;
            assert_eq!(status, 200, "{answer}");
            match answer["rows"].as_i64() {
                Some(1) => return,
                Some(0) => tries += 1,
                other => panic!("an update of one row reports {other:?} rows"),
            }
            assert!(tries < 10_000, "somebody always wins, so everybody ends");
        }
    };
    join_all((0..CLIENTS).map(|_| add_one())).await;
    assert_eq!(
        db.number("select n from counters where id = 1").await,
        i64::try_from(CLIENTS).unwrap()
    );
    gateway.stop().await;
}

/// Operations on one key in one body happen in the order of the body.
async fn a_body_keeps_its_order_per_key(db: Db) {
    db.run(SCHEMA).await;
    let gateway = Gateway::to(&db.url()).await;
    let mut operations = Vec::new();
    for id in 0..50 {
        for operation in [
            format!(r#"{{"op": "insert", "table": "counters", "row": {{"id": {id}, "n": 1}}}}"#),
            format!(r#"{{"op": "insert", "table": "counters", "row": {{"id": {id}, "n": 2}}}}"#),
            format!(
                r#"{{"op": "update", "table": "counters", "row": {{"n": 3}}, "key": {{"id": {id}}}}}"#
            ),
            format!(r#"{{"op": "get", "table": "counters", "key": {{"id": {id}}}}}"#),
            format!(r#"{{"op": "delete", "table": "counters", "key": {{"id": {id}}}}}"#),
            format!(r#"{{"op": "insert", "table": "counters", "row": {{"id": {id}, "n": 4}}}}"#),
            format!(r#"{{"op": "upsert", "table": "counters", "row": {{"id": {id}, "n": 5}}}}"#),
        ] {
            operations.push(operation);
        }
    }
    let body = format!(r#"{{"operations": [{}]}}"#, operations.join(","));
    let (status, answer) = gateway.send("POST", "/v1/batch", Some(body)).await;
    assert!(status == 200 || status == 207, "{status} {answer}");
    assert_eq!(answer["errors"], 50);
    for results in answer["results"].as_array().unwrap().chunks(7) {
        assert_eq!(results[1]["error"]["code"], "23505");
        assert_eq!(results[3]["row"]["n"], 3);
        for done in [0, 2, 3, 4, 5, 6] {
            assert_eq!(results[done]["rows"], 1, "{results:?}");
        }
    }
    assert_eq!(
        db.number("select count(*) from counters where n = 5").await,
        50
    );
    gateway.stop().await;
}

/// A key by name that several rows may have is refused, in a batch and in a path, and nothing is
/// changed.
async fn a_key_by_name_is_a_unique_key(db: Db) {
    db.run(SCHEMA).await;
    db.run("insert into counters values (1, 7), (2, 7)").await;
    let gateway = Gateway::to(&db.url()).await;
    let batch = r#"{"operations": [
        {"op": "delete", "table": "counters", "key": {"n": 7}},
        {"op": "update", "table": "counters", "key": {"n": 7}, "row": {"n": 8}},
        {"op": "get", "table": "counters", "key": {"n": 7}},
        {"op": "delete", "table": "counters", "key": {"n": 7, "id": 9}}]}"#;
    let (status, answer) = gateway
        .send("POST", "/v1/batch", Some(batch.to_owned()))
        .await;
    assert_eq!((status, &answer["errors"]), (207, &3.into()), "{answer}");
    for result in &answer["results"].as_array().unwrap()[..3] {
        assert_eq!(code(result), "42P10");
        let message = result["error"]["message"].as_str().unwrap();
        assert!(message.contains("the unique key of counters is (id)"));
    }
    assert_eq!(answer["results"][3]["rows"], 0);
    for (method, body) in [
        ("DELETE", None),
        ("PATCH", Some("{\"n\": 8}")),
        ("GET", None),
    ] {
        let path = "/v1/tables/counters/rows/7?key=n";
        let (status, answer) = gateway.send(method, path, body.map(str::to_owned)).await;
        assert_eq!((status, code(&answer)), (422, "42P10"), "{answer}");
    }
    let kept = "select count(*) from counters where n = 7";
    assert_eq!(db.number(kept).await, 2);
    // A key that is made later counts at once.
    db.run("delete from counters where id = 2").await;
    db.run("create unique index counters_n on counters (n)")
        .await;
    let path = "/v1/tables/counters/rows/7?key=n";
    let (status, answer) = gateway.send("DELETE", path, None).await;
    assert_eq!((status, &answer["rows"]), (200, &1.into()), "{answer}");
    gateway.stop().await;
}

#[tokio::test]
async fn a_key_by_name_is_a_unique_key_on_postgres() {
    a_key_by_name_is_a_unique_key(Db::postgres().await).await;
}

#[tokio::test]
async fn a_key_by_name_is_a_unique_key_on_sqlite() {
    a_key_by_name_is_a_unique_key(Db::sqlite()).await;
}

#[tokio::test]
async fn one_of_equal_inserts_wins_on_postgres() {
    one_of_equal_inserts_wins(Db::postgres().await, "").await;
}

#[tokio::test]
async fn one_of_equal_inserts_wins_on_postgres_with_several_flights() {
    one_of_equal_inserts_wins(
        Db::postgres().await,
        "limits = { flights = 4, batch_rows = 3 }",
    )
    .await;
}

#[tokio::test]
async fn one_of_equal_inserts_wins_on_sqlite() {
    one_of_equal_inserts_wins(Db::sqlite(), "").await;
}

#[tokio::test]
async fn increments_add_up_on_postgres() {
    increments_add_up(Db::postgres().await, "").await;
}

#[tokio::test]
async fn increments_add_up_on_postgres_with_several_flights() {
    increments_add_up(
        Db::postgres().await,
        "limits = { flights = 4, batch_rows = 3 }",
    )
    .await;
}

#[tokio::test]
async fn increments_add_up_on_sqlite() {
    increments_add_up(Db::sqlite(), "").await;
}

#[tokio::test]
async fn a_body_keeps_its_order_per_key_on_postgres() {
    a_body_keeps_its_order_per_key(Db::postgres().await).await;
}

#[tokio::test]
async fn a_body_keeps_its_order_per_key_on_sqlite() {
    a_body_keeps_its_order_per_key(Db::sqlite()).await;
}
