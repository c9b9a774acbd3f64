//! The library: the same lanes and sinks in process.

use futures_util::StreamExt;
use futures_util::future::join_all;
use futures_util::stream;
use windrow::{FaultClass, OnConflict, Statement, Value, Writer};

use crate::support::Db;

async fn both() -> [Db; 2] {
    let both = [Db::postgres().await, Db::sqlite()];
    for db in &both {
        db.run("create table readings (id bigint primary key, celsius numeric, note text)")
            .await;
    }
    both
}

#[tokio::test]
async fn concurrent_writes_have_an_outcome_each() {
    for db in both().await {
        let writer = Writer::open(db.url()).await.unwrap();
        let table = writer.insert("readings", ["id", "celsius"]).unwrap();
        // Every id is written twice: one of the two wins.
        let write = |n: i64| table.write([(n / 2).into(), 1.5.into()]);
        let outcomes = join_all((0..400).map(write)).await;
        for pair in outcomes.chunks(2) {
            assert_eq!(pair.iter().filter(|o| o.is_ok()).count(), 1);
            let fault = pair.iter().find_map(|o| o.as_ref().err()).unwrap();
            assert_eq!((fault.class, &*fault.code), (FaultClass::Unique, "23505"));
        }
        writer.close().await;
        assert_eq!(db.number("select count(*) from readings").await, 200);
    }
}

#[tokio::test]
async fn many_rows_have_a_status_each_in_order() {
    for db in both().await {
        let writer = Writer::builder(db.url())
            .rows_per_batch(700)
            .memory(1 << 20)
            .open()
            .await
            .unwrap();
        let table = writer.insert("readings", ["id", "celsius"]).unwrap();
        let rows = (0..20_000i64).map(|n| {
            [
                if n % 1000 == 999 {
                    Value::Null
                } else {
                    n.into()
                },
                n.into(),
            ]
        });
        let statuses = table.write_all(rows).await;
        assert_eq!(statuses.len(), 20_000);
        // An integer primary key of SQLite takes NULL for "the next one"; PostgreSQL refuses it.
        if matches!(db, Db::Postgres { .. }) {
            for (n, status) in statuses.iter().enumerate() {
                assert_eq!(status.is_err(), n % 1000 == 999, "row {n}: {status:?}");
            }
            assert_eq!(db.number("select count(*) from readings").await, 19_980);
        }
        writer.close().await;
    }
}

#[tokio::test]
async fn a_stream_is_read_as_its_statuses_are_read() {
    let db = Db::sqlite();
    db.run("create table readings (id integer primary key)")
        .await;
    let writer = Writer::open(db.url()).await.unwrap();
    let table = writer.insert("readings", ["id"]).unwrap();
    let pulled = std::cell::Cell::new(0u64);
    // A source without an end: only as much of it is pulled as is asked for, and some more.
    let rows = stream::iter(0i64..)
        .inspect(|_| pulled.set(pulled.get() + 1))
        .map(|n| [n.into()]);
    let statuses: Vec<_> = table.write_stream(rows).take(5000).collect().await;
    assert!(statuses.iter().all(Result::is_ok));
    assert!(
        pulled.get() < 5000 + 10_000,
        "{} rows were pulled",
        pulled.get()
    );
    writer.close().await;
}

#[tokio::test]
async fn statements_of_every_kind() {
    for db in both().await {
        let writer = Writer::open(db.url()).await.unwrap();
        let upsert = Statement::insert("readings", ["id", "note"])
            .unwrap()
            .on_conflict(OnConflict::Update);
        let upsert = writer.table(upsert.returning(["id", "note"]).unwrap());
        let outcome = upsert.write([1.into(), "a".into()]).await.unwrap();
        let returned = outcome.returned.unwrap();
        assert_eq!(returned.rows, [[Value::Int(1), "a".into()].into()]);
        upsert.write([1.into(), "b".into()]).await.unwrap();
        let ignore = Statement::insert("readings", ["id"])
            .unwrap()
            .on_conflict(OnConflict::Ignore);
        assert_eq!(
            writer.table(ignore).write([1.into()]).await.unwrap().rows,
            0
        );
        let update = writer.table(Statement::update("readings", ["celsius"]).unwrap());
        assert_eq!(update.write([2.into(), 1.into()]).await.unwrap().rows, 1);
        assert_eq!(update.write([2.into(), 99.into()]).await.unwrap().rows, 0);
        let get = writer.table(Statement::get("readings").unwrap());
        let got = get.write([1.into()]).await.unwrap().returned.unwrap();
        assert_eq!(got.rows[0][2], "b".into());
        let delete = writer.table(Statement::delete("readings").unwrap());
        assert_eq!(delete.write([1.into()]).await.unwrap().rows, 1);
        assert_eq!(delete.write([1.into()]).await.unwrap().rows, 0);
        writer.close().await;
    }
}

#[tokio::test]
async fn rows_that_do_not_fit_their_statement_are_told_so() {
    let db = Db::sqlite();
    db.run("create table readings (id integer primary key, note text)")
        .await;
    let writer = Writer::open(db.url()).await.unwrap();
    let table = writer.insert("readings", ["id", "note"]).unwrap();
    let rows = [
        vec![1.into(), "a".into()],
        vec![2.into()],
        vec![3.into(), "c".into()],
    ];
    let statuses = table.write_all(rows).await;
    assert!(statuses[0].is_ok() && statuses[2].is_ok());
    assert_eq!(statuses[1].as_ref().unwrap_err().class, FaultClass::Invalid);
    writer.close().await;
}

#[tokio::test]
async fn a_closed_writer_says_so() {
    let db = Db::sqlite();
    let writer = Writer::open(db.url()).await.unwrap();
    let table = writer.insert("readings", ["id"]).unwrap();
    writer.close().await;
    assert_eq!(
        table.write([1.into()]).await.unwrap_err().class,
        FaultClass::Cancelled
    );
}

#[tokio::test]
async fn urls_that_name_nothing_are_refused_without_repeating_them() {
    for url in [
        "oracle://u:secret@h/d",
        "secret",
        "",
        "postgres://u:secret@h:notaport/d",
    ] {
        let fault = Writer::open(url).await.unwrap_err();
        assert_eq!(fault.class, FaultClass::Invalid, "{url}");
        assert!(!fault.to_string().contains("secret"), "{fault}");
    }
}
