//! Databases that are spoken to over HTTP, from many tasks and through a lane, against their
//! stand-ins.

#![expect(clippy::unwrap_used, reason = "a test may end by any of these")]

use futures_util::future::join_all;
use windrow::{Fault, Writer};
use windrow_testkit::arangodb::ArangoDb;
use windrow_testkit::cratedb::CrateDb;
use windrow_testkit::web::{Mishap, Reply};

/// Tasks that write ten rows each; the first row of each is sent twice.
const TASKS: i64 = 100;

/// Writes from all tasks at once; how many rows were written, and how many were there already.
async fn write(writer: &Writer, key: &str) -> (usize, usize) {
    let rows = writer.insert("readings", [key, "celsius"]).unwrap();
    let task = async |task: i64| {
        let (mut written, mut again) = (0, 0);
        for n in [0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9] {
            match rows.write([(task * 10 + n).into(), 21.5.into()]).await {
                Ok(_) => written += 1,
                Err(fault) if fault.code == "23505" => again += 1,
                Err(fault) => return Err(fault),
            }
        }
        Ok::<_, Fault>((written, again))
    };
    let outcomes = join_all((0..TASKS).map(task)).await;
    let counts: Vec<(usize, usize)> = outcomes.into_iter().map(Result::unwrap).collect();
    counts
        .into_iter()
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

#[tokio::test]
async fn cratedb_is_sent_bulks_and_every_task_has_its_own_outcome() {
    let kit = CrateDb::start(4).await.unwrap();
    let writer = Writer::builder(kit.url()).create_tables(true);
    let writer = writer.open().await.unwrap();
    // Away for a moment: nobody is told.
    let away = r#"{"error":{"message":"MasterNotDiscoveredException[]","code":5031}}"#;
    kit.next("INSERT", Mishap::Instead(Reply::json(503, away)));
    assert_eq!(write(&writer, "id").await, (1000, 100));
    writer.close().await;
    let sent = kit.requests().len();
    assert!(sent < 500, "{sent} requests for 1100 writes");
}

#[tokio::test]
async fn arangodb_is_sent_arrays_and_every_task_has_its_own_outcome() {
    let kit = ArangoDb::start().await.unwrap();
    let writer = Writer::builder(kit.url()).create_tables(true);
    let writer = writer.open().await.unwrap();
    let away = r#"{"code":503,"error":true,"errorMessage":"service unavailable","errorNum":503}"#;
    kit.next(
        |request| request.method == "POST",
        Mishap::Instead(Reply::json(503, away)),
    );
    assert_eq!(write(&writer, "_key").await, (1000, 100));
    writer.close().await;
    let sent = kit.requests().len();
    assert!(sent < 500, "{sent} requests for 1100 writes");
}
