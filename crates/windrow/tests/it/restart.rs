//! The database dies, stops and comes back under load: success is told only for rows that are
//! there, and what cannot be known is said to be unknown.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::future::join_all;
use tokio::task::spawn_blocking;
use windrow_testkit::postgres::Postgres;

use crate::support::{Db, Gateway, TEST_TIMEOUT, code, connect};

const CLIENTS: usize = 24;

/// What clients were told of the rows that they sent.
#[derive(Default)]
struct Ledger {
    written: Vec<usize>,
    refused: Vec<usize>,
    unknown: Vec<usize>,
}

async fn client(
    gateway: &Gateway,
    number: usize,
    done: &AtomicBool,
    answered: &AtomicUsize,
) -> Ledger {
    let mut ledger = Ledger::default();
    for n in 0.. {
        if done.load(Ordering::Relaxed) {
            return ledger;
        }
        let id = number * 10_000_000 + n;
        let (status, answer) = gateway
            .insert("readings", &format!("{{\"id\": {id}, \"note\": \"x\"}}"))
            .await;
        match (status, code(&answer)) {
            (201, _) => {
                ledger.written.push(id);
                answered.fetch_add(1, Ordering::Relaxed);
            }
            (504, "08007") => ledger.unknown.push(id),
            (503, _) => ledger.refused.push(id),
            other => panic!("row {id}: {other:?} {answer}"),
        }
    }
    ledger
}

