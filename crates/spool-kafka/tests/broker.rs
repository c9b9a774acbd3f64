//! The spool on a real broker.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test ends where something is not as expected"
)]

use std::collections::BTreeSet;

use windrow_spool::{Batch, Entry, Options, Position, Spool, SpoolFault};
use windrow_spool_kafka::{Address, KafkaSpool, Risk};
use windrow_testkit::kafka::{self, Kafka, Secured};
use windrow_testkit::proxy::{Direction, Proxy};

/// What one broker cannot do, and what no test waits for.
const ALONE: [Risk; 2] = [Risk::Replication, Risk::MinInsync];

const SAFE: [(&str, &str); 4] = [
    ("retention.ms", "-1"),
    ("retention.bytes", "-1"),
    ("unclean.leader.election.enable", "false"),
    ("cleanup.policy", "delete"),
];

async fn open(brokers: &str, topic: &str) -> Result<KafkaSpool, SpoolFault> {
    let address = Address::parse(&format!("kafka://{brokers}/{topic}")).unwrap();
    KafkaSpool::open(&address, Options::default(), &ALONE).await
}

/// All entries from a position to the end that is known.
async fn read(spool: &KafkaSpool, from: Position) -> Vec<Entry> {
    let log = &spool.logs()[0];
    let mut cursor = log.cursor(from).unwrap();
    let mut entries = Vec::new();
    while cursor.position() < log.end() {
        entries.extend(cursor.next(1 << 10).await.unwrap());
    }
    entries
}

