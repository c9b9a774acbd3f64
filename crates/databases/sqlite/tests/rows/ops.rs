//! Every operation, and the keys it works by.

use windrow_core::{FaultClass, Value};

use crate::support::*;

const PAIRS: &str = "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, n INTEGER DEFAULT 7);
     CREATE TABLE pair (v TEXT, b TEXT, a INTEGER, PRIMARY KEY (a, b));
     CREATE TABLE keyless (a INTEGER, b TEXT, UNIQUE (b));";

#[tokio::test]
async fn insert_counts_and_gives_back() {
    let mut db = Db::new(PAIRS).await;
    let done = db
        .one(
            insert("t", &["name"])
                .returning(&["id", "n"])
                .write(["a".into()]),
        )
        .await
        .unwrap();
    assert_eq!(
        (done.rows, returned(&done)),
        (1, vec![vec![1.into(), 7.into()]])
    );
    let names = &done.returned.as_ref().unwrap().columns;
    assert_eq!(names.iter().map(|n| &**n).collect::<Vec<_>>(), ["id", "n"]);
    // No columns at all: the defaults.
    let done = db.one(insert("t", &[]).all().write([])).await.unwrap();
    assert_eq!(returned(&done), vec![vec![2.into(), Value::Null, 7.into()]]);
}

#[tokio::test]
async fn ignore_reports_no_row() {
    let mut db = Db::new(PAIRS).await;
    let by_any = insert("t", &["id", "name"]).ignore();
    let units = [
        by_any.unit([1.into(), "a".into()]),
        by_any.unit([1.into(), "b".into()]),
    ];
    assert_eq!(brief(&db.outcomes(&units).await), ["[1]", "[0]"]);
    let done = db
        .one(by_any.all().write([1.into(), "c".into()]))
        .await
        .unwrap();
    assert_eq!((done.rows, returned(&done).len()), (0, 0));
    // Without a primary key any conflict counts; with a key named, that one alone.
    let keyless = insert("keyless", &["a", "b"]).ignore();
    let other = keyless.clone().key(&["b"]);
    let units = [
        keyless.unit([1.into(), "x".into()]),
        keyless.unit([2.into(), "x".into()]),
        other.unit([3.into(), "x".into()]),
    ];
    assert_eq!(brief(&db.outcomes(&units).await), ["[1]", "[0]", "[0]"]);
    assert_eq!(db.rows("SELECT * FROM keyless"), ["1|'x'"]);
    let named = insert("t", &["id", "name"]).ignore().key(&["name"]);
    let fault = db
        .one(named.write([9.into(), "x".into()]))
        .await
        .unwrap_err();
    assert_eq!((fault.class, &*fault.code), (FaultClass::NoColumn, "42P10"));
}

#[tokio::test]
async fn upsert_changes_what_is_named() {
    let mut db = Db::new(PAIRS).await;
    let upsert = insert("t", &["id", "name"]).upsert();
    let units = [
        upsert.unit([1.into(), "a".into()]),
        upsert.unit([1.into(), "b".into()]),
        insert("t", &["id"]).upsert().unit([1.into()]),
        insert("pair", &["v", "a", "b"])
            .upsert()
            .unit(["x".into(), 1.into(), "k".into()]),
        insert("pair", &["v", "a", "b"])
            .upsert()
            .key(&["b", "a"])
            .unit(["y".into(), 1.into(), "k".into()]),
        insert("keyless", &["a", "b"])
            .upsert()
            .unit([1.into(), "k".into()]),
    ];
    let outcomes = db.outcomes(&units).await;
    assert_eq!(
        brief(&outcomes),
        ["[1]", "[1]", "[1]", "[1]", "[1]", "22023@0"]
    );
    let fault = &outcomes[5].as_ref().unwrap_err().fault;
    assert!(fault.message.contains("keyless has no primary key"));
    assert_eq!(db.rows("SELECT * FROM t"), ["1|'b'|7"]);
    assert_eq!(db.rows("SELECT v FROM pair"), ["'y'"]);
}

#[tokio::test]
async fn update_delete_and_get_find_their_row() {
    let mut db = Db::new(PAIRS).await;
    db.look()
        .execute_batch(
            "INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2);
             INSERT INTO pair VALUES ('v', 'x', 1);",
        )
        .unwrap();
    let units = [
        update("t", &["name"]).unit(["z".into(), 2.into()]),
        update("t", &["name"]).unit(["z".into(), 3.into()]),
        update("t", &["name"]).unit(["z".into(), Value::Null]),
        update("t", &[]).unit([1.into()]),
        update("t", &[]).unit([9.into()]),
        update("t", &["id"]).unit([5.into(), 2.into()]),
        get("t").unit([5.into()]),
        get("pair").unit([1.into(), "x".into()]),
        get("pair").unit(["x".into(), 1.into()]),
        delete("t").unit([1.into()]),
        delete("t").unit([1.into()]),
        delete("t")
            .key(&["name", "id"])
            .returning(&["id"])
            .unit(["z".into(), 5.into()]),
    ];
    let outcomes = db.outcomes(&units).await;
    assert_eq!(
        brief(&outcomes),
        [
            "[1]", "[0]", "[0]", "[1]", "[0]", "[1]", "[1]", "[1]", "[0]", "[1]", "[0]", "[1]"
        ]
    );
    let gave = |i: usize| returned(&outcomes[i].as_ref().unwrap()[0]);
    assert_eq!(gave(6), vec![vec![5.into(), "z".into(), 2.into()]]);
    assert_eq!(gave(7), vec![vec!["v".into(), "x".into(), 1.into()]]);
    assert_eq!(gave(11), vec![vec![5.into()]]);
    assert_eq!(db.rows("SELECT * FROM t"), Vec::<String>::new());
}

