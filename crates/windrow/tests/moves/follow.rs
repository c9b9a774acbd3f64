//! --follow: rows are moved as they arrive.

use windrow_core::{MovePlan, Name, TableName};
use windrow_database::Options;

use crate::support::{TEST_TIMEOUT, postgres, sql, start, until};

#[test]
fn rows_are_moved_as_they_arrive_until_it_is_told_to_end() {
    let db = postgres();
    sql(
        &db,
        "create table pending (id serial primary key, v int check (v <> 13)); create table final (id int, v int check (v <> 5))",
    );
    let mover = start(db.url(), "pending", "final", &["--follow", "--jobs", "2"]);
    for round in 1..=5 {
        sql(
            &db,
            &format!("insert into pending (v) values ({round}), ({round}); notify windrow_move"),
        );
        until("the rows are moved", || {
            sql(&db, "select count(*) from pending") == "0"
        });
    }
    let told = mover.terminate().ends(3);
    assert!(
        told.err.contains("8 rows moved") && told.err.contains("2 went to the dead letters"),
        "{}",
        told.err
    );
    assert_eq!(sql(&db, "select count(*) from final"), "8");
}

#[tokio::test]
async fn a_notify_is_heard() {
    let db = tokio::task::spawn_blocking(postgres).await.unwrap();
    let sink = windrow::databases::open(db.url(), &Options::default())
        .await
        .unwrap();
    let plan = MovePlan {
        source: TableName::bare("pending"),
        key: [Name::from("id")].into(),
        names: [Name::from("id")].into(),
        columns: [Name::from("id")].into(),
        route: None,
        filter: None,
        across: false,
        alike: false,
    };
    let mut news = sink.moves().unwrap().news(&plan).await.unwrap().unwrap();
    for _ in 0..3 {
        db.exec("notify windrow_move").unwrap();
        let heard = tokio::time::timeout(TEST_TIMEOUT, news.wait()).await;
        heard.expect("the notification is heard").unwrap();
    }
}
