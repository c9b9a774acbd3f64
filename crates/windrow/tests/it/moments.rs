//! Rows of SQLite that are told apart by the moment at which they are written.

use futures_util::future::join_all;
use serde_json::json;

use crate::support::{Db, Gateway};

/// Each row has its own moment, as far as SQLite's clock of milliseconds tells moments apart: none
/// is taken for another one's, whoever is written in the same batch.
#[tokio::test]
async fn a_series_keeps_all_rows_of_many_clients() {
    for (default, key) in [
        ("datetime('now', 'subsec')", "primary key (device, time)"),
        ("(unixepoch('subsec'))", "primary key (device, time)"),
        ("(julianday('now'))", "unique (time, device)"),
        (
            "(strftime('%Y-%m-%d %H:%M:%f', 'now'))",
            "primary key (device, time)) without rowid, strict",
        ),
    ] {
        let db = Db::sqlite();
        let end = if key.contains("rowid") { "" } else { ")" };
        let kind = if default.contains("time(") {
            "text"
        } else {
            "real"
        };
        let table = format!(
            "create table metrics (device int, time {kind} default ({default}), v int, {key}{end}"
        );
        db.run(&table).await;
        let gateway = Gateway::to(&db.url()).await;
        let path = "/v1/tables/metrics/rows?on_conflict=ignore";
        let client = async |number: usize| {
            let mut rows = 0;
            for v in 0..10 {
                let row = json!({"device": number % 4, "v": v}).to_string();
                let (status, answer) = gateway.send("POST", path, Some(row)).await;
                assert!(matches!(status, 200 | 201), "{answer}");
                rows += answer["rows"].as_i64().unwrap();
            }
            rows
        };
        let told: i64 = join_all((0..24).map(client)).await.into_iter().sum();
        assert_eq!(told, 240, "{default}");
        assert_eq!(db.number("select count(*) from metrics").await, 240);
        gateway.stop().await;
    }
}
