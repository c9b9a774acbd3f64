//! Clients that write all the time, and a ledger of what they were told.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::Client;
use serde_json::{Value as Json, json};

use crate::support::{Db, client};

/// The tables that clients write to. A row that comes twice is seen: nothing keeps it out, but for
/// parents, where the second would be a dead letter.
const TABLES: &str = "create table state (k int primary key, v bigint);
    create table parents (id bigint primary key, client int);
    create table children (id bigint, client int, parent bigint not null,
        foreign key (parent) references parents (id));";

/// All rows but those of `state`. No two have one number.
const ROWS: &str = "(select id from events union all select id from parents
    union all select id from children) as every_row";

/// Keys of each client.
const KEYS: u64 = 3;

/// Makes the tables that clients write to. That of the events counts its rows, in the order in
/// which they come.
pub fn make_tables(db: &Db) {
    let url = db.url();
    let counted = match url.split_once(':') {
        Some(("postgres", _)) => "bigserial",
        Some(("mysql", _)) => "bigint auto_increment",
        _ => "integer",
    };
    db.sql(&format!(
        "create table events (place {counted} primary key, id bigint, client int); {TABLES}"
    ));
}

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

/// How a client reaches the gateway.
pub enum Way {
    /// HTTP, at this URL.
    Http(String),
    /// PostgreSQL's protocol.
    Sql(Box<tokio_postgres::Config>),
}

/// Writes until there is no answer.
pub async fn write(way: Way, number: u64, seed: u64, shared: Arc<Shared>) -> Ledger {
    let mut random = StdRng::seed_from_u64(seed);
    // Who is not let in has written nothing: the server that says who may come in is away.
    let Some(line) = Line::to(way).await else {
        return Ledger::default();
    };
    let mut writing = Writing {
        line,
        number,
        ledger: Ledger::default(),
    };
    loop {
        let answered = match random.random_range(0..12) {
            0..4 => writing.insert(shared.numbers(1), false).await,
            4..6 => {
                let rows = shared.numbers(random.random_range(2..30));
                writing.insert(rows, false).await
            }
            6 => writing.insert(shared.numbers(4), true).await,
            7..9 => {
                let children = random.random_range(1..4);
                writing.family(&shared.numbers(children + 1)).await
            }
            _ => {
                let key = number * KEYS + random.random_range(0..KEYS);
                writing.upsert(key, shared.numbers(1)[0]).await
            }
        };
        if !answered {
            return writing.ledger;
        }
        shared.acknowledged.fetch_add(1, Ordering::Relaxed);
    }
}

/// A client's connection.
enum Line {
    Http(String, Client),
    Sql(tokio_postgres::Client),
}

impl Line {
    async fn to(way: Way) -> Option<Self> {
        let config = match way {
            Way::Http(url) => return Some(Self::Http(url, client())),
            Way::Sql(config) => config,
        };
        let (client, connection) = config.connect(tokio_postgres::NoTls).await.ok()?;
        tokio::spawn(connection);
        Some(Self::Sql(client))
    }

    /// Inserts a row, or what is there gets its values. Whether that was acknowledged.
    async fn execute(client: &tokio_postgres::Client, path: &str, row: &Json) -> bool {
        let (table, _) = path.split_once('/').unwrap();
        let row = row.as_object().unwrap();
        let names: Vec<_> = row.keys().map(String::as_str).collect();
        let values: Vec<_> = row.values().map(ToString::to_string).collect();
        let (names, values) = (names.join(", "), values.join(", "));
        let update = match path.contains("on_conflict=update") {
            true => "on conflict (k) do update set v = excluded.v",
            false => "",
        };
        let sql = format!("insert into {table} ({names}) values ({values}) {update}");
        client.simple_query(&sql).await.is_ok()
    }
}

/// A client.
struct Writing {
    line: Line,
    number: u64,
    ledger: Ledger,
}

