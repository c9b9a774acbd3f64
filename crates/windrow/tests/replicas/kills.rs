//! The gateway is killed at any moment, while clients write over HTTP and in SQL: the replicas are
//! equal to the primary once they have caught up.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::json;
use tokio_postgres::Client;

use crate::sql;
use crate::support::{Db, Place, TEST_TIMEOUT, check, client, number};

/// Kills, unless the environment says otherwise.
const ROUNDS: usize = 3;

const CLIENTS: u64 = 4;

const KEYS: u64 = 40;

/// What clients have in common.
#[derive(Default)]
pub struct Load {
    pub answered: AtomicU64,
    /// They are to end.
    pub stop: AtomicBool,
}

impl Load {
    /// Waits until so many more are answered.
    pub async fn grows(&self, by: u64, log: impl Fn() -> String) {
        let start = std::time::Instant::now();
        let goal = self.answered.load(Ordering::Relaxed) + by;
        while self.answered.load(Ordering::Relaxed) < goal {
            assert!(start.elapsed() < TEST_TIMEOUT, "{}", log());
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }
}

/// Inserts with keys that are counted up, upserts, updates, deletes, until there is no answer.
pub async fn write(url: String, seed: u64, load: Arc<Load>) {
    let (mut random, client) = (StdRng::seed_from_u64(seed), client());
    while !load.stop.load(Ordering::Relaxed) {
        let (key, value) = (random.random_range(1..KEYS), random.random::<u32>() / 4);
        let of_key = format!("{url}/v1/tables/state/rows/{key}");
        let asked = match random.random_range(0..5) {
            0 => client
                .post(format!("{url}/v1/tables/events/rows"))
                .json(&json!({"v": value})),
            1 | 2 => client
                .post(format!("{url}/v1/tables/state/rows?on_conflict=update"))
                .json(&json!({"k": key, "v": value})),
            3 => client.patch(of_key).json(&json!({"v": value})),
            _ => client.delete(of_key),
        };
        match asked.send().await {
            Ok(_) => load.answered.fetch_add(1, Ordering::Relaxed),
            Err(_) => return,
        };
    }
}

/// The same by an SQL client.
async fn write_sql(client: Client, seed: u64, load: Arc<Load>) {
    let mut random = StdRng::seed_from_u64(seed);
    loop {
        let key = random.random_range(1..i32::try_from(KEYS).unwrap());
        let value = i64::from(random.random::<u32>() / 4);
        let written = match random.random_range(0..5) {
            0 => {
                let sql = "insert into events (v) values ($1)";
                client.execute(sql, &[&value]).await
            }
            1 | 2 => {
                let sql = "insert into state values ($1, $2) on conflict (k) do update set v = excluded.v";
                client.execute(sql, &[&key, &value]).await
            }
            3 => {
                let sql = "update state set v = v + $2 where k = $1";
                client.execute(sql, &[&key, &value]).await
            }
            _ => {
                let sql = "delete from state where k = $1";
                client.execute(sql, &[&key]).await
            }
        };
        match written {
            Err(error) if error.as_db_error().is_none() => return,
            _ => load.answered.fetch_add(1, Ordering::Relaxed),
        };
    }
}

async fn killed_at_any_moment(primary: Db, events: &str, replicas: [(Db, &str); 2], seed: u64) {
    primary.sql(events);
    primary.sql(STATE);
    for (replica, events) in &replicas {
        replica.sql(events);
        replica.sql(STATE);
    }
    let urls = replicas.each_ref().map(|(db, _)| db.url());
    let place = Place::of("primary", &[("one", &urls[0]), ("two", &urls[1])], "");
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..number("WINDROW_KILL_ROUNDS", ROUNDS) {
        let speaks_sql = matches!(primary, Db::Postgres(_));
        let more: &[&str] = if speaks_sql {
            &["--pg", "127.0.0.1:0"]
        } else {
            &[]
        };
        let gateway = place.start(&primary.url(), more);
        let load = Arc::<Load>::default();
        let goal = random.random_range(1..300);
        let mut clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (url, seed) = (gateway.process.url(""), random.random());
                tokio::spawn(write(url, seed, Arc::clone(&load)))
            })
            .collect();
        for _ in 0..if speaks_sql { CLIENTS } else { 0 } {
            let client = sql::client(&gateway, &primary.url()).await;
            let writing = write_sql(client, random.random(), Arc::clone(&load));
            clients.push(tokio::spawn(writing));
        }
        load.grows(goal, || gateway.process.log()).await;
        gateway.kill9();
        for client in clients {
            client.await.unwrap();
        }
    }
    let gateway = place.start(&primary.url(), &[]);
    gateway.level().await;
    for url in &urls {
        let told = check(&primary.url(), url, &[]);
        assert_eq!(told.status, 0, "{}{}", told.out, gateway.process.log());
    }
    gateway.stop();
}

pub const STATE: &str = "create table state (k int primary key, v bigint)";
pub const PG: &str =
    "create table events (id bigint generated always as identity primary key, v bigint)";
pub const MARIA: &str = "create table events (id bigint auto_increment primary key, v bigint)";
pub const LITE: &str = "create table events (id integer primary key, v bigint)";

#[tokio::test(flavor = "multi_thread")]
async fn behind_postgresql() {
    let replicas = [(Db::mariadb(), MARIA), (Db::sqlite(), LITE)];
    killed_at_any_moment(Db::postgres(), PG, replicas, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_postgresql_behind_postgresql() {
    let replicas = [(Db::postgres(), PG), (Db::postgres(), PG)];
    killed_at_any_moment(Db::postgres(), PG, replicas, 4).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_mariadb() {
    let replicas = [(Db::postgres(), PG), (Db::sqlite(), LITE)];
    killed_at_any_moment(Db::mariadb(), MARIA, replicas, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_sqlite() {
    let replicas = [(Db::postgres(), PG), (Db::mariadb(), MARIA)];
    killed_at_any_moment(Db::sqlite(), LITE, replicas, 3).await;
}
