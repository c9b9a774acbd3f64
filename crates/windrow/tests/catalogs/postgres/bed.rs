//! A server with two databases, and the program before one of them.

use std::path::Path;

use tokio::runtime::Runtime;
use windrow_testkit::pgclient::Address;
use windrow_testkit::postgres::Postgres;
use windrow_testkit::process::Windrow;

use super::catalog::{OTHER_ROLE, ROLE};
use super::play::Session;
use crate::tally::{Level, Tally};
use crate::turnstile::Turnstile;

/// For how long the first write waits for others: long enough for all that are sent at the same
/// time.
const GATHERED: &str = "15ms";

/// What all cases share.
pub struct Bed {
    /// The way through the program, as the clients' role.
    pub gateway: Address,
    /// The judge's database, as the clients' role.
    pub judged_address: Address,
    /// A superuser past the program, in its database.
    pub tried: Session,
    /// A superuser in the judge's database.
    pub judged: Session,
    /// Between the program and its database.
    pub turnstile: Turnstile,
    tally: Tally,
    cases: u64,
    windrow: Windrow,
    _server: Postgres,
    _runtime: Runtime,
}

impl Bed {
    /// Starts everything. `direct`: the sources come to the server itself, which must be explained
    /// all the more.
    pub fn start(direct: bool) -> Self {
        let server = Postgres::start().unwrap();
        let roles = format!(
            "create role {ROLE} login; create role {OTHER_ROLE}; grant {OTHER_ROLE} to {ROLE}"
        );
        server.exec(&roles).unwrap();
        let tried = Address::of(&server.create_database().unwrap()).unwrap();
        let judged = Address::of(&server.create_database().unwrap()).unwrap();
        let runtime = Runtime::new().unwrap();
        let turnstile = runtime.block_on(Turnstile::before(tried.socket)).unwrap();
        let through = as_client(&tried).at(turnstile.address());
        let url = format!("{}?sslmode=disable", through.url());
        let program = Path::new(env!("CARGO_BIN_EXE_windrow"));
        let options = ["--to", &url, "--pg", "127.0.0.1:0", "--max-wait", GATHERED];
        let windrow = Windrow::serve(program, &options).unwrap();
        let gateway = match direct {
            true => through,
            false => through.at(windrow.pg_address().unwrap()),
        };
        Self {
            gateway,
            judged_address: as_client(&judged),
            tried: Session::open(&tried).unwrap(),
            judged: Session::open(&judged).unwrap(),
            turnstile,
            tally: Tally::default(),
            cases: 0,
            windrow,
            _server: server,
            _runtime: runtime,
        }
    }

    /// A name for the next case's schema.
    pub fn next_schema(&mut self) -> String {
        self.cases += 1;
        format!("c{}", self.cases)
    }

    /// What the program has counted so far.
    pub fn level(&self) -> Level {
        Level::of(self.windrow.address())
    }

    /// Notes what a case has counted.
    pub fn count(&mut self, before: &Level, after: &Level) {
        self.tally.count(before, after);
    }

    /// How the cases went.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }
}

fn as_client(address: &Address) -> Address {
    Address {
        role: ROLE.into(),
        ..address.clone()
    }
}