impl Writing {
    async fn insert(&mut self, rows: Vec<u64>, atomic: bool) -> bool {
        if matches!(self.line, Line::Sql(_)) && rows.len() > 1 {
            // Each is a statement, and acknowledged by itself.
            for row in rows {
                if !Box::pin(self.insert(vec![row], false)).await {
                    return false;
                }
            }
            return true;
        }
        let query = if atomic { "?atomic=true" } else { "" };
        let number = self.number;
        let body = |id: &u64| json!({"id": id, "client": number});
        let bodies: Vec<Json> = rows.iter().map(body).collect();
        let path = format!("events/rows{query}");
        self.send(&path, rows, &bodies, atomic).await
    }

    /// A parent, and once it is acknowledged its children.
    async fn family(&mut self, rows: &[u64]) -> bool {
        let (parent, children) = (rows[0], &rows[1..]);
        let number = self.number;
        let body = json!({"id": parent, "client": number});
        if !self
            .send("parents/rows", vec![parent], &[body], false)
            .await
        {
            return false;
        }
        let body = |id: &u64| json!({"id": id, "client": number, "parent": parent});
        let bodies: Vec<Json> = children.iter().map(body).collect();
        self.send("children/rows", children.to_vec(), &bodies, false)
            .await
    }

    async fn send(&mut self, path: &str, rows: Vec<u64>, bodies: &[Json], atomic: bool) -> bool {
        let answered = self.post(path, bodies).await;
        match answered {
            true => self.ledger.acknowledged.extend(rows),
            false => self.ledger.unanswered.push((rows, atomic)),
        }
        answered
    }

    async fn upsert(&mut self, key: u64, value: u64) -> bool {
        let row = json!({"k": key, "v": value});
        self.ledger.values.entry(key).or_default().1 = value;
        let answered = self.post("state/rows?on_conflict=update", &[row]).await;
        if answered {
            self.ledger.values.entry(key).or_default().0 = Some(value);
        }
        answered
    }

    /// Whether it was acknowledged; false: there was no answer.
    async fn post(&self, path: &str, rows: &[Json]) -> bool {
        let (url, client) = match &self.line {
            Line::Http(url, client) => (url, client),
            Line::Sql(client) => {
                for row in rows {
                    if !Line::execute(client, path, row).await {
                        return false;
                    }
                }
                return true;
            }
        };
        let kind = match rows {
            [_] => "application/json",
            _ => "application/x-ndjson",
        };
        let body: String = rows.iter().map(|row| format!("{row}\n")).collect();
        let url = format!("{url}/v1/tables/{path}");
        let asked = client.post(url).header("content-type", kind);
        let Ok(answer) = asked.body(body).send().await else {
            return false;
        };
        let status = answer.status().as_u16();
        let Ok(text) = answer.text().await else {
            return false;
        };
        assert_eq!(status, 202, "{path}: {text}");
        true
    }
}

/// Every acknowledged row is there once, every other at most once, and those of an atomic request
/// together; what a client sent stands in its order; each key has the last acknowledged value, or
/// one that was sent later.
pub fn check(db: &Db, ledgers: &[Ledger]) {
    assert_eq!(db.sql("select message from windrow_rejected"), "");
    let there: HashMap<u64, u64> = db.counts(ROWS, "id").into_iter().collect();
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
    check_order(db);
    check_values(db, ledgers);
}

/// A client's numbers grow.
fn check_order(db: &Db) {
    let mut last: HashMap<u64, u64> = HashMap::new();
    for (client, id) in pairs(db, "select client, id from events order by place") {
        let before = last.insert(client, id);
        assert!(
            before < Some(id),
            "client {client}: {id} stands behind {before:?}"
        );
    }
}

fn check_values(db: &Db, ledgers: &[Ledger]) {
    let there: HashMap<u64, u64> = pairs(db, "select k, v from state").into_iter().collect();
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

/// Rows of two numbers.
fn pairs(db: &Db, query: &str) -> Vec<(u64, u64)> {
    let pair = |line: &str| {
        let (one, other) = line.split_once('|').unwrap();
        (one.parse().unwrap(), other.parse().unwrap())
    };
    db.sql(query).lines().map(pair).collect()
}
