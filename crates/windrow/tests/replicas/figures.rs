//! Batches against rows one by one, for who runs this with `--nocapture`; what is asserted is that
//! both bring all rows.

use std::time::Instant;

use serde_json::json;

use crate::support::{Db, Place, number};

const ROWS: usize = 2_000;

#[tokio::test(flavor = "multi_thread")]
async fn two_replicas_get_all_rows() {
    let primary = Db::postgres();
    let replicas = [Db::postgres(), Db::postgres()];
    let table = "create table t (id int primary key, v text)";
    primary.sql(table);
    for replica in &replicas {
        replica.sql(table);
    }
    let urls = replicas.each_ref().map(Db::url);
    let rows = number("WINDROW_REPLICA_ROWS", ROWS);
    let mut from = 0;
    for wait_for in ["primary", "all"] {
        let place = Place::of(wait_for, &[("one", &urls[0]), ("two", &urls[1])], "");
        let gateway = place.start(&primary.url(), &[]);
        gateway.level().await;
        let body: Vec<_> = (from..from + rows)
            .map(|id| json!({"id": id, "v": "x".repeat(50)}))
            .collect();
        let began = Instant::now();
        gateway.rows("t", &body).await;
        let answered = began.elapsed();
        gateway.level().await;
        println!(
            "{wait_for}: {rows} rows answered after {answered:?}, on both after {:?}",
            began.elapsed()
        );
        from += rows;
        for replica in &replicas {
            assert_eq!(replica.sql("select count(*) from t"), from.to_string());
        }
        gateway.stop();
    }
    // The same rows, each a statement and a commit at each replica.
    let began = Instant::now();
    for replica in &replicas {
        let text: String = (from..from + rows)
            .map(|id| format!("insert into t values ({id}, '{}');\n", "x".repeat(50)))
            .collect();
        replica.sql(&format!(
            "begin; commit; {}",
            text.replace(";\n", "; commit; begin; ")
        ));
    }
    println!(
        "row by row: {rows} rows on both after {:?}",
        began.elapsed()
    );
}
