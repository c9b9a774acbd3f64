//! The gateway, the database's server, or both are killed at any moment: every acknowledged row is
//! in the database once, what a client sent keeps its order, and each key has the last acknowledged
//! value or a later one.
//!
//! `./test kill` is the long form. A seed is printed for each lap; `WINDROW_KILL_SEED` repeats it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tempfile::TempDir;
use tokio::task::{JoinHandle, block_in_place};
use windrow_testkit::command;
use windrow_testkit::mariadb::MariaDb;
use windrow_testkit::postgres::Postgres;

use crate::load::{self, Ledger, Shared, Way};
use crate::sql::sql_config;
use crate::support::{Db, Gateway, TEST_TIMEOUT, draining, number, spool};

/// Kills, unless the environment says otherwise.
const ROUNDS: usize = 6;

/// Kills between two looks at what has arrived.
const LAP: usize = 50;

/// Each writes parents before their children, among other rows.
const CLIENTS: u64 = 10;

/// What holds the database.
enum Server {
    Postgres(Postgres),
    Maria(MariaDb),
    /// The file is written by the gateway itself.
    Sqlite,
}

impl Server {
    /// A database with the tables that clients write to. Half of those of PostgreSQL answer a
    /// commit before it is on the disk, and come back without the last of them.
    fn database(&self, seed: u64) -> Db {
        let db = match self {
            Self::Postgres(server) => Db::At(server.create_database().unwrap()),
            Self::Maria(server) => Db::At(server.create_database().unwrap()),
            Self::Sqlite => Db::sqlite(),
        };
        load::make_tables(&db);
        if matches!(self, Self::Postgres(_)) && seed % 2 == 1 {
            let name = db.sql("select current_database()");
            db.sql(&format!(
                "alter database {name} set synchronous_commit = off"
            ));
        }
        db
    }

    fn kill9(&self) {
        block_in_place(|| match self {
            Self::Postgres(server) => server.kill9().unwrap(),
            Self::Maria(server) => server.kill9().unwrap(),
            Self::Sqlite => {}
        });
    }

    fn restart(&self) {
        block_in_place(|| match self {
            Self::Postgres(server) => server.restart().unwrap(),
            Self::Maria(server) => server.restart().unwrap(),
            Self::Sqlite => {}
        });
    }
}

#[expect(
    clippy::print_stdout,
    reason = "a seed that nobody knows repeats nothing"
)]
async fn killed_at_any_moment(server: Server) {
    let chance = usize::from(rand::random::<u16>());
    let seed = number("WINDROW_KILL_SEED", chance) as u64;
    let rounds = number("WINDROW_KILL_ROUNDS", ROUNDS);
    for (lap, done) in (0..rounds).step_by(LAP).enumerate() {
        let (seed, rounds) = (seed + lap as u64, LAP.min(rounds - done));
        println!("{done} kills went well; {rounds} more with WINDROW_KILL_SEED={seed}");
        Lap::begin(&server, seed).run(rounds).await;
    }
}

/// Some kills in a row, with one database and one spool.
struct Lap<'s> {
    server: &'s Server,
    db: Db,
    directory: TempDir,
    random: StdRng,
    shared: Arc<Shared>,
    gateway: Option<Gateway>,
    clients: Vec<JoinHandle<Ledger>>,
    ledgers: Vec<Ledger>,
}

impl<'s> Lap<'s> {
    fn begin(server: &'s Server, seed: u64) -> Self {
        Self {
            server,
            db: server.database(seed),
            directory: spool(),
            random: StdRng::seed_from_u64(seed),
            shared: Arc::default(),
            gateway: None,
            clients: Vec::new(),
            ledgers: Vec::new(),
        }
    }

    async fn run(mut self, rounds: usize) {
        for _ in 0..rounds {
            self.serve();
            let more = self.random.random_range(1..400);
            self.acknowledged(more).await;
            match (self.server, self.random.random_range(0..3)) {
                (Server::Sqlite, _) | (_, 0) => self.kill_gateway().await,
                (_, 1) => {
                    self.server.kill9();
                    self.while_away().await;
                }
                _ => {
                    self.kill_both().await;
                    if self.random.random() {
                        self.serve();
                        self.while_away().await;
                    }
                }
            }
            self.server.restart();
        }
        self.kill_gateway().await;
        command::run(&mut draining(&self.db.url(), self.directory.path())).ends(0);
        load::check(&self.db, &self.ledgers);
    }

    /// A gateway that clients write to.
    fn serve(&mut self) {
        if self.gateway.is_some() {
            return;
        }
        let (url, directory) = (self.db.url(), self.directory.path());
        let is_postgres = matches!(self.server, Server::Postgres(_));
        let more: &[&str] = if is_postgres {
            &["--pg", "127.0.0.1:0"]
        } else {
            &[]
        };
        let gateway = block_in_place(|| Gateway::with(&url, directory, more));
        for client in 0..CLIENTS {
            let way = match gateway.process.pg_address() {
                Some(_) if client % 2 == 1 => Way::Sql(Box::new(sql_config(&gateway, &self.db))),
                _ => Way::Http(gateway.process.url("")),
            };
            let seed = self.random.random();
            let writing = load::write(way, client, seed, Arc::clone(&self.shared));
            self.clients.push(tokio::spawn(writing));
        }
        self.gateway = Some(gateway);
    }

    /// Waits until so many more requests are acknowledged.
    async fn acknowledged(&self, more: u64) {
        let goal = self.shared.acknowledged() + more;
        let start = Instant::now();
        while self.shared.acknowledged() < goal {
            let log = || self.gateway.as_ref().map(|gateway| gateway.process.log());
            assert!(
                start.elapsed() < TEST_TIMEOUT,
                "{}",
                log().unwrap_or_default()
            );
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Some writes are taken while the server is away.
    async fn while_away(&mut self) {
        let more = self.random.random_range(0..100);
        self.acknowledged(more).await;
    }

    async fn kill_both(&mut self) {
        match self.random.random() {
            true => {
                self.server.kill9();
                self.kill_gateway().await;
            }
            false => {
                self.kill_gateway().await;
                self.server.kill9();
            }
        }
    }

    async fn kill_gateway(&mut self) {
        let Some(gateway) = self.gateway.take() else {
            return;
        };
        gateway.kill9();
        for client in self.clients.drain(..) {
            self.ledgers.push(client.await.unwrap());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn before_postgresql() {
    let server = Postgres::builder().fsync(true).start().unwrap();
    killed_at_any_moment(Server::Postgres(server)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn before_mariadb() {
    let server = MariaDb::builder().fsync(true).start().unwrap();
    killed_at_any_moment(Server::Maria(server)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn before_sqlite() {
    killed_at_any_moment(Server::Sqlite).await;
}
