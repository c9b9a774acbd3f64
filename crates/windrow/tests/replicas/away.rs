//! A replica that is away gets all once it is back.

use serde_json::json;
use windrow_testkit::proxy::Proxy;

use crate::support::{Db, Place, TEST_TIMEOUT, check, client, windrow};

#[tokio::test(flavor = "multi_thread")]
async fn it_catches_up_with_what_was_written_meanwhile() {
    let (primary, replica) = (Db::postgres(), Db::mariadb());
    primary.sql("create table t (k int primary key, v int)");
    replica.sql("create table t (k int primary key, v int)");
    let url = replica.url();
    let wire = url.rsplit('@').next().unwrap().split('/').next().unwrap();
    let proxy = Proxy::builder(wire).start().await.unwrap();
    let place = Place::of("primary", &[("maria", &proxy.through(&url).unwrap())], "");
    let gateway = place.start(&primary.url(), &[]);
    gateway.rows("t", &[json!({"k": 0, "v": 0})]).await;
    gateway.level().await;
    proxy.refuse(true);
    proxy.cut();
    // Many changes of a few rows, and rows that are gone again.
    for round in 0..20 {
        let rows: Vec<_> = (0..100).map(|k| json!({"k": k, "v": round})).collect();
        gateway.rows("t?on_conflict=update", &rows).await;
    }
    for k in 50..60 {
        let path = format!("/v1/tables/t/rows/{k}");
        assert_eq!(gateway.send("DELETE", &path, String::new()).await.0, 200);
    }
    gateway
        .until("it is told how far the replica is behind", |replicas| {
            let one = &replicas[0];
            one["lag"]["rows"].as_u64() >= Some(2000) && one["state"] == "waiting"
        })
        .await;
    assert_eq!(gateway.send("GET", "/readyz", String::new()).await.0, 200);
    let http = gateway.process.address().to_string();
    let status = ["replica", "status", "--http", &http];
    let told = windrow(&status).ends(1);
    assert!(
        told.out.starts_with("maria (MySQL and MariaDB): away for "),
        "{}",
        told.out
    );
    let json = windrow(&[&status[..], &["--json"]].concat()).ends(1);
    let one = &serde_json::from_str::<serde_json::Value>(&json.out).unwrap()[0];
    assert!(
        one["away_seconds"].is_number() && one["lag"]["rows"].as_u64() >= Some(2000),
        "{one}"
    );
    // What is noted survives the gateway.
    gateway.kill9();
    let gateway = place.start(&primary.url(), &[]);
    gateway.rows("t", &[json!({"k": 1000, "v": 1})]).await;
    proxy.refuse(false);
    gateway.level().await;
    assert_eq!(
        replica.sql("select count(*), sum(v) from t"),
        format!("91|{}", 90 * 19 + 1)
    );
    check(&primary.url(), &url, &[]).ends(0);
    let http = gateway.process.address().to_string();
    let told = windrow(&["replica", "status", "--http", &http]).ends(0);
    assert!(
        told.out
            .starts_with("maria (MySQL and MariaDB): level; has all"),
        "{}",
        told.out
    );
    let (_, metrics) = gateway.send("GET", "/metrics", String::new()).await;
    let metrics = metrics.as_str().unwrap();
    assert!(
        metrics.contains("windrow_replica_connected{replica=\"maria\"} 1"),
        "{metrics}"
    );
    gateway.stop();
}

/// A write is committed that not all replicas have: the end is not held up for ever, and the
/// client is told of its success.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_does_not_wait_for_one_that_is_away() {
    let (primary, replica) = (Db::postgres(), Db::mariadb());
    for db in [&primary, &replica] {
        db.sql("create table t (k int primary key)");
    }
    let url = replica.url();
    let wire = url.rsplit('@').next().unwrap().split('/').next().unwrap();
    let proxy = Proxy::builder(wire).start().await.unwrap();
    let place = Place::of("all", &[("maria", &proxy.through(&url).unwrap())], "");
    let gateway = place.start(&primary.url(), &[]);
    gateway.level().await;
    proxy.refuse(true);
    proxy.cut();
    let address = gateway.process.url("/v1/tables/t/rows");
    let waits = tokio::spawn(client().post(address).json(&json!({"k": 1})).send());
    let start = std::time::Instant::now();
    while primary.sql("select count(*) from t") != "1" {
        assert!(start.elapsed() < TEST_TIMEOUT, "{}", gateway.process.log());
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert!(!waits.is_finished(), "the replica does not have it");
    gateway.stop();
    assert!(waits.await.unwrap().unwrap().status().is_success());
    proxy.refuse(false);
    let gateway = place.start(&primary.url(), &[]);
    gateway.level().await;
    assert_eq!(replica.sql("select k from t"), "1");
    gateway.stop();
}
