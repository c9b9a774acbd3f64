//! Replicas of a primary that is written to all the time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::task::JoinSet;
use tokio_postgres::NoTls;
use windrow_testkit::proxy::Proxy;

use crate::sql::client;
use crate::support::{Db, Gateway, Place, TEST_TIMEOUT, check, number};

/// Writers of each kind.
const WRITERS: u64 = 4;

/// Rows that all of them write to.
const KEYS: u64 = 500;

const TABLE: &str = "create table t (k int primary key, v bigint)";

/// Writes over HTTP and by SQL until it is told to stop: upserts, updates, deletes.
fn load(
    gateway: &Arc<Gateway>,
    url: &str,
    stop: &Arc<AtomicBool>,
) -> (JoinSet<()>, Arc<AtomicU64>) {
    let (mut writers, written) = (JoinSet::new(), Arc::new(AtomicU64::new(0)));
    for writer in 0..WRITERS {
        let (gateway, stop, written) = (gateway.clone(), stop.clone(), written.clone());
        writers.spawn(async move {
            for n in 0.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let k = (n * 7 + writer * 131) % KEYS;
                match n % 4 {
                    3 => {
                        let path = format!("/v1/tables/t/rows/{k}");
                        gateway.send("DELETE", &path, String::new()).await;
                    }
                    _ => {
                        let row = json!({"k": k, "v": n});
                        gateway.rows("t?on_conflict=update", &[row]).await;
                    }
                }
                written.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    for writer in 0..WRITERS {
        let (gateway, stop, written) = (gateway.clone(), stop.clone(), written.clone());
        let url = url.to_owned();
        writers.spawn(async move {
            let client = client(&gateway, &url).await;
            let statements = [
                "insert into t values ($1, $2) on conflict (k) do update set v = excluded.v",
                "update t set v = v + $2 where k = $1",
                "delete from t where k = $1 and v > $2",
            ];
            for n in 0_i64.. {
                if stop.load(Ordering::Relaxed) {
                    return;
                }
                let k = i32::try_from((n.cast_unsigned() * 11 + writer * 37) % KEYS).unwrap();
                let statement = statements[usize::try_from(n % 3).unwrap()];
                client.execute(statement, &[&k, &n]).await.unwrap();
                written.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    (writers, written)
}

/// Waits until so much more was written, and so much time has gone by.
async fn until(written: &AtomicU64, more: u64, time: Duration) {
    let (start, from) = (Instant::now(), written.load(Ordering::Relaxed));
    while written.load(Ordering::Relaxed) < from + more || start.elapsed() < time {
        assert!(start.elapsed() < TEST_TIMEOUT + time, "nothing is written");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// `WINDROW_REPLICA_AWAY`: seconds for which it is away at least. How far behind it was, and how
/// long it took to catch up, is told with `--nocapture`.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_was_away_under_load_catches_up() {
    let (primary, near, far) = (Db::postgres(), Db::postgres(), Db::mariadb());
    for db in [&primary, &near, &far] {
        db.sql(TABLE);
    }
    let url = far.url();
    let wire = url.rsplit('@').next().unwrap().split('/').next().unwrap();
    let proxy = Proxy::builder(wire).start().await.unwrap();
    let through = proxy.through(&url).unwrap();
    let replicas = [("near", &*near.url()), ("far", &*through)];
    let place = Place::of("primary", &replicas, "");
    let gateway = Arc::new(place.start(&primary.url(), &["--pg", "127.0.0.1:0"]));
    gateway.level().await;
    let stop = Arc::new(AtomicBool::new(false));
    let (writers, written) = load(&gateway, &primary.url(), &stop);
    until(&written, 500, Duration::ZERO).await;
    proxy.refuse(true);
    proxy.cut();
    let away = Duration::from_secs(number("WINDROW_REPLICA_AWAY", 1) as u64);
    let before = written.load(Ordering::Relaxed);
    until(&written, 2_000, away).await;
    let missed = written.load(Ordering::Relaxed) - before;
    let behind = gateway.replicas().await[1]["lag"].to_string();
    proxy.refuse(false);
    let back = Instant::now();
    gateway
        .until("it is back while all is written to", |replicas| {
            replicas[1]["away_seconds"].is_null()
        })
        .await;
    let reached = back.elapsed();
    until(&written, 500, Duration::ZERO).await;
    stop.store(true, Ordering::Relaxed);
    writers.join_all().await;
    let stopped = Instant::now();
    gateway.level().await;
    println!(
        "{missed} writes while away, behind by {behind}; connected {reached:?} after it was there again, level {:?} after it and {:?} after the last write",
        back.elapsed(),
        stopped.elapsed()
    );
    for replica in [&near.url(), &url] {
        check(&primary.url(), replica, &[]).ends(0);
    }
    Arc::into_inner(gateway).unwrap().stop();
}

/// Whoever is answered finds the row on all replicas, while others write.
#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_all_is_answered_behind_all() {
    let (primary, one, two) = (Db::postgres(), Db::postgres(), Db::postgres());
    for db in [&primary, &one, &two] {
        db.sql(TABLE);
    }
    let (one_url, two_url) = (one.url(), two.url());
    let place = Place::of("all", &[("one", &one_url), ("two", &two_url)], "");
    let gateway = Arc::new(place.start(&primary.url(), &["--pg", "127.0.0.1:0"]));
    gateway.level().await;
    let stop = Arc::new(AtomicBool::new(false));
    let (writers, written) = load(&gateway, &primary.url(), &stop);
    until(&written, 100, Duration::ZERO).await;
    let mut looks = JoinSet::new();
    for (number, url) in [one_url.clone(), two_url.clone()].into_iter().enumerate() {
        let (gateway, through) = (gateway.clone(), primary.url());
        looks.spawn(async move {
            let writer = client(&gateway, &through).await;
            let (reader, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
            tokio::spawn(connection);
            for n in 0..100_i32 {
                let k = 10_000 * (i32::try_from(number).unwrap() + 1) + n;
                match n % 2 {
                    0 => drop(gateway.rows("t", &[json!({"k": k, "v": 1})]).await),
                    _ => {
                        let insert = "insert into t values ($1, 1)";
                        writer.execute(insert, &[&k]).await.unwrap();
                    }
                }
                let found = reader.query("select 1 from t where k = $1", &[&k]).await;
                assert_eq!(found.unwrap().len(), 1, "{k}");
            }
        });
    }
    looks.join_all().await;
    stop.store(true, Ordering::Relaxed);
    writers.join_all().await;
    for replica in [&one_url, &two_url] {
        check(&primary.url(), replica, &[]).ends(0);
    }
    Arc::into_inner(gateway).unwrap().stop();
}
