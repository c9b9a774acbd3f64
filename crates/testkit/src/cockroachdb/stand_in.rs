//! The stand-in: a PostgreSQL behind a proxy that passes for CockroachDB.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::control::{Control, Trouble};
use super::line;
use super::upstream::Upstream;
use crate::postgres;

/// What the stand-in says of itself.
pub const VERSION: &str = "CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu, built 2024/05/15 21:28:29, go1.22.2 X:nocoverageredesign)";

/// What there is in CockroachDB and not behind the stand-in.
const LAY: &str = "\
create sequence windrow_rowid;
create function unique_rowid() returns int8 language sql volatile as 'select nextval(''windrow_rowid'')'";

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
        let known = Arc::new(Upstream {
            url: behind.url().to_owned(),
            address: upstream.clone(),
            version: self.version,
            reports: self.reports,
        });
        let end = CancellationToken::new();
        let (ended, accepting) = (
            end.clone(),
            line::accept(listener, known, Arc::clone(&control)),
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
