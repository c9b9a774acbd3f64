//! Into databases without transactions: a row that is written again is the same row.

use std::sync::atomic::{AtomicU32, Ordering};

use windrow::{Statement, Value, Writer};
use windrow_testkit::arangodb::ArangoDb;
use windrow_testkit::cratedb::CrateDb;

use windrow_testkit::command::CommandOutput;

use crate::support::{Db, HELD, hold, let_go, move_rows, number, start, until};

/// A CrateDB: the stand-in, or a schema of the test's own on the cluster that
/// `WINDROW_TEST_CRATEDB` names.
struct Crate {
    url: String,
    stand_in: Option<CrateDb>,
    cluster: Option<(String, String)>,
}

impl Crate {
    async fn start() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let Ok(base) = std::env::var("WINDROW_TEST_CRATEDB") else {
            let stand_in = CrateDb::start(4).await.unwrap();
            return Self {
                url: stand_in.url(),
                stand_in: Some(stand_in),
                cluster: None,
            };
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let schema = format!("windrow_move_{}_{number}", std::process::id());
        let base = base.trim_end_matches('/').to_owned();
        Self {
            url: format!("{base}/{schema}"),
            stand_in: None,
            cluster: Some((base.replace("cratedb://", "http://"), schema)),
        }
    }

    /// What a cluster says, which is left as it was.
    async fn end(self, tables: &[&str]) -> Option<u64> {
        let (base, schema) = self.cluster?;
        let http = reqwest::Client::new();
        let ask = async |sql: String| {
            let body = serde_json::json!({ "stmt": sql }).to_string();
            let asked = http
                .post(format!("{base}/_sql"))
                .header("content-type", "application/json")
                .body(body);
            asked.send().await.unwrap().text().await.unwrap()
        };
        let table = tables.first()?;
        ask(format!("refresh table {schema}.{table}")).await;
        let told = ask(format!("select count(*) from {schema}.{table}")).await;
        for table in tables {
            ask(format!("drop table {schema}.{table}")).await;
        }
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        told.pointer("/rows/0/0")
            .and_then(serde_json::Value::as_u64)
    }
}

async fn moved(from: &Db, destination: &str, more: &[&str]) -> CommandOutput {
    tokio::task::block_in_place(|| move_rows(from, destination, more))
}

fn pending(from: &Db, rows: usize) {
    from.sql(&format!(
        "create table pending (id int primary key, v text);
        insert into pending select i, 'v' || i from generate_series(1, {rows}) i"
    ));
}

/// Reads rows by their keys: the values of `v`.
async fn read(url: &str, table: &str, keys: impl Iterator<Item = Value>) -> Vec<Option<Value>> {
    let writer = Writer::open(url).await.unwrap();
    let get = Statement::get(table).unwrap().returning(["v"]).unwrap();
    let outcomes = writer.table(get).write_all(keys.map(|key| [key])).await;
    writer.close().await;
    let value =
        |outcome: windrow::Outcome| outcome.unwrap().returned?.rows.first()?.first().cloned();
    outcomes.into_iter().map(value).collect()
}

fn expected(rows: i64) -> Vec<Option<Value>> {
    (1..=rows)
        .map(|i| Some(Value::text(format!("v{i}"))))
        .collect()
}