async fn wait_for(count: &AtomicUsize, more: usize) {
    let target = count.load(Ordering::Relaxed) + more;
    let reached = async {
        while count.load(Ordering::Relaxed) < target {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, reached)
        .await
        .expect("service resumes by itself");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_database_costs_no_truth() {
    let server = spawn_blocking(|| Postgres::start().unwrap()).await.unwrap();
    let url = server.url();
    server
        .exec("create table readings (id bigint primary key, note text)")
        .unwrap();
    let gateway = Gateway::with(&url, "limits = { away_wait = '200ms' }").await;
    let (done, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let clients = join_all((0..CLIENTS).map(|n| client(&gateway, n, &done, &answered)));
    let trouble = async {
        let mut server = server;
        for round in 0..4 {
            wait_for(&answered, 300).await;
            server = spawn_blocking(move || {
                if round % 2 == 0 {
                    server.kill9().unwrap();
                }
                server.restart().unwrap();
                server
            })
            .await
            .unwrap();
        }
        wait_for(&answered, 300).await;
        done.store(true, Ordering::Relaxed);
        server
    };
    let (ledgers, server) = tokio::join!(clients, trouble);
    let there = stored(&url).await;
    for ledger in &ledgers {
        for id in &ledger.written {
            assert_eq!(
                there.get(id),
                Some(&1),
                "row {id} was answered with success"
            );
        }
        for id in &ledger.refused {
            assert_eq!(there.get(id), None, "row {id} was said not to be written");
        }
    }
    let told: usize = ledgers
        .iter()
        .map(|l| l.written.len() + l.unknown.len())
        .sum();
    assert!(
        there.len() <= told,
        "no row is there that nobody was told of"
    );
    gateway.stop().await;
    drop(server);
}

async fn stored(url: &str) -> HashMap<usize, i64> {
    let client = connect(url).await;
    let rows = client
        .query("select id, count(*) from readings group by id", &[])
        .await
        .unwrap();
    rows.iter()
        .map(|r| (usize::try_from(r.get::<_, i64>(0)).unwrap(), r.get(1)))
        .collect()
}

/// A session ended inside a batch is nobody's fault: its writes run again on another connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_terminated_session_is_replaced() {
    let db = Db::postgres().await;
    db.run("create table readings (id bigint primary key, note text)")
        .await;
    let gateway = Gateway::to(&db.url()).await;
    let (done, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    let clients = join_all((0..CLIENTS).map(|n| client(&gateway, n, &done, &answered)));
    let trouble = async {
        for _ in 0..20 {
            wait_for(&answered, 50).await;
            db.run(
                "select pg_terminate_backend(pid) from pg_stat_activity
                 where datname = current_database() and pid <> pg_backend_pid()",
            )
            .await;
        }
        wait_for(&answered, 50).await;
        done.store(true, Ordering::Relaxed);
    };
    let (ledgers, ()) = tokio::join!(clients, trouble);
    let there = stored(&db.url()).await;
    for ledger in &ledgers {
        assert!(ledger.written.iter().all(|id| there.get(id) == Some(&1)));
        assert!(ledger.refused.iter().all(|id| !there.contains_key(id)));
    }
    gateway.stop().await;
}

/// A database that does not answer at all: memory stays within the budget, clients past it are told
/// to come back, and afterwards everything goes on.
#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_database_is_waited_for_within_the_budget() {
    let server = spawn_blocking(|| Postgres::start().unwrap()).await.unwrap();
    server
        .exec("create table readings (id bigint primary key, note text)")
        .unwrap();
    let gateway = Gateway::with(&server.url(), "limits = { memory = '2MiB' }").await;
    let note = "x".repeat(4000);
    let row = |id: usize| format!("{{\"id\": {id}, \"note\": \"{note}\"}}");
    assert_eq!(gateway.insert("readings", &row(0)).await.0, 201);
    server.pause().unwrap();
    let refused = AtomicUsize::new(0);
    let insert = async |id: usize| {
        let (status, answer) = gateway.insert("readings", &row(id)).await;
        if status == 429 {
            assert_eq!(code(&answer), "53200");
            refused.fetch_add(1, Ordering::Relaxed);
        }
        (id, status)
    };
    let clients = join_all((1..2000).map(insert));
    let resume = async {
        wait_for(&refused, 500).await;
        server.resume();
    };
    let (told, ()) = tokio::join!(clients, resume);
    let written: Vec<usize> = told.iter().filter(|t| t.1 == 201).map(|t| t.0).collect();
    assert!(written.len() > 10 && told.iter().all(|t| t.1 == 201 || t.1 == 429));
    let there = stored(&server.url()).await;
    assert_eq!(there.len(), written.len() + 1);
    assert!(written.iter().all(|id| there.contains_key(id)));
    assert_eq!(
        gateway.insert("readings", &row(5000)).await.0,
        201,
        "service resumes by itself"
    );
    gateway.stop().await;
}

/// A row that somebody else has locked holds up its own client only.
#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_lock_holds_up_its_own_client_only() {
    let db = Db::postgres().await;
    db.run("create table readings (id bigint primary key, note text); insert into readings values (1, 'old'), (2, 'old')")
        .await;
    let gateway = Gateway::with(&db.url(), "database = { lock_wait = '50ms' }").await;
    let other = connect(&db.url()).await;
    other
        .batch_execute("begin; update readings set note = 'foreign' where id = 1")
        .await
        .unwrap();
    let update = async |id: usize, note: &str| {
        gateway
            .send(
                "PATCH",
                &format!("/v1/tables/readings/rows/{id}"),
                Some(format!("{{\"note\": \"{note}\"}}")),
            )
            .await
    };
    let locked = update(1, "mine");
    let neighbours = async {
        for n in 0..50 {
            let note = format!("n{n}");
            assert_eq!(update(2, &note).await.0, 200);
            let (status, answer) = gateway
                .insert("readings", &format!("{{\"id\": {}}}", 100 + n))
                .await;
            assert_eq!(status, 201, "{answer}");
        }
        // Only now is the lock let go: the neighbours have not waited for it.
        other.batch_execute("commit").await.unwrap();
    };
    let (told, ()) = tokio::join!(locked, neighbours);
    assert_eq!((told.0, &told.1["rows"]), (200, &1.into()));
    assert_eq!(
        db.number("select count(*) from readings where id = 1 and note = 'mine'")
            .await,
        1
    );
    gateway.stop().await;
}

/// Away from the start: clients are told so, readiness says so, and once it is there everything
/// works.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_is_told_and_found_again() {
    let server = spawn_blocking(|| Postgres::start().unwrap()).await.unwrap();
    server
        .exec("create table readings (id bigint primary key, note text)")
        .unwrap();
    server.stop().unwrap();
    let gateway = Gateway::with(&server.url(), "limits = { away_wait = '100ms' }").await;
    assert_eq!(gateway.send("GET", "/healthz", None).await.0, 200);
    assert_eq!(gateway.send("GET", "/readyz", None).await.0, 503);
    let (status, answer) = gateway.insert("readings", r#"{"id": 1}"#).await;
    assert_eq!(status, 503, "{answer}");
    let server = spawn_blocking(move || {
        server.restart().unwrap();
        server
    })
    .await
    .unwrap();
    // Once the gateway calls itself ready, it takes a write.
    let ready = async { while gateway.send("GET", "/readyz", None).await.0 != 200 {} };
    tokio::time::timeout(TEST_TIMEOUT, ready)
        .await
        .expect("service resumes by itself");
    let (status, answer) = gateway.insert("readings", r#"{"id": 2}"#).await;
    assert_eq!(status, 201, "{answer}");
    assert_eq!(gateway.send("GET", "/readyz", None).await.0, 200);
    assert_eq!(stored(&server.url()).await.len(), 1);
    gateway.stop().await;
}
