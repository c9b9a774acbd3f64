//! Logs of replicas that are topics: gateways share them, stand still, are killed and lose their
//! disks. The replica is equal to the primary once it has caught up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use tokio::task::JoinSet;
use windrow_testkit::kafka::{self, KEPT, Kafka};
use windrow_testkit::proxy::Proxy;

use crate::kills::{Load, MARIA, PG, STATE, write};
use crate::support::{Db, Gateway, Place, TEST_TIMEOUT, check, client, number, windrow};

/// Rounds of kills, unless the environment says otherwise.
const ROUNDS: usize = 2;

/// Clients of each gateway.
const CLIENTS: u64 = 4;

/// Rows that two gateways write at the same time.
const ROWS: u64 = 1_500;

/// The brokers. `WINDROW_KAFKA_BROKERS`: how many there are.
fn start() -> Option<Kafka> {
    kafka::brokers(number("WINDROW_KAFKA_BROKERS", 1)).unwrap()
}

/// A primary and its replica, whose log is a topic.
struct Pair {
    primary: Db,
    replica: Db,
    proxy: Proxy,
    /// The URL of the replica by way of the proxy.
    through: String,
    at: String,
}

impl Pair {
    async fn new(kafka: &Kafka, prefix: &str, replica: Db) -> Self {
        let in_sync = if number("WINDROW_KAFKA_BROKERS", 1) < 3 {
            "1"
        } else {
            "2"
        };
        let settings = [&KEPT[..], &[("min.insync.replicas", in_sync)]].concat();
        kafka.topic(&format!("{prefix}-far"), 1, &settings).unwrap();
        let primary = Db::postgres();
        let events = if matches!(replica, Db::Maria(_)) {
            MARIA
        } else {
            PG
        };
        for (db, events) in [(&primary, PG), (&replica, events)] {
            db.sql(events);
            db.sql(STATE);
        }
        let url = replica.url();
        let wire = url.rsplit('@').next().unwrap().split('/').next().unwrap();
        let proxy = Proxy::builder(wire).start().await.unwrap();
        Self {
            through: proxy.through(&url).unwrap(),
            at: format!("kafka://{}/{prefix}", kafka.brokers()),
            primary,
            replica,
            proxy,
        }
    }

    /// A gateway's own place: nothing of it is another's.
    fn place(&self, wait_for: &str) -> Place {
        Place::of_topics(wait_for, &self.at, &[("far", &self.through)])
    }

    fn start(&self, place: &Place) -> Gateway {
        place.start(&self.primary.url(), &[])
    }

    /// Both hold the same.
    #[track_caller]
    fn are_alike(&self, log: &str) {
        let told = check(&self.primary.url(), &self.replica.url(), &[]);
        assert_eq!(told.status, 0, "{}{log}", told.out);
        let refused = "select count(*) from windrow_rejected";
        assert_eq!(self.replica.sql(refused), "0", "{log}");
    }
}

/// Waits until something is so. `log`: what is told where it never is.
async fn eventually(is_so: impl Fn() -> bool, log: impl Fn() -> String) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < TEST_TIMEOUT, "{}", log());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Clients that write to gateways until they are told to end.
struct Clients {
    load: Arc<Load>,
    tasks: JoinSet<()>,
}

impl Clients {
    fn of(gateways: &[&Gateway], random: &mut StdRng) -> Self {
        let (load, mut tasks) = (Arc::<Load>::default(), JoinSet::new());
        for gateway in gateways {
            for _ in 0..CLIENTS {
                let (url, seed) = (gateway.process.url(""), random.random());
                tasks.spawn(write(url, seed, Arc::clone(&load)));
            }
        }
        Self { load, tasks }
    }

    async fn grow(&self, by: u64, gateway: &Gateway) {
        self.load.grows(by, || gateway.process.log()).await;
    }

