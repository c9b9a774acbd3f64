//! Rows that the spool has acknowledged are in the database, each once.

use serde_json::{Value as Json, json};

use crate::support::{Db, Gateway, Line, spool};

const TABLES: &str = "create table readings (id int, note varchar(100));
    create table state (k int primary key, v int);";

async fn arrive_once(db: Db) {
    db.sql(TABLES);
    let directory = spool();
    let rows: Vec<_> = (0..700).map(|id| json!({"id": id, "note": "x"})).collect();
    let gateway = Gateway::start(&db.url(), directory.path());
    let (status, answer) = gateway.rows("readings", &rows[..1]).await;
    assert_eq!(status, 202, "{answer}");
    for part in rows[1..400].chunks(133) {
        let (status, answer) = gateway.rows("readings", part).await;
        assert_eq!(status, 202, "{answer}");
    }
    let (status, answer) = gateway.rows("readings?atomic=true", &rows[400..500]).await;
    assert_eq!(status, 202, "{answer}");
    for v in 0..50 {
        let upsert = [json!({"k": v % 3, "v": v})];
        let (status, answer) = gateway.rows("state?on_conflict=update", &upsert).await;
        assert_eq!(status, 202, "{answer}");
    }
    gateway.level().await;
    gateway.stop();
    // What was applied is not applied again after a start.
    let gateway = Gateway::start(&db.url(), directory.path());
    let (status, answer) = gateway.rows("readings", &rows[500..]).await;
    assert_eq!(status, 202, "{answer}");
    gateway.level().await;
    gateway.stop();
    let once: Vec<(u64, u64)> = (0..700).map(|id| (id, 1)).collect();
    assert_eq!(db.counts("readings", "id"), once);
    assert_eq!(
        db.sql("select k, v from state order by k"),
        "0|48\n1|49\n2|47"
    );
    assert_eq!(db.sql("select count(*) from windrow_rejected"), "0");
    assert_eq!(db.sql("select count(*) from windrow_progress"), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_arrive_once_in_postgresql() {
    arrive_once(Db::postgres()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_arrive_once_in_mariadb() {
    arrive_once(Db::mariadb()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_arrive_once_in_sqlite() {
    arrive_once(Db::sqlite()).await;
}

/// What one connection has written is there for what it does next, although the database gets it
/// later; another connection waits for a place.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_finds_what_it_has_written() {
    for db in [Db::postgres(), Db::sqlite()] {
        db.sql(TABLES);
        let directory = spool();
        let gateway = Gateway::start(&db.url(), directory.path());
        let (mut line, mut other) = (Line::to(&gateway).await, Line::to(&gateway).await);
        for k in 0..20 {
            let path = format!("/v1/tables/state/rows/{k}");
            let row = json!({"k": k, "v": 1});
            let (status, place, answer) = line.send("POST", "/v1/tables/state/rows", &row).await;
            assert_eq!((status, answer), (202, json!({"accepted": 1})));
            let behind = format!("{path}?after={place}");
            let (status, _, answer) = other.send("GET", &behind, &Json::Null).await;
            assert_eq!((status, &answer["v"]), (200, &json!(1)), "{answer}");
            let again = json!({"k": k + 100, "v": 1});
            line.send("POST", "/v1/tables/state/rows", &again).await;
            let path = format!("/v1/tables/state/rows/{}", k + 100);
            let (status, _, answer) = line.send("GET", &path, &Json::Null).await;
            assert_eq!((status, &answer["v"]), (200, &json!(1)), "{answer}");
            line.send(
                "POST",
                "/v1/tables/state/rows",
                &json!({"k": k + 200, "v": 1}),
            )
            .await;
            let path = format!("/v1/tables/state/rows/{}", k + 200);
            let (status, _, answer) = line.send("PATCH", &path, &json!({"v": 2})).await;
            assert_eq!((status, &answer["rows"]), (200, &json!(1)), "{answer}");
        }
        // Who asks for the database's own answer gets it.
        let taken = json!({"k": 1, "v": 1});
        let committed = "/v1/tables/state/rows?ack=commit";
        let (status, _, answer) = line.send("POST", committed, &taken).await;
        assert_eq!(status, 409, "{answer}");
        gateway.stop();
        assert_eq!(db.sql("select count(*), sum(v) from state"), "60|80");
    }
}
