//! A spool that is full says so, and empties itself.

use serde_json::json;
use windrow_testkit::postgres::{Postgres, psql};

use crate::support::{Gateway, spool};

#[tokio::test(flavor = "multi_thread")]
async fn a_full_spool_refuses_and_empties_itself() {
    let server = Postgres::start().unwrap();
    server
        .exec("create table readings (id int, note text)")
        .unwrap();
    let directory = spool();
    let config = directory.path().join("windrow.toml");
    std::fs::write(&config, "[spool]\nmax_bytes = '4MiB'\n").unwrap();
    let place = directory.path().join("spool");
    let more = ["--config", config.to_str().unwrap()];
    let gateway = Gateway::with(&server.url(), &place, &more);
    server.stop().unwrap();
    let note = "x".repeat(50_000);
    let mut taken = 0_u64;
    let refused = loop {
        let row = [json!({"id": taken, "note": note})];
        match gateway.rows("readings", &row).await {
            (202, _) => taken += 1,
            refused => break refused,
        }
        assert!(taken < 1000, "it is never full");
    };
    assert!(taken > 20, "{taken}");
    let (status, answer) = refused;
    assert_eq!(status, 429, "{answer}");
    assert!(answer.to_string().contains("spool.max_bytes"), "{answer}");
    server.restart().unwrap();
    gateway.level().await;
    // What was applied is given up some seconds later.
    let start = std::time::Instant::now();
    loop {
        let row = [json!({"id": taken, "note": note})];
        if gateway.rows("readings", &row).await.0 == 202 {
            break;
        }
        assert!(start.elapsed() < crate::support::TEST_TIMEOUT);
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    gateway.level().await;
    gateway.stop();
    let counted = psql(
        &server.url(),
        "select count(*), count(distinct id) from readings",
    );
    let all = taken + 1;
    assert_eq!(counted.unwrap().trim_end(), format!("{all}|{all}"));
}
