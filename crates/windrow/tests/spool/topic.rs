//! Gateways that share a spool in Kafka: each takes writes and applies them. Gateways are killed,
//! and where there are several brokers, those as well, one at a time. Every acknowledged row is in
//! the database once.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use windrow_testkit::command;
use windrow_testkit::kafka::{self, KEPT, Kafka};

use crate::load::{self, Shared, Way};
use crate::support::{Db, Gateway, TEST_TIMEOUT, draining, number, windrow};

/// Rounds of kills, unless the environment says otherwise.
const ROUNDS: usize = 3;

/// Clients of each gateway.
const CLIENTS: u64 = 3;

fn start() -> Option<Kafka> {
    let brokers = number("WINDROW_KAFKA_BROKERS", 1);
    let kafka = kafka::brokers(brokers).unwrap()?;
    let in_sync = if brokers < 3 { "1" } else { "2" };
    let settings = [&KEPT[..], &[("min.insync.replicas", in_sync)]].concat();
    kafka.topic("writes", 1, &settings).unwrap();
    Some(kafka)
}

async fn reaches(shared: &Shared, goal: u64, gateway: &Gateway) {
    let start = Instant::now();
    while shared.acknowledged() < goal {
        assert!(start.elapsed() < TEST_TIMEOUT, "{}", gateway.process.log());
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gateways_share_a_topic_and_are_killed() {
    let Some(mut kafka) = start() else { return };
    let brokers: usize = number("WINDROW_KAFKA_BROKERS", 1);
    let db = Db::postgres();
    load::make_tables(&db);
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("windrow.toml");
    let allow = "[spool]\nallow = ['replication', 'min-insync']\n";
    std::fs::write(&config, if brokers < 3 { allow } else { "" }).unwrap();
    let config = config.to_str().unwrap();
    let topic = PathBuf::from(format!("kafka://{}/writes", kafka.brokers()));
    let gateway = || Gateway::with(&db.url(), &topic, &["--config", config]);

    let shared = Arc::new(Shared::default());
    let mut random = StdRng::seed_from_u64(4);
    let mut ledgers = Vec::new();
    for round in 0..number("WINDROW_KAFKA_ROUNDS", ROUNDS) {
        let (one, two) = (gateway(), gateway());
        let mut clients = Vec::new();
        for client in 0..2 * CLIENTS {
            let gateway = if client < CLIENTS { &one } else { &two };
            let (url, seed) = (gateway.process.url(""), random.random());
            clients.push(tokio::spawn(load::write(
                Way::Http(url),
                client,
                seed,
                Arc::clone(&shared),
            )));
        }
        let mut goal = shared.acknowledged() + random.random_range(1..200);
        reaches(&shared, goal, &one).await;
        if brokers >= 3 {
            kafka.kill(round % brokers).unwrap();
            goal = shared.acknowledged() + random.random_range(1..200);
            reaches(&shared, goal, &one).await;
        }
        // The other takes writes all the same, and applies those of the first.
        one.kill9();
        goal = shared.acknowledged() + random.random_range(1..200);
        reaches(&shared, goal, &two).await;
        two.kill9();
        for client in clients {
            ledgers.push(client.await.unwrap());
        }
        if brokers >= 3 {
            kafka.restart(round % brokers).unwrap();
        }
    }
    let rest = drained(&db, &topic, config);
    command::run(&mut { rest }).ends(0);
    load::check(&db, &ledgers);

    // Two that apply the same entries are nobody's fault: both go on.
    let (one, two) = (gateway(), gateway());
    one.rows("events", &[serde_json::json!({"id": -1, "client": 0})])
        .await;
    one.level().await;
    two.level().await;
    assert_eq!(db.sql("select count(*) from events where id = -1"), "1");
    for gateway in [one, two] {
        assert_eq!(gateway.spool().await["state"], "level");
        gateway.stop();
    }
    look_into(&db, topic.to_str().unwrap());
    if brokers >= 3 {
        // It takes as long as a write waits for brokers.
        all_away(&mut kafka, &db, gateway()).await;
    }
}

/// While no broker is there nothing is acknowledged, and the gateway says why; what the database
/// commits needs none of them. It goes on by itself once they are back.
async fn all_away(kafka: &mut Kafka, db: &Db, gateway: Gateway) {
    let row = |id: i32| [serde_json::json!({"id": id, "client": 0})];
    assert_eq!(gateway.rows("events", &row(-2)).await.0, 202);
    gateway.level().await;
    kafka.kill_all().unwrap();
    // A new leader takes some seconds, so the first one waits; it was sent on the connection that
    // was there.
    let (status, answer) = gateway.rows("events", &row(-3)).await;
    assert_eq!(status, 504, "{answer}");
    let (status, answer) = gateway.get("/readyz").await;
    assert_eq!(status, 503, "{answer}");
    assert!(answer.to_string().contains("broker"), "{answer}");
    // It is known now: nobody waits, and nothing was sent.
    let (status, answer) = gateway.rows("events", &row(-4)).await;
    assert_eq!(status, 503, "{answer}");
    let (status, answer) = gateway.rows("events?ack=commit", &row(-5)).await;
    assert_eq!(status, 201, "{answer}");

    kafka.restart_all().unwrap();
    let start = Instant::now();
    while gateway.get("/readyz").await.0 != 200 {
        assert!(start.elapsed() < TEST_TIMEOUT, "{}", gateway.process.log());
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(gateway.rows("events", &row(-6)).await.0, 202);
    gateway.level().await;
    // Whether the third came is not known to anybody who was told so.
    let there =
        db.sql("select -id, count(*) from events where id < -1 and id <> -3 group by 1 order by 1");
    assert_eq!(there, "2|1\n5|1\n6|1");
    gateway.stop();
}

/// The commands that look into a spool read a topic as well.
fn look_into(db: &Db, topic: &str) {
    let looked = |what: &str, more: &[&str]| {
        let arguments = [&["spool", what, "--directory", topic], more].concat();
        windrow(&arguments).ends(0)
    };
    let status = looked("status", &["--json", "--to", &db.url()]);
    let status: serde_json::Value = serde_json::from_str(&status.out).unwrap();
    let partition = &status["partitions"][0];
    assert_eq!(partition["applied"], partition["end"], "{status}");
    looked("verify", &[]);
    let dumped = looked("dump", &["--limit", "1"]);
    let entries = partition["end"].as_u64() > partition["first"].as_u64();
    assert_eq!(!dumped.out.is_empty(), entries, "{}", dumped.out);
}

fn drained(db: &Db, topic: &Path, config: &str) -> std::process::Command {
    let mut draining = draining(&db.url(), topic);
    draining.args(["--config", config]);
    draining
}