fn payloads(entries: &[Entry]) -> Vec<String> {
    let text = |entry: &Entry| String::from_utf8(entry.payload.to_vec()).unwrap();
    entries.iter().map(text).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spool_on_a_broker() {
    if let Some(why) = kafka::missing() {
        eprintln!("left out: {why}");
        return;
    }
    let port = Kafka::free_port().unwrap();
    let proxy = Proxy::builder(format!("127.0.0.1:{port}"))
        .start()
        .await
        .unwrap();
    let shown = [proxy.address().port()];
    let kafka = Kafka::start(&[port], Some(&shown)).unwrap();
    let brokers = kafka.brokers();
    kafka.topic("safe", 1, &SAFE).unwrap();
    kafka
        .topic("lossy", 1, &[("unclean.leader.election.enable", "true")])
        .unwrap();
    kafka
        .topic(
            "small",
            2,
            &[&SAFE[..], &[("max.message.bytes", "2000")]].concat(),
        )
        .unwrap();

    two_gateways_share_it(&brokers).await;
    nothing_is_lost_or_doubled_where_connections_are_cut(&brokers, &proxy).await;
    what_was_applied_is_trimmed(&brokers).await;
    what_is_too_large_is_refused(&brokers).await;
    a_topic_that_loses_is_refused(&brokers).await;
}

async fn two_gateways_share_it(brokers: &str) {
    let one = open(brokers, "safe").await.unwrap();
    let two = open(brokers, "safe").await.unwrap();
    assert_eq!(one.id(), two.id());
    assert_ne!(one.id(), open(brokers, "small").await.unwrap().id());
    let mut batch = Batch::of(b"a");
    batch.push(b"b");
    assert_eq!(one.logs()[0].append(batch).await.unwrap(), Position(0));
    assert_eq!(
        two.logs()[0].append(Batch::of(b"c")).await.unwrap(),
        Position(2)
    );
    assert_eq!(
        one.logs()[0].append(Batch::of(b"d")).await.unwrap(),
        Position(3)
    );
    let entries = read(&one, Position(0)).await;
    assert_eq!(payloads(&entries), ["a", "b", "c", "d"]);
    assert_eq!(entries, read(&two, Position(0)).await);
    let origins: BTreeSet<_> = entries
        .iter()
        .map(|entry| (entry.origin.gateway, entry.origin.sequence))
        .collect();
    assert_eq!(origins.len(), 4);
    assert_eq!(payloads(&read(&two, Position(2)).await), ["c", "d"]);

    // A reader at the end gets what another gateway appends.
    let mut cursor = two.logs()[0].cursor(Position(4)).unwrap();
    let (found, _) = tokio::join!(cursor.next(1), one.logs()[0].append(Batch::of(b"e")));
    assert_eq!(payloads(&found.unwrap()), ["e"]);
    one.close().await.unwrap();
    let refused = one.logs()[0].append(Batch::of(b"f")).await;
    assert!(matches!(refused, Err(SpoolFault::Closed)), "{refused:?}");
    let mut ended = one.logs()[0].cursor(Position(5)).unwrap();
    assert!(matches!(ended.next(1).await, Err(SpoolFault::Closed)));
}

/// The proxy cuts the connection when the request has passed and its answer has not.
async fn nothing_is_lost_or_doubled_where_connections_are_cut(brokers: &str, proxy: &Proxy) {
    let spool = open(brokers, "safe").await.unwrap();
    let log = &spool.logs()[0];
    let from = log.append(Batch::of(b"begin")).await.unwrap();
    for round in 0..30u64 {
        let payload = format!("round {round}");
        // The head of an answer comes, and no more; or nothing of it; or half of the request.
        match round % 3 {
            0 => proxy.cut_after(Direction::ToClient, 3),
            1 => proxy.cut_after(Direction::ToClient, 0),
            _ => proxy.cut_after(Direction::ToServer, 100),
        }
        let position = log.append(Batch::of(payload.as_bytes())).await.unwrap();
        assert_eq!(position, from.plus(round + 1));
    }
    let entries = payloads(&read(&spool, from.plus(1)).await);
    let expected: Vec<_> = (0..30).map(|round| format!("round {round}")).collect();
    assert_eq!(entries, expected);
    spool.close().await.unwrap();
}

async fn what_was_applied_is_trimmed(brokers: &str) {
    let spool = open(brokers, "safe").await.unwrap();
    let other = open(brokers, "safe").await.unwrap();
    let log = &spool.logs()[0];
    log.trim(Position(3)).await.unwrap();
    assert_eq!(log.status().await.unwrap().first, Position(3));
    assert!(matches!(
        log.cursor(Position(2)),
        Err(SpoolFault::Trimmed { .. })
    ));
    assert_eq!(payloads(&read(&spool, Position(3)).await)[0], "d");
    // Another gateway finds it out where it reads.
    let late = &other.logs()[0];
    let read = late.cursor(Position(1)).unwrap().next(1).await;
    assert!(matches!(read, Err(SpoolFault::Trimmed { .. })), "{read:?}");
    assert!(matches!(
        late.cursor(Position(1)),
        Err(SpoolFault::Trimmed { .. })
    ));
    let beyond = log.trim(log.end().plus(1)).await;
    assert!(matches!(beyond, Err(SpoolFault::Beyond { .. })));
}

async fn what_is_too_large_is_refused(brokers: &str) {
    let spool = open(brokers, "small").await.unwrap();
    assert_eq!(spool.logs().len(), 2);
    assert!(spool.options().max_append < 2000);
    let log = &spool.logs()[1];
    let refused = log.append(Batch::of(&[0; 2000])).await;
    assert!(
        matches!(refused, Err(SpoolFault::TooLarge { .. })),
        "{refused:?}"
    );
    // Many at once share batches that the topic takes.
    let appends = (0..50u8).map(|at| {
        let log = std::sync::Arc::clone(log);
        tokio::spawn(async move { log.append(Batch::of(&[at; 300])).await.unwrap() })
    });
    let mut positions = BTreeSet::new();
    for append in appends.collect::<Vec<_>>() {
        positions.insert(append.await.unwrap());
    }
    assert_eq!(positions, (0..50).map(Position).collect());
}

async fn a_topic_that_loses_is_refused(brokers: &str) {
    let refused = open(brokers, "lossy").await.unwrap_err().to_string();
    for word in ["unclean", "retention.ms", "`allow`"] {
        assert!(refused.contains(word), "{refused}");
    }
    assert!(!refused.contains("replication factor"), "{refused}");
    let missing = open(brokers, "missing").await.unwrap_err();
    assert!(matches!(missing, SpoolFault::Unreached { .. }), "{missing}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_wants_tls_and_a_login() {
    if let Some(why) = kafka::missing() {
        eprintln!("left out: {why}");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (ca, certificate) = (folder.path().join("ca.pem"), folder.path().join("key.pem"));
    std::fs::write(&ca, made.cert.pem()).unwrap();
    let both = made.signing_key.serialize_pem() + &made.cert.pem();
    std::fs::write(&certificate, both).unwrap();
    let secured = Secured {
        port: Kafka::free_port().unwrap(),
        certificate,
        user: "app",
        password: "s:cr et+@",
    };
    let kafka = Kafka::start_secured(Kafka::free_port().unwrap(), &secured).unwrap();
    kafka.topic("safe", 1, &SAFE).unwrap();
    let at = |scheme: &str, password: &str, query: &str| {
        let port = secured.port;
        let url = format!("{scheme}://app:{password}@127.0.0.1:{port}/safe?{query}");
        let address = Address::parse(&url).unwrap();
        async move { KafkaSpool::open(&address, Options::default(), &ALONE).await }
    };

    let trusted = format!("ca={}", ca.display());
    for (written, mechanism) in ["plain", "scram-sha-256", "scram-sha-512"]
        .iter()
        .enumerate()
    {
        let query = format!("sasl={mechanism}&{trusted}");
        let spool = at("kafkas", "s%3Acr et%2B%40", &query).await.unwrap();
        let position = spool.logs()[0].append(Batch::of(b"a")).await.unwrap();
        assert_eq!(position, Position(written as u64));
        assert_eq!(read(&spool, Position(0)).await.len(), written + 1);
        spool.close().await.unwrap();

        let refused = at("kafkas", "wrong", &query).await.unwrap_err().to_string();
        assert!(refused.contains("refuses the login"), "{refused}");
        assert!(!refused.contains("wrong"), "{refused}");
    }
    // A certificate that the system does not trust, and no TLS where the broker wants it.
    let refused = at("kafkas", "s%3Acr et%2B%40", "")
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("certificate"), "{refused}");
    let refused = at("kafka", "s%3Acr et%2B%40", "")
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("kafkas://"), "{refused}");
}
