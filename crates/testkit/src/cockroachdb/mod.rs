//! CockroachDB for tests: the one that [`SHARED_SERVER`] names, or a stand-in.
//!
//! The stand-in is a real, private PostgreSQL behind a proxy that speaks as CockroachDB does: it
//! says so in `version()` and in the parameters of the connection, refuses what CockroachDB
//! refuses, in its words, knows `UPSERT` and `unique_rowid()`, and restarts or loses transactions
//! when it is told to. What it does not do is CockroachDB's planner, types and catalog: a test that
//! passes here says that nothing is asked that is documented not to be there.

mod back;
mod control;
mod front;
mod line;
mod refusals;
mod upsert;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use rand::RngExt;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::postgres;
use control::Control;
pub use control::Trouble;

/// The environment variable that names a CockroachDB for all tests to share, as the URL of a role
/// that may create databases.
pub const SHARED_SERVER: &str = "WINDROW_TEST_COCKROACHDB";

/// What the stand-in says of itself.
pub const VERSION: &str = "CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu, built 2024/05/15 21:28:29, go1.22.2 X:nocoverageredesign)";

/// What there is in CockroachDB and not behind the stand-in.
const LAY: &str = "\
create sequence windrow_rowid;
create function unique_rowid() returns int8 language sql volatile as 'select nextval(''windrow_rowid'')'";

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
        url: postgres::with_database(&maintenance, &name),
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

/// A stand-in in the making.
#[derive(Clone, Debug)]
pub struct Builder {
    version: String,
    reports: bool,
}

impl Builder {
    /// Another version than [`VERSION`].
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.version = version.to_owned();
        self
    }

    /// Its version is told only when it is asked for: as if a pooler stood in front of it.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.reports = false;
        self
    }

    /// Makes an empty database and listens in front of it. Needs a tokio runtime, which must live
    /// as long as the stand-in.
    ///
    /// # Errors
    /// PostgreSQL cannot be started, or no port can be opened on 127.0.0.1.
    pub async fn start(self) -> Result<StandIn> {
        let behind = postgres::shared()?;
        behind.exec(LAY)?;
        let upstream = upstream(behind.url())?.to_owned();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let control = Arc::new(Control::default());
        let place = Arc::new(Place {
            url: behind.url().to_owned(),
            upstream: upstream.clone(),
            version: self.version,
            reports: self.reports,
        });
        let end = CancellationToken::new();
        let (ended, accepting) = (
            end.clone(),
            line::accept(listener, place, Arc::clone(&control)),
        );
        tokio::spawn(async move {
            ended.run_until_cancelled(accepting).await;
        });
        Ok(StandIn {
            url: behind.url().replacen(&upstream, &address.to_string(), 1),
            address,
            behind,
            control,
            _end: end.drop_guard(),
        })
    }
}

/// What connections need to know.
#[derive(Debug)]
struct Place {
    /// The database behind, for what has to be looked up.
    url: String,
    /// Its `host:port`.
    upstream: String,
    version: String,
    reports: bool,
}

/// A PostgreSQL that passes for CockroachDB. It and all its connections end when it is dropped.
#[derive(Debug)]
pub struct StandIn {
    url: String,
    address: SocketAddr,
    behind: postgres::Database,
    control: Arc<Control>,
    _end: DropGuard,
}

impl StandIn {
    /// A stand-in with other manners.
    pub fn builder() -> Builder {
        Builder {
            version: VERSION.to_owned(),
            reports: true,
        }
    }

    /// Its URL, which begins with `postgres://`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Runs SQL behind the proxy, in PostgreSQL's words.
    ///
    /// # Errors
    /// As [`postgres::psql`].
    pub fn exec(&self, sql: &str) -> Result<String> {
        self.behind.exec(sql)
    }

    /// The next transactions that write meet these, one each, in their order.
    pub fn trouble(&self, troubles: impl IntoIterator<Item = Trouble>) {
        self.control.add(troubles);
    }

    /// How many of those are still to come.
    pub fn troubles_left(&self) -> usize {
        self.control.left()
    }

    /// What was refused so far: texts of statements, with the words of the refusal.
    pub fn refused(&self) -> Vec<(String, String)> {
        self.control.refused()
    }

    /// Statements with `UPSERT` so far.
    pub fn upserts(&self) -> u64 {
        self.control.upserts()
    }
}

/// The `host:port` of a URL.
fn upstream(url: &str) -> Result<&str> {
    let rest = url.split_once("://").map(|(_, rest)| rest);
    let authority = rest.and_then(|rest| rest.split(['/', '?']).next());
    let host = authority.map(|authority| authority.rsplit('@').next().unwrap_or(authority));
    host.filter(|host| host.contains(':'))
        .context("the URL of the PostgreSQL behind the stand-in names no host:port")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_url_is_found() {
        assert_eq!(
            upstream("postgres://u@127.0.0.1:5/d").unwrap(),
            "127.0.0.1:5"
        );
        assert_eq!(upstream("postgres://u:p@h:5?x=y").unwrap(), "h:5");
        assert!(upstream("postgres:///d?host=/tmp").is_err());
    }
}