    async fn end(self) {
        self.load.stop.store(true, Ordering::Relaxed);
        self.tasks.join_all().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn gateways_share_the_logs_of_replicas() {
    let Some(mut kafka) = start() else { return };
    an_unsafe_topic_is_refused(&kafka);
    let (maria, postgres, stood, killed) = (
        Pair::new(&kafka, "lost", Db::mariadb()).await,
        Pair::new(&kafka, "both", Db::postgres()).await,
        Pair::new(&kafka, "stood", Db::postgres()).await,
        Pair::new(&kafka, "killed", Db::mariadb()).await,
    );
    // Each has databases and topics of its own, and waits for seconds now and then.
    tokio::join!(
        a_gateway_is_lost_with_its_disk(&maria),
        two_write_the_same_rows_at_once(&postgres),
        one_that_stood_still_was_taken_for_lost(&stood),
        gateways_are_killed_at_any_moment(&killed),
    );
    if number("WINDROW_KAFKA_BROKERS", 1) >= 3 {
        // It takes as long as an append waits for brokers.
        all_brokers_are_away(&mut kafka, &postgres).await;
    }
}

fn an_unsafe_topic_is_refused(kafka: &Kafka) {
    kafka.topic("lossy-far", 1, &[]).unwrap();
    kafka.topic("many-far", 2, &KEPT).unwrap();
    let replica = Db::sqlite();
    for (prefix, why) in [
        ("lossy", "retention.ms"),
        ("many", "2 partitions"),
        ("missing", "UnknownTopicOrPartition"),
    ] {
        let at = format!("kafka://{}/{prefix}", kafka.brokers());
        let place = Place::of_topics("primary", &at, &[("far", &replica.url())]);
        let serve = ["serve", "--config", place.config(), "--http", "127.0.0.1:0"];
        let told = windrow(&[&serve[..], &["--to", &Db::postgres().url()]].concat());
        let whose = "the log of the replica far cannot be opened";
        assert!(
            told.status == 1 && told.err.contains(why) && told.err.contains(whose),
            "{}",
            told.err
        );
    }
}

/// The replica is away while rows are written, and the gateway that has noted them is killed, with
/// all that is on its disk. Another, which knows the topic alone, brings the replica what it lacks.
async fn a_gateway_is_lost_with_its_disk(pair: &Pair) {
    pair.primary
        .sql("insert into state select n, n from generate_series(1000, 8000) n");
    let place = pair.place("primary");
    let gateway = pair.start(&place);
    gateway.level().await;
    assert_eq!(pair.replica.sql("select count(*) from state"), "7001");
    let mut random = StdRng::seed_from_u64(1);
    let clients = Clients::of(&[&gateway], &mut random);
    clients.grow(200, &gateway).await;
    pair.proxy.refuse(true);
    pair.proxy.cut();
    clients.grow(500, &gateway).await;
    assert_eq!(gateway.send("GET", "/readyz", String::new()).await.0, 200);
    gateway.kill9();
    clients.end().await;
    drop(place);

    let place = pair.place("primary");
    let gateway = pair.start(&place);
    gateway.rows("state", &[json!({"k": 9000, "v": 1})]).await;
    pair.proxy.refuse(false);
    gateway.level().await;
    let log = gateway.process.log();
    pair.are_alike(&log);
    assert!(log.contains("is applied here"), "{log}");
    // Whoever comes later knows from the topic that all was copied.
    assert!(!log.contains("copying"), "{log}");
    gateway.stop();
}

/// Two gateways write the same rows, so that each reads and writes what the other changes.
async fn two_write_the_same_rows_at_once(pair: &Pair) {
    let (one, two) = (pair.place("all"), pair.place("all"));
    let (one, two) = (pair.start(&one), pair.start(&two));
    let (mut writers, next) = (JoinSet::new(), Arc::<AtomicU64>::default());
    for _ in 0..CLIENTS {
        let (client, next) = (client(), Arc::clone(&next));
        let urls = [&one, &two].map(|gateway| gateway.process.url("/v1/tables/state/rows"));
        writers.spawn(async move {
            // Each row is written twice and never again: whatever goes wrong stays.
            while let k @ ..ROWS = next.fetch_add(1, Ordering::Relaxed) {
                let both = urls.iter().zip(1..).map(|(url, v)| {
                    let row = json!({"k": 10_000 + k, "v": v});
                    let asked = client.post(format!("{url}?on_conflict=update"));
                    asked.json(&row).send()
                });
                for answer in futures_util::future::join_all(both).await {
                    assert!(answer.unwrap().status().is_success());
                }
            }
        });
    }
    writers.join_all().await;
    for gateway in [&one, &two] {
        gateway.level().await;
    }
    pair.are_alike(&(one.process.log() + &two.process.log()));
    // Who waits for all is answered behind the replica, whoever else there is.
    for (gateway, k) in [(&one, 5000), (&two, 5001)] {
        gateway.rows("state", &[json!({"k": k, "v": k})]).await;
        let there = format!("select v from state where k = {k}");
        assert_eq!(pair.replica.sql(&there), k.to_string());
    }
    let copied = |gateway: &Gateway| gateway.process.log().contains("all rows are copied");
    assert!(copied(&one) != copied(&two), "one of them copies");
    // One that ends leaves nothing behind that the other would have to take over.
    one.stop();
    two.rows("state", &[json!({"k": 5002, "v": 1})]).await;
    two.level().await;
    assert!(!two.process.log().contains("is applied here"));
    two.stop();
}

/// A gateway stands still for so long that another takes it for lost, with batches that the replica
/// does not have, and goes on.
async fn one_that_stood_still_was_taken_for_lost(pair: &Pair) {
    let direct = Place::of_topics("primary", &pair.at, &[("far", &pair.replica.url())]);
    let place = pair.place("all");
    let (one, two) = (pair.start(&place), pair.start(&direct));
    one.level().await;
    two.level().await;
    let mut random = StdRng::seed_from_u64(3);
    let clients = Clients::of(&[&one, &two], &mut random);
    clients.grow(300, &one).await;
    pair.proxy.refuse(true);
    pair.proxy.cut();
    one.until("clients wait for the replica", |replicas| {
        replicas[0]["state"] == "waiting" && replicas[0]["lag"]["entries"].as_u64() >= Some(1)
    })
    .await;
    one.process.signal(Signal::SIGSTOP).unwrap();
    let log = || two.process.log();
    eventually(|| log().contains("is applied here"), log).await;
    one.process.signal(Signal::SIGCONT).unwrap();
    // What it notes now stands behind what it is to find out.
    let row = json!({"k": 5000, "v": 1}).to_string();
    let written = tokio::spawn(
        client()
            .post(one.process.url("/v1/tables/state/rows"))
            .header("content-type", "application/json")
            .body(row)
            .send(),
    );
    let there = || pair.primary.sql("select v from state where k = 5000") == "1";
    eventually(there, || one.process.log()).await;
    pair.proxy.refuse(false);
    assert!(written.await.unwrap().unwrap().status().is_success());
    assert_eq!(pair.replica.sql("select v from state where k = 5000"), "1");
    clients.grow(300, &one).await;
    clients.end().await;
    for gateway in [&one, &two] {
        gateway.level().await;
    }
    let log = one.process.log();
    pair.are_alike(&(log.clone() + &two.process.log()));
    assert!(log.contains("took this one for lost"), "{log}");
    one.stop();
    two.stop();
}

/// `WINDROW_KAFKA_ROUNDS`: how often both are killed.
async fn gateways_are_killed_at_any_moment(pair: &Pair) {
    let mut random = StdRng::seed_from_u64(4);
    for _ in 0..number("WINDROW_KAFKA_ROUNDS", ROUNDS) {
        let (one, two) = (pair.place("primary"), pair.place("primary"));
        let (one, two) = (pair.start(&one), pair.start(&two));
        let clients = Clients::of(&[&one, &two], &mut random);
        clients.grow(random.random_range(1..300), &one).await;
        one.kill9();
        clients.grow(random.random_range(1..300), &two).await;
        two.kill9();
        clients.end().await;
    }
    let place = pair.place("primary");
    let gateway = pair.start(&place);
    gateway.level().await;
    pair.are_alike(&gateway.process.log());
    gateway.stop();
}

/// While no broker is there nothing is written, and the gateway says why; it goes on by itself once
/// they are back.
async fn all_brokers_are_away(kafka: &mut Kafka, pair: &Pair) {
    let place = pair.place("primary");
    let gateway = pair.start(&place);
    gateway.level().await;
    kafka.kill_all().unwrap();
    for k in [6000, 6001] {
        let row = json!({"k": k, "v": 1}).to_string();
        let (status, answer) = gateway.send("POST", "/v1/tables/state/rows", row).await;
        assert_eq!(status, 503, "{answer}");
        let there = format!("select count(*) from state where k = {k}");
        assert_eq!(pair.primary.sql(&there), "0");
    }
    let (status, answer) = gateway.send("GET", "/readyz", String::new()).await;
    assert_eq!(status, 503, "{answer}");
    assert!(
        answer.to_string().contains("the log of the replica"),
        "{answer}"
    );
    kafka.restart_all().unwrap();
    let start = Instant::now();
    while gateway.send("GET", "/readyz", String::new()).await.0 != 200 {
        assert!(start.elapsed() < TEST_TIMEOUT, "{}", gateway.process.log());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    gateway.rows("state", &[json!({"k": 6002, "v": 1})]).await;
    gateway.level().await;
    pair.are_alike(&gateway.process.log());
    gateway.stop();
}