#[tokio::test]
async fn keys_that_make_no_sense_are_named() {
    let mut db = Db::new(PAIRS).await;
    let fault = db.one(get("pair").write([1.into()])).await.unwrap_err();
    assert_eq!(fault.class, FaultClass::Invalid);
    assert!(
        fault
            .message
            .contains("(a, b): 2 values are needed, 1 given")
    );
    let fault = db
        .one(delete("keyless").write([1.into()]))
        .await
        .unwrap_err();
    assert!(fault.message.contains("no primary key"), "{fault}");
    let fault = db
        .one(get("t").key(&["nope"]).write([1.into()]))
        .await
        .unwrap_err();
    assert_eq!(
        (fault.class, fault.column()),
        (FaultClass::NoColumn, Some("nope"))
    );
    let fault = db
        .one(insert("t", &["id", "ID"]).write([1.into(), 2.into()]))
        .await
        .unwrap_err();
    assert_eq!(&*fault.code, "42701");
    let fault = db.one(insert("t", &["id"]).write([])).await.unwrap_err();
    assert!(fault.message.contains("0 values for 1 columns"), "{fault}");
}

#[tokio::test]
async fn text_from_a_url_finds_keys_of_every_type() {
    let mut db = Db::new(
        "CREATE TABLE i (k INTEGER PRIMARY KEY); INSERT INTO i VALUES (5);
         CREATE TABLE r (k REAL PRIMARY KEY); INSERT INTO r VALUES (0.1);
         CREATE TABLE b (k BOOLEAN PRIMARY KEY); INSERT INTO b VALUES (1);
         CREATE TABLE x (k BLOB PRIMARY KEY); INSERT INTO x VALUES (x'6869');
         CREATE TABLE s (k TEXT PRIMARY KEY); INSERT INTO s VALUES ('5');",
    )
    .await;
    for (table, key) in [
        ("i", "5".into()),
        ("r", "0.1".into()),
        ("b", "true".into()),
        ("x", "aGk=".into()),
        ("s", "5".into()),
        ("main.s", "5".into()),
    ] {
        let outcomes = db.outcomes(&[get(table).spelled([key])]).await;
        assert_eq!(brief(&outcomes), ["[1]"], "{table}");
    }
    for (table, key) in [("b", true.into()), ("s", Value::Int(5))] {
        let done = db.one(get(table).write([key])).await.unwrap();
        assert_eq!(done.rows, 1, "{table}");
    }
}

#[tokio::test]
async fn names_are_never_sql() {
    let name = "x\"; DROP TABLE t; --";
    let mut db = Db::new(PAIRS).await;
    let quoted = name.replace('"', "\"\"");
    db.look()
        .execute_batch(&format!(
            "CREATE TABLE \"{quoted}\" (\"{quoted}\" TEXT PRIMARY KEY)"
        ))
        .unwrap();
    let table = format!("\"{quoted}\"");
    let done = db
        .one(
            insert(&table, &[name])
                .upsert()
                .returning(&[name])
                .write(["v".into()]),
        )
        .await
        .unwrap();
    assert_eq!(returned(&done), vec![vec!["v".into()]]);
    assert_eq!(
        db.one(get(&table).write(["v".into()])).await.unwrap().rows,
        1
    );
    // A name that is no column never becomes a string, as SQLite would have it.
    let fault = db
        .one(insert("t", &["id"]).returning(&["nope"]).write([1.into()]))
        .await
        .unwrap_err();
    assert_eq!(fault.class, FaultClass::NoColumn);
    assert_eq!(db.rows("SELECT count(*) FROM t"), ["0"]);
}

#[tokio::test]
async fn views_with_triggers_take_rows() {
    let mut db = Db::new(
        "CREATE TABLE base (a INTEGER PRIMARY KEY, b TEXT);
         CREATE VIEW v AS SELECT a, b FROM base;
         CREATE TRIGGER into_v INSTEAD OF INSERT ON v BEGIN INSERT INTO base VALUES (new.a, new.b); END;
         CREATE VIRTUAL TABLE words USING fts5(b);
         CREATE TRIGGER index_words AFTER INSERT ON base BEGIN INSERT INTO words VALUES (new.b); END;",
    )
    .await;
    assert!(
        db.one(insert("v", &["a", "b"]).write([1.into(), "hay".into()]))
            .await
            .is_ok()
    );
    assert!(
        db.one(insert("words", &["b"]).write(["straw".into()]))
            .await
            .is_ok()
    );
    assert_eq!(db.rows("SELECT a FROM base"), ["1"]);
    assert_eq!(
        db.rows("SELECT b FROM words WHERE words MATCH 'hay OR straw' ORDER BY b"),
        ["'hay'", "'straw'"]
    );
}
