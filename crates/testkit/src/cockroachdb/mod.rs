//! CockroachDB for tests: the one that [`SHARED_SERVER`] names, or a stand-in.
//!
//! The stand-in is a real, private PostgreSQL behind a proxy that speaks as CockroachDB does: it
//! says so in `version()` and in the parameters of the connection, refuses what CockroachDB
//! refuses, in its words, knows `UPSERT` and `unique_rowid()`, and restarts or loses transactions
//! when it is told to. What it does not do is CockroachDB's planner, types and catalog: a test that
//! passes here says that nothing is asked that is documented not to be there.

mod back;
mod control;
mod fates;
mod front;
mod line;
mod refusals;
mod stand_in;
mod upsert;
mod upstream;

use anyhow::{Context, Result};
use rand::RngExt;

use crate::database::with_database;
use crate::postgres;
pub use control::Trouble;
pub use stand_in::{Builder, StandIn, VERSION};

/// The environment variable that names a CockroachDB for all tests to share, as the URL of a role
/// that may create databases.
pub const SHARED_SERVER: &str = "WINDROW_TEST_COCKROACHDB";

/// An empty database. Dropped when this is dropped.
#[derive(Debug)]
pub struct Database {
    url: String,
    home: Home,
}

#[derive(Debug)]
enum Home {
    Real { maintenance: String, name: String },
    StandIn(Box<StandIn>),
}

/// A database on the server that [`SHARED_SERVER`] names, or else behind a stand-in. Needs a tokio
/// runtime, which must live as long as the database.
///
/// # Errors
/// The server cannot be reached, or PostgreSQL cannot be started.
pub async fn shared() -> Result<Database> {
    match std::env::var(SHARED_SERVER) {
        Ok(url) if !url.is_empty() => on_real(url),
        _ => {
            let stand_in = StandIn::builder().start().await?;
            Ok(Database {
                url: stand_in.url().to_owned(),
                home: Home::StandIn(Box::new(stand_in)),
            })
        }
    }
}

fn on_real(maintenance: String) -> Result<Database> {
    let name = format!("windrow_{:016x}", rand::rng().random::<u64>());
    postgres::psql(&maintenance, &format!("create database {name}"))
        .with_context(|| format!("the server that {SHARED_SERVER} names"))?;
    Ok(Database {
        url: with_database(&maintenance, &name),
        home: Home::Real { maintenance, name },
    })
}

impl Database {
    /// Its URL, which begins with `postgres://`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs SQL in it; rows come back one a line, columns separated by `|`.
    ///
    /// # Errors
    /// As [`postgres::psql`].
    pub fn exec(&self, sql: &str) -> Result<String> {
        match &self.home {
            Home::Real { .. } => postgres::psql(&self.url, sql),
            Home::StandIn(stand_in) => stand_in.exec(sql),
        }
    }

    /// The stand-in, if it is one.
    pub fn stand_in(&self) -> Option<&StandIn> {
        match &self.home {
            Home::StandIn(stand_in) => Some(stand_in),
            Home::Real { .. } => None,
        }
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Home::Real { maintenance, name } = &self.home {
            // A server that is gone has taken the database with it.
            postgres::psql(maintenance, &format!("drop database {name} cascade")).ok();
        }
    }
}
