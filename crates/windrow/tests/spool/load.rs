//! Clients that write all the time, and a ledger of what they were told.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::Client;
use serde_json::{Value as Json, json};

use crate::support::{Db, client};

/// The tables that clients write to. A row that comes twice is seen: nothing keeps it out.
pub const TABLES: &str = "create table events (id bigint, client int);
    create table state (k int primary key, v bigint);";

/// Keys of each client.
const KEYS: u64 = 3;

/// What all clients share.
#[derive(Default)]
pub struct Shared {
    next: AtomicU64,
    acknowledged: AtomicU64,
}

impl Shared {
    /// Requests that were acknowledged so far.
    pub fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    fn numbers(&self, many: u64) -> Vec<u64> {
        let first = self.next.fetch_add(many, Ordering::Relaxed);
        (first..first + many).collect()
    }
}

/// What a client was told.
#[derive(Default)]
pub struct Ledger {
    /// Rows that were acknowledged.
    acknowledged: Vec<u64>,
    /// Rows that were sent and not answered, by their request, and whether that was atomic.
    unanswered: Vec<(Vec<u64>, bool)>,
    /// For each key: the last value that was acknowledged, and the last that was sent.
    values: HashMap<u64, (Option<u64>, u64)>,
}

/// Writes until there is no answer.
pub async fn write(url: String, number: u64, seed: u64, shared: Arc<Shared>) -> Ledger {
    let mut random = StdRng::seed_from_u64(seed);
    let (mut ledger, client) = (Ledger::default(), client());
    loop {
        let answered = match random.random_range(0..10) {
            0..4 => {
                ledger
                    .insert(&client, &url, shared.numbers(1), number, false)
                    .await
            }
            4..6 => {
                let rows = shared.numbers(random.random_range(2..30));
                ledger.insert(&client, &url, rows, number, false).await
            }
            6 => {
                ledger
                    .insert(&client, &url, shared.numbers(4), number, true)
                    .await
            }
            _ => {
                let key = number * KEYS + random.random_range(0..KEYS);
                let value = shared.numbers(1)[0];
                ledger.upsert(&client, &url, key, value).await
            }
        };
        if !answered {
            return ledger;
        }
        shared.acknowledged.fetch_add(1, Ordering::Relaxed);
    }
}

impl Ledger {
    async fn insert(
        &mut self,
        client: &Client,
        url: &str,
        rows: Vec<u64>,
        number: u64,
        atomic: bool,
    ) -> bool {
        let query = if atomic { "?atomic=true" } else { "" };
        let path = format!("{url}/v1/tables/events/rows{query}");
        let bodies: Vec<Json> = rows
            .iter()
            .map(|id| json!({"id": id, "client": number}))
            .collect();
        let answered = post(client, &path, &bodies).await;
        match answered {
            true => self.acknowledged.extend(rows),
            false => self.unanswered.push((rows, atomic)),
        }
        answered
    }

    async fn upsert(&mut self, client: &Client, url: &str, key: u64, value: u64) -> bool {
        let path = format!("{url}/v1/tables/state/rows?on_conflict=update");
        let told = self.values.entry(key).or_default();
        told.1 = value;
        let answered = post(client, &path, &[json!({"k": key, "v": value})]).await;
        if answered {
            told.0 = Some(value);
        }
        answered
    }
}

/// Whether it was acknowledged; false: there was no answer.
async fn post(client: &Client, path: &str, rows: &[Json]) -> bool {
    let kind = match rows {
        [_] => "application/json",
        _ => "application/x-ndjson",
    };
    let body: String = rows.iter().map(|row| format!("{row}\n")).collect();
    let asked = client.post(path).header("content-type", kind).body(body);
    let Ok(answer) = asked.send().await else {
        return false;
    };
    let status = answer.status().as_u16();
    let Ok(text) = answer.text().await else {
        return false;
    };
    assert_eq!(status, 202, "{path}: {text}");
    true
}

/// Every acknowledged row is there once, every other at most once, and those of an atomic request
/// together; each key has the last acknowledged value, or one that was sent later.
pub fn check(db: &Db, ledgers: &[Ledger]) {
    let there: HashMap<u64, u64> = db.counts("events", "id").into_iter().collect();
    let count = |id: &u64| there.get(id).copied().unwrap_or(0);
    let mut told = 0;
    for ledger in ledgers {
        told += ledger.acknowledged.len();
        for id in &ledger.acknowledged {
            assert_eq!(count(id), 1, "row {id} was acknowledged");
        }
        for (rows, atomic) in &ledger.unanswered {
            let found: Vec<u64> = rows.iter().map(count).collect();
            assert!(found.iter().all(|n| *n <= 1), "{rows:?}: {found:?}");
            assert!(!atomic || found.iter().all(|n| *n == found[0]), "{rows:?}");
            told += found.iter().filter(|n| **n > 0).count();
        }
    }
    assert_eq!(there.len(), told, "nothing is there that nobody has sent");
    check_values(db, ledgers);
    assert_eq!(db.sql("select count(*) from windrow_rejected"), "0");
}

fn check_values(db: &Db, ledgers: &[Ledger]) {
    let text = db.sql("select k, v from state");
    let there: HashMap<u64, u64> = text
        .lines()
        .map(|line| {
            let (k, v) = line.split_once('|').unwrap();
            (k.parse().unwrap(), v.parse().unwrap())
        })
        .collect();
    // The ledgers of a client follow each other.
    let mut last: HashMap<u64, (Option<u64>, u64)> = HashMap::new();
    for ledger in ledgers {
        for (key, (acknowledged, sent)) in &ledger.values {
            let known = last.entry(*key).or_default();
            known.0 = acknowledged.or(known.0);
            known.1 = *sent;
        }
    }
    for (key, (acknowledged, sent)) in last {
        let Some(acknowledged) = acknowledged else {
            continue;
        };
        let value = there.get(&key).copied();
        assert!(
            value.is_some_and(|v| (acknowledged..=sent).contains(&v)),
            "key {key} has {value:?}; {acknowledged} was acknowledged, {sent} was sent last"
        );
    }
}