/// The source does not let go of its rows once they are written, as if the mover had died there.
async fn written_twice(url: &str, text_keys: bool) {
    let from = tokio::task::block_in_place(Db::postgres);
    pending(&from, 300);
    from.sql("create function stay() returns trigger language plpgsql as $$ begin raise exception sqlstate '57014' using message = 'not now'; end $$;
        create trigger stay before delete on pending for each row execute function stay()");
    let more = [
        "--to",
        url,
        "--create",
        "--batch",
        "100",
        "--delete-effects",
    ];
    moved(&from, "final", &more).await.ends(1);
    assert_eq!(from.count("pending"), 300);
    from.sql("drop trigger stay on pending");
    let told = moved(&from, "final", &more).await.ends(0);
    assert!(told.err.contains("300 rows moved"), "{}", told.err);
    assert_eq!(from.count("pending"), 0);
    let key = |i: i64| match text_keys {
        true => Value::text(i.to_string()),
        false => Value::Int(i),
    };
    assert_eq!(read(url, "final", (1..=300).map(key)).await, expected(300));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_to_cratedb_before_a_death_is_there_once() {
    let there = Crate::start().await;
    written_twice(&there.url, false).await;
    if let Some(stand_in) = &there.stand_in {
        let requests = stand_in.requests();
        let inserts: Vec<_> = requests
            .iter()
            .filter(|r| r.body.contains("INSERT INTO"))
            .collect();
        assert!(
            !inserts.is_empty()
                && inserts
                    .iter()
                    .all(|r| r.body.contains("ON CONFLICT (\\\"id\\\") DO UPDATE"))
        );
    }
    assert!(matches!(there.end(&["final"]).await, None | Some(300)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_to_arangodb_before_a_death_is_there_once() {
    let there = ArangoDb::start().await.unwrap();
    written_twice(&there.url(), true).await;
    let requests = there.requests();
    let inserts: Vec<_> = requests
        .iter()
        .filter(|r| r.target.contains("_api/document/final") && r.method == "POST")
        .collect();
    assert!(
        !inserts.is_empty()
            && inserts.iter().all(
                |r| r.target.contains("overwriteMode=update") && r.body.contains("\"_key\":\"")
            )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_keeps_its_key_whatever_key_the_move_is_asked_for() {
    let (there, from) = (ArangoDb::start().await.unwrap(), Db::sqlite());
    let url = there.url();
    from.sql(
        "create table pending (id integer primary key, v text not null unique);
        insert into pending values (1, 'v1'), (2, 'v2')",
    );
    hold(&from);
    let more = ["--to", &*url, "--create", HELD];
    let by_v = [&more[..], &["--key", "v"]].concat();
    moved(&from, "final", &by_v).await.ends(1);
    let_go(&from);
    moved(&from, "final", &more).await.ends(0);
    assert_eq!(from.count("pending"), 0);
    let keys = (1..=2).map(|id: i64| Value::text(id.to_string()));
    assert_eq!(read(&url, "final", keys).await, expected(2));
    let others = ["v1", "v2"].map(Value::text);
    assert_eq!(read(&url, "final", others.into_iter()).await, [None, None]);
}

/// Movers that are killed in turn, or all at once.
async fn killed(url: &str, text_keys: bool) {
    let rounds = number("WINDROW_TEST_KILLS", 5);
    let rows = 100 * rounds;
    let from = tokio::task::block_in_place(Db::postgres);
    pending(&from, rows);
    let more = ["--to", url, "--create", "--batch", "10", "--jobs", "2"];
    tokio::task::block_in_place(|| {
        for round in 0..rounds {
            let movers = [(); 2].map(|()| start(&from, "final", &more));
            let goal = from.count("pending").saturating_sub(1 + (round * 37) % 50);
            until("rows go", || from.count("pending") <= goal);
            for mover in movers {
                mover.kill9();
            }
        }
    });
    moved(&from, "final", &more).await.ends(0);
    assert_eq!(from.count("pending"), 0);
    assert_eq!(from.count("windrow_rejected"), 0);
    let key = |i: i64| match text_keys {
        true => Value::text(i.to_string()),
        false => Value::Int(i),
    };
    let rows = i64::try_from(rows).unwrap();
    assert_eq!(
        read(url, "final", (1..=rows).map(key)).await,
        expected(rows)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_movers_to_cratedb_lose_nothing() {
    let there = Crate::start().await;
    killed(&there.url, false).await;
    there.end(&["final"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_movers_to_arangodb_lose_nothing() {
    let there = ArangoDb::start().await.unwrap();
    killed(&there.url(), true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_that_tell_rows_apart_otherwise_are_refused() {
    let there = Crate::start().await;
    // By another column than the source's key: rows would take each other's place.
    let writer = Writer::builder(&there.url)
        .create_tables(true)
        .open()
        .await
        .unwrap();
    let other = Statement::insert("final", ["v", "id"])
        .unwrap()
        .key(["v"])
        .unwrap();
    writer
        .table(other)
        .write(["x".into(), 0.into()])
        .await
        .unwrap();
    writer.close().await;
    let from = tokio::task::block_in_place(Db::mariadb);
    from.sql("create table pending (id int primary key, v varchar(20) not null unique); insert into pending values (1, 'a'), (2, 'b')");
    let told = moved(&from, "final", &["--to", &there.url]).await.ends(1);
    assert!(
        told.err
            .contains("the key (id) of table doc.final is not the primary key")
            && told.err.contains("name the table's own by --key"),
        "{}",
        told.err
    );
    assert_eq!(from.count("pending"), 2);
    moved(&from, "final", &["--to", &there.url, "--key", "v"])
        .await
        .ends(0);
    assert_eq!(from.count("pending"), 0);
    there.end(&["final"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_have_keys_of_their_own_or_those_of_their_rows() {
    let there = ArangoDb::start().await.unwrap();
    let (url, from) = (there.url(), Db::sqlite());
    from.sql(
        "create table pending (device text, n int, v text, primary key (device, n));
        insert into pending values ('a', 1, 'x'), ('a', 2, 'y'), ('b', 1, 'z')",
    );
    moved(&from, "{device}s", &["--to", &url, "--create"])
        .await
        .ends(0);
    let requests = there.requests();
    let keys = requests
        .iter()
        .flat_map(|r| r.body.split("\"_key\":\"").skip(1));
    let mut keys: Vec<&str> = keys.filter_map(|rest| rest.split('"').next()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert!(
        keys.len() == 3 && keys.iter().all(|key| key.len() == 64),
        "{keys:?}"
    );
    // A column that is called so is the key.
    from.sql("drop table pending; create table pending (_key text primary key not null, v text); insert into pending values ('one', 'v1')");
    moved(&from, "final", &["--to", &url, "--create"])
        .await
        .ends(0);
    assert_eq!(
        read(&url, "final", ["one".into()].into_iter()).await,
        expected(1)
    );
    for (columns, text) in [
        (
            "id int primary key, _key text",
            "does not identify its rows",
        ),
        ("id int primary key, _id text", "_id of its own"),
    ] {
        from.sql(&format!(
            "drop table pending; create table pending ({columns})"
        ));
        let told = moved(&from, "final", &["--to", &url]).await.ends(1);
        assert!(told.err.contains(text), "{}", told.err);
    }
}
