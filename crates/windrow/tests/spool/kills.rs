//! The gateway is killed at any moment: every acknowledged row is in the database once, and each
//! key has the last acknowledged value or a later one.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use windrow_testkit::command;

use crate::load::{self, Shared, TABLES};
use crate::support::{Db, Gateway, PATIENCE, draining, number, spool};

/// Kills, unless the environment says otherwise.
const ROUNDS: usize = 4;

const CLIENTS: u64 = 6;

async fn killed_at_any_moment(db: Db, seed: u64) {
    db.sql(TABLES);
    let (directory, shared) = (spool(), Arc::new(Shared::default()));
    let mut random = StdRng::seed_from_u64(seed);
    let mut ledgers = Vec::new();
    for _ in 0..number("WINDROW_KILL_ROUNDS", ROUNDS) {
        let gateway = Gateway::start(&db.url(), directory.path());
        let goal = shared.acknowledged() + random.random_range(1..400);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let (url, seed) = (gateway.process.url(""), random.random());
                tokio::spawn(load::write(url, client, seed, Arc::clone(&shared)))
            })
            .collect();
        let start = std::time::Instant::now();
        while shared.acknowledged() < goal {
            assert!(start.elapsed() < PATIENCE, "{}", gateway.process.log());
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        gateway.kill9();
        for client in clients {
            ledgers.push(client.await.unwrap());
        }
    }
    command::run(&mut draining(&db.url(), directory.path())).ends(0);
    load::check(&db, &ledgers);
}

#[tokio::test(flavor = "multi_thread")]
async fn before_postgresql() {
    killed_at_any_moment(Db::postgres(), 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn before_mariadb() {
    killed_at_any_moment(Db::mariadb(), 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn before_sqlite() {
    killed_at_any_moment(Db::sqlite(), 3).await;
}
