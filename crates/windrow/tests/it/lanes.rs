//! What operators are told of tables: what their writes share, what stands in the way of more, and
//! what can be done.

use serde_json::{Value as Json, json};

use crate::support::{Db, Gateway};

const CATALOG: &str = "
    create table plain (id int primary key, v text);
    create table keyless (v int);
    create table exact (id numeric primary key, v int);
    create table ring (id int primary key, next int references ring);
    create table late (id int primary key, v int unique deferrable initially deferred);
    create table told (id int primary key, v int);
    create function tell() returns trigger language plpgsql as $$ begin
        raise notice 'got %', new.v; return new; end $$;
    create trigger tells before update on told for each row execute function tell();
    create table audited (id int primary key, v int);
    create table audit (id int);
    create function audit() returns trigger language plpgsql as $$ begin
        insert into audit values (new.id); return null; end $$;
    create trigger audits after insert on audited for each row execute function audit();
    create table stamped (id int primary key, x bigint default txid_current());
    create table ruled (id int primary key, v int);
    create rule never as on delete to ruled do instead nothing;
    create view seen as select id, v from plain";

/// What `/v1/lanes` says of a table, an entry for each of its levels.
async fn entries(gateway: &Gateway, table: &str) -> Vec<Json> {
    let (status, lanes) = gateway.send("GET", "/v1/lanes", None).await;
    assert_eq!(status, 200, "{lanes}");
    let tables = lanes["tables"].as_array().unwrap().iter();
    tables.filter(|t| t["table"] == *table).cloned().collect()
}

#[tokio::test]
async fn tables_of_postgresql_are_told_with_what_stands_in_the_way() {
    let db = Db::postgres().await;
    db.run(CATALOG).await;
    let gateway = Gateway::to(&db.url()).await;
    assert_eq!(entries(&gateway, "plain").await, Vec::<Json>::new());
    for (table, row) in [
        ("plain", r#"{"id": 1}"#),
        ("keyless", r#"{"v": 1}"#),
        ("exact", r#"{"id": 1}"#),
        ("ring", r#"{"id": 1}"#),
        ("late", r#"{"id": 1}"#),
        ("told", r#"{"id": 1}"#),
        ("audited", r#"{"id": 1}"#),
        ("stamped", r#"{"id": 1}"#),
        ("ruled", r#"{"id": 1}"#),
        ("seen", r#"{"id": 2}"#),
    ] {
        let (status, answer) = gateway.insert(table, row).await;
        assert_eq!(status, 201, "{table}: {answer}");
    }
    let all = json!(["insert", "update", "delete", "get"]);
    let entry = async |table: &str, op: &str| {
        let entries = entries(&gateway, table).await;
        let of_op = |entry: &&Json| entry["writes"].as_array().unwrap().contains(&op.into());
        entries.iter().find(of_op).cloned().unwrap()
    };
    let mut plain = entry("plain", "insert").await;
    let reason = plain["transaction_reason"].take();
    assert_eq!(
        reason,
        "in a transaction: a unique key that is not generated"
    );
    assert_ne!(plain["transaction_advice"].take(), Json::Null);
    assert_eq!(
        plain,
        json!({
            "table": "plain", "writes": all, "level": "fused", "kept_in_transactions": false,
            "transaction_reason": null, "transaction_advice": null,
        })
    );
    for (table, op, level, reason, object) in [
        ("keyless", "insert", "fused", "", ""),
        (
            "keyless",
            "update",
            "grouped",
            "no unique key",
            "table keyless",
        ),
        ("exact", "insert", "fused", "", ""),
        (
            "exact",
            "delete",
            "grouped",
            "a key whose equal values may be spelled in several ways",
            "column id of table exact",
        ),
        (
            "ring",
            "insert",
            "grouped",
            "a reference to itself",
            "table ring",
        ),
        (
            "late",
            "insert",
            "apart",
            "a deferred constraint",
            "late_v_key",
        ),
        ("told", "insert", "fused", "", ""),
        (
            "told",
            "update",
            "grouped",
            "a trigger that may raise something",
            "tells on public.told",
        ),
        ("told", "delete", "fused", "", ""),
        (
            "audited",
            "insert",
            "apart",
            "a trigger that is not proven harmless",
            "audits on public.audited",
        ),
        ("audited", "update", "fused", "", ""),
        (
            "stamped",
            "insert",
            "apart",
            "a function of the session or transaction",
            "txid_current",
        ),
        ("stamped", "update", "fused", "", ""),
        (
            "ruled",
            "delete",
            "apart",
            "a table with rules",
            "never on public.ruled",
        ),
        ("seen", "insert", "apart", "a view", "view public.seen"),
    ] {
        let entry = entry(table, op).await;
        let text = |name: &str| entry[name].as_str().unwrap_or("").to_owned();
        assert_eq!(
            (&*text("level"), &*text("reason")),
            (level, reason),
            "{entry}"
        );
        assert!(text("object").contains(object), "{entry}");
    }
    let audited = entry("audited", "insert").await;
    let advice = audited["advice"].as_str().unwrap();
    assert!(advice.contains("trusted_functions"), "{audited}");
    // What has changed is told anew with the next write.
    db.run("drop trigger audits on audited").await;
    let (status, _) = gateway.insert("audited", r#"{"id": 2}"#).await;
    assert_eq!(status, 201);
    gateway.stop().await;
}

#[tokio::test]
async fn what_an_operator_answers_for_is_told_as_joined() {
    let db = Db::postgres().await;
    db.run(CATALOG).await;
    let trusted = r#"trusted_functions = ["public.audit"]"#;
    let gateway = Gateway::with(&db.url(), &format!("[database]\n{trusted}")).await;
    gateway.insert("audited", r#"{"id": 1}"#).await;
    let told = entries(&gateway, "audited").await;
    assert_eq!(told[0]["level"], "grouped", "{told:?}");
    gateway.stop().await;
}

#[tokio::test]
async fn tables_of_sqlite_and_mariadb_are_told_too() {
    let db = Db::sqlite();
    db.run(
        "create table audit (id int); create table t (id integer primary key, v int);
        create trigger audits after insert on t begin insert into audit values (new.id); end",
    )
    .await;
    let gateway = Gateway::to(&db.url()).await;
    gateway.insert("t", r#"{"id": 1}"#).await;
    let told = entries(&gateway, "t").await;
    assert_eq!(told.len(), 1, "{told:?}");
    gateway.stop().await;
    let database = tokio::task::spawn_blocking(|| windrow_testkit::mariadb::shared().unwrap());
    let database = database.await.unwrap();
    database
        .exec("create table t (id int primary key, v int); create trigger counts before insert on t for each row set @n = 1")
        .unwrap();
    let gateway = Gateway::to(database.url()).await;
    gateway.insert("t", r#"{"id": 1}"#).await;
    let told = entries(&gateway, "t").await;
    assert_eq!(
        (&told[0]["level"], &told[1]["level"]),
        (&json!("apart"), &json!("fused")),
        "{told:?}"
    );
    assert!(
        told[0]["object"]
            .as_str()
            .unwrap()
            .contains("trigger counts"),
        "{told:?}"
    );
    gateway.stop().await;
}
