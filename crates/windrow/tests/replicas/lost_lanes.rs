//! The primary ends the connections of lanes while clients write texts that nobody has written
//! before: the replica has all that was acknowledged.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::sql;
use crate::support::{Db, Place, check, number};

/// Times that connections are ended, unless the environment says otherwise.
const ROUNDS: usize = 10;

const CLIENTS: u64 = 4;

/// Ends all server connections of the gateway.
const END: &str = "select count(pg_terminate_backend(pid)) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'";

/// State that the clients share.
#[derive(Default)]
struct Load {
    acknowledged: AtomicU64,
    stop: AtomicBool,
}

/// Inserts rows, each by a text of its own: a literal and a name of the result that no other has.
/// The ids that were acknowledged, and whether the last one was.
async fn write(client: Client, first: i32, load: Arc<Load>) -> Vec<i32> {
    let mut acknowledged = Vec::new();
    let mut id = first;
    while !load.stop.load(Ordering::Relaxed) {
        id += 1;
        let text = format!("insert into t (k, v) values ({id}, 'x{id}') returning k as k{id}");
        let written = match id % 2 {
            0 => client.simple_query(&text).await.map(|_| ()),
            _ => client.query(&text, &[]).await.map(|_| ()),
        };
        match written {
            Ok(()) => {
                acknowledged.push(id);
                load.acknowledged.fetch_add(1, Ordering::Relaxed);
            }
            // Not written, or nobody knows: both may be repeated, and a session goes on.
            Err(error) => {
                let code = error.code().map(SqlState::code);
                let retryable =
                    code.is_none_or(|code| code.starts_with("08") || code.starts_with("57P"));
                assert!(retryable, "{error:?}");
                if client.is_closed() {
                    break;
                }
            }
        }
    }
    acknowledged
}

async fn ended_between_new_texts(wait_for: &str) {
    let (primary, replica) = (Db::postgres(), Db::postgres());
    for db in [&primary, &replica] {
        db.sql("create table t (k int primary key, v text)");
    }
    let place = Place::of(wait_for, &[("one", &replica.url())], "");
    let gateway = place.start(&primary.url(), &["--pg", "127.0.0.1:0"]);
    gateway.level().await;
    let load = Arc::<Load>::default();
    let mut acknowledged = Vec::new();
    for round in 0..number("WINDROW_KILL_ROUNDS", ROUNDS) {
        let mut clients = Vec::new();
        for client in 0..CLIENTS {
            let first = i32::try_from((u64::try_from(round).unwrap() * CLIENTS + client) * 100_000);
            let session = sql::client(&gateway, &primary.url()).await;
            clients.push(tokio::spawn(write(session, first.unwrap(), load.clone())));
        }
        let goal = load.acknowledged.load(Ordering::Relaxed) + 5;
        while load.acknowledged.load(Ordering::Relaxed) < goal {
            assert!(!clients.iter().all(tokio::task::JoinHandle::is_finished));
            tokio::task::yield_now().await;
        }
        for _ in 0..3 {
            primary.sql(END);
        }
        load.stop.store(true, Ordering::Relaxed);
        for client in clients {
            acknowledged.extend(client.await.unwrap());
        }
        load.stop.store(false, Ordering::Relaxed);
    }
    gateway.level().await;
    let rows = "select count(*), sum(k), md5(string_agg(k || v, ',' order by k)) from t";
    assert_eq!(replica.sql(rows), primary.sql(rows));
    let ids: Vec<String> = acknowledged.iter().map(|id| format!("({id})")).collect();
    let missing = format!(
        "select count(*) from (values {}) as a (k) where not exists (select from t where t.k = a.k)",
        ids.join(",")
    );
    assert_eq!(replica.sql(&missing), "0");
    check(&primary.url(), &replica.url(), &[]).ends(0);
    gateway.stop();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_replica_has_what_was_answered() {
    ended_between_new_texts("all").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_nobody_waits_for_catches_up() {
    ended_between_new_texts("primary").await;
}
