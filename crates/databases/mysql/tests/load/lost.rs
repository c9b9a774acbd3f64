//! Connections that end, servers that do not allow it.

use mysql_async::prelude::Queryable as _;
use windrow_core::{FaultClass, Field, LoadFault};
use windrow_database::Driver;
use windrow_database::Options;
use windrow_mysql::Mysql;
use windrow_testkit::loads;
use windrow_testkit::mariadb::MariaDb;

use crate::support::*;
use windrow_testkit::loads::WritePortion as _;

const TABLE: &str = "create table t (id int primary key);";

/// Ends all other connections to a database.
async fn kill_all(bed: &Bed) {
    let mut conn = session(bed.database.url()).await;
    let others = "select id from information_schema.processlist where db = database() and id <> connection_id()";
    let ids: Vec<u64> = conn.query(others).await.unwrap();
    for id in ids {
        conn.query_drop(format!("kill {id}")).await.ok();
    }
    conn.disconnect().await.unwrap();
}

#[tokio::test]
async fn a_connection_that_was_killed_before_wrote_nothing() {
    let bed = Bed::new(TABLE).await;
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    kill_all(&bed).await;
    for _ in 0..2 {
        let outcome = loader.load(&texts(&[&["1"]]), None).await;
        assert!(matches!(outcome, Err(LoadFault::Again(_))), "{outcome:?}");
    }
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    let bad = texts(&[&["bad"]]);
    assert_eq!(loader.filter(&bad, None).await.unwrap().left, [0]);
    kill_all(&bed).await;
    for _ in 0..2 {
        let outcome = loader.filter(&texts(&[&["1"], &["bad"]]), None).await;
        assert!(matches!(outcome, Err(LoadFault::Again(_))), "{outcome:?}");
    }
    assert_eq!(bed.sql("select count(*) from t").trim(), "0");
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    assert_eq!(
        loader.load(&texts(&[&["1"]]), None).await.unwrap().written,
        1
    );
}

#[tokio::test]
async fn a_connection_that_is_killed_in_between_makes_no_wrong_claim() {
    let bed = Bed::new(TABLE).await;
    // A row of somebody else holds the portion up in the middle.
    let mut other = session(bed.database.url()).await;
    other.query_drop("begin").await.unwrap();
    other.query_drop("insert into t values (2)").await.unwrap();
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    let rows = texts(&[&["1"], &["2"], &["3"]]);
    let mut killer = session(bed.database.url()).await;
    let kill = async {
        let waits = "select id from information_schema.processlist where db = database() and info like 'LOAD DATA%'";
        loop {
            let waiting: Option<u64> = killer.query_first(waits).await.unwrap();
            if let Some(id) = waiting {
                killer.query_drop(format!("kill {id}")).await.unwrap();
                break;
            }
        }
    };
    let (outcome, ()) = tokio::join!(loader.load(&rows, None), kill);
    assert!(matches!(outcome, Err(LoadFault::Again(_))), "{outcome:?}");
    other.query_drop("rollback").await.unwrap();
    // Whatever the loader had written is undone when its connection is gone.
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    assert_eq!(loader.load(&rows, None).await.unwrap().written, 3);
}

#[tokio::test]
async fn a_deadlock_may_be_tried_again() {
    let bed =
        Bed::new("create table t (id int primary key); insert into t values (10), (20);").await;
    let mut other = session(bed.database.url()).await;
    other
        .query_drop("set innodb_lock_wait_timeout = 50")
        .await
        .unwrap();
    other.query_drop("begin").await.unwrap();
    other.query_drop("insert into t values (2)").await.unwrap();
    other
        .query_drop("update t set id = id + 1 where id = 20")
        .await
        .unwrap();
    let mut loader = bed.loader(&plan("t", &["id"])).await;
    let mut watcher = session(bed.database.url()).await;
    let cross = async {
        // The tables that tell who waits are renewed only where nobody asks them for a while.
        loop {
            let status: Option<(String, String, String)> = watcher
                .query_first("show engine innodb status")
                .await
                .unwrap();
            let status = status.unwrap().2;
            if status.contains("LOCK WAIT") && status.contains("LOAD DATA LOCAL") {
                break;
            }
        }
        let locks = "select * from t where id = 1 for update";
        let won = other.query_drop(locks).await.is_ok();
        other.query_drop("rollback").await.unwrap();
        won
    };
    let rows = texts(&[&["1"], &["2"]]);
    let (outcome, other_won) = tokio::join!(loader.load(&rows, None), cross);
    match outcome {
        Ok(loaded) => assert_eq!(loaded.written, 2, "{other_won}"),
        Err(LoadFault::Again(_)) => assert_eq!(bed.sql("select count(*) from t").trim(), "2"),
        Err(other) => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_that_does_not_allow_it_is_sent_an_insert() {
    let server = MariaDb::builder().set("local-infile", "0").start().unwrap();
    let url = server.create_database().unwrap();
    windrow_testkit::mariadb::sql(&url, TABLE).unwrap();
    let sink = Driver::open(&Mysql, &url, &Options::default())
        .await
        .unwrap();
    let bulk = sink.bulk().unwrap();
    let fault = bulk.loader(&ignoring("t", &["id"])).await.err().unwrap();
    assert_eq!(fault.class, FaultClass::Unsupported);
    // What can be told of the table can be told all the same.
    assert!(bulk.columns(&plan("t", &[]).table).await.unwrap().is_some());
    // Each value is the lane's, and what the lane refuses is refused.
    for of in INSERTED {
        let sql = |name: &str| {
            format!("drop table if exists {name}; create table {name} (id int, v {of});")
        };
        windrow_testkit::mariadb::sql(&url, &(sql("lane") + &sql("bulk"))).unwrap();
        let texts = [
            "",
            "1",
            "-1",
            "1.5",
            "12abc",
            "true",
            "a'b\\",
            "AP8=",
            "2020-01-02 03:04:05",
            "é",
        ];
        let fields = texts
            .iter()
            .flat_map(|text| [Field::Plain(text), Field::Text(text)]);
        let rows: Vec<Vec<Field<'_>>> = fields
            .chain([
                Field::Null,
                Field::Bool(true),
                Field::Json("[1]"),
                Field::Bytes(b"\0\xff"),
            ])
            .map(|field| vec![Field::Plain("1"), field])
            .collect();
        let told = loads::alone(&*sink, &plan("lane", &["id", "v"]), &rows).await;
        let mut loader = bulk.loader(&plan("bulk", &["id", "v"])).await.unwrap();
        for (row, fault) in rows.iter().zip(&told) {
            let loaded = loader.load(&portion(std::slice::from_ref(row)), None).await;
            assert_eq!(loaded.is_ok(), fault.is_none(), "{of}: {row:?}: {loaded:?}");
        }
        // Together they are refused as a whole.
        if told.iter().any(Option::is_some) {
            assert!(loader.load(&portion(&rows), None).await.is_err(), "{of}");
        }
        let differ = "select count(*) from (select hex(v) h, count(*) n from lane group by 1) l join \
                      (select hex(v) h, count(*) n from bulk group by 1) b on l.h <=> b.h and l.n = b.n";
        let same: usize = windrow_testkit::mariadb::sql(&url, differ)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        let all = "select count(distinct coalesce(hex(v), '-')) from lane";
        let all: usize = windrow_testkit::mariadb::sql(&url, all)
            .unwrap()
            .trim()
            .parse()
            .unwrap();
        assert_eq!(same, all, "{of}");
    }
}

/// Types of a column that an INSERT fills.
const INSERTED: [&str; 13] = [
    "int",
    "tinyint(1)",
    "decimal(5,2)",
    "double",
    "bit(8)",
    "date",
    "datetime(6)",
    "varchar(30)",
    "char(3) not null",
    "text character set latin1",
    "json",
    "varbinary(30)",
    "enum('a','1')",
];

#[tokio::test]
async fn an_insert_is_cut_into_statements_that_fit() {
    let server = MariaDb::builder()
        .set("local-infile", "0")
        .set("max-allowed-packet", "65536")
        .start()
        .unwrap();
    let url = server.create_database().unwrap();
    windrow_testkit::mariadb::sql(&url, "create table t (id int primary key, v text)").unwrap();
    let sink = Driver::open(&Mysql, &url, &Options::default())
        .await
        .unwrap();
    let bulk = sink.bulk().unwrap();
    let mut loader = bulk.loader(&plan("t", &["id", "v"])).await.unwrap();
    let (filler, ids) = ("x'".repeat(40), (0..3000).map(|id| id.to_string()));
    let ids: Vec<String> = ids.collect();
    let rows: Vec<Vec<Field<'_>>> = ids
        .iter()
        .map(|id| vec![Field::Plain(id), Field::Text(&filler)])
        .collect();
    let loaded = loader.load(&portion(&rows), None).await.unwrap();
    assert_eq!(loaded.written, 3000);
    // A row at the end that is refused takes all statements back.
    assert!(loader.load(&portion(&rows[2999..]), None).await.is_err());
    let count = windrow_testkit::mariadb::sql(&url, "select count(*), sum(length(v)) from t");
    assert_eq!(count.unwrap().trim(), "3000|240000");
}
