//! The stand-in: a PostgreSQL behind a proxy that passes for CockroachDB.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};

use super::line;
use super::shared::{Trouble, Troubles, Upstream};
use crate::listener::Listener;
use crate::postgres;

/// The version that the stand-in reports.
pub const VERSION: &str = "CockroachDB CCL v24.1.0 (x86_64-pc-linux-gnu, built 2024/05/15 21:28:29, go1.22.2 X:nocoverageredesign)";

/// Objects of CockroachDB that PostgreSQL lacks.
const LAY: &str = "\
create sequence windrow_rowid;
create function unique_rowid() returns int8 language sql volatile as 'select nextval(''windrow_rowid'')'";

/// A stand-in in the making.
#[derive(Clone, Debug)]
pub struct StandInBuilder {
    version: String,
    reports: bool,
}

impl StandInBuilder {
    /// Another version than [`VERSION`].
    #[must_use]
    pub fn version(mut self, version: &str) -> Self {
        self.version = version.to_owned();
        self
    }

    /// Reports the version only to `select version()`, as a stand-in behind a pooler would.
    #[must_use]
    pub fn silent(mut self) -> Self {
        self.reports = false;
        self
    }

    /// Makes an empty database and listens. Needs a tokio runtime, which must live as long as the
    /// stand-in.
    ///
    /// # Errors
    /// PostgreSQL cannot be started, or no port can be opened on 127.0.0.1.
    pub async fn start(self) -> Result<StandIn> {
        let behind = postgres::shared()?;
        behind.exec(LAY)?;
        let upstream = upstream(behind.url())?.to_owned();
        let troubles = Arc::new(Troubles::default());
        let known = Arc::new(Upstream {
            url: behind.url().to_owned(),
            address: upstream.clone(),
            version: self.version,
            reports: self.reports,
        });
        let shared = Arc::clone(&troubles);
        let listener = Listener::start(move |client| {
            let (upstream, troubles) = (Arc::clone(&known), Arc::clone(&shared));
            async move {
                // A connection that fails is closed, which its client sees.
                line::run(client, &upstream, &troubles).await.ok();
            }
        });
        let listener = listener.await?;
        let address = listener.address().to_string();
        Ok(StandIn {
            url: behind.url().replacen(&upstream, &address, 1),
            listener,
            behind,
            troubles,
        })
    }
}

/// A PostgreSQL that passes for CockroachDB. It and all its connections end when it is dropped.
#[derive(Debug)]
pub struct StandIn {
    url: String,
    listener: Listener,
    behind: postgres::PostgresDatabase,
    troubles: Arc<Troubles>,
}

impl StandIn {
    /// Prepares a stand-in with other settings.
    pub fn builder() -> StandInBuilder {
        StandInBuilder {
            version: VERSION.to_owned(),
            reports: true,
        }
    }

    /// Returns the URL, which begins with `postgres://`.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Returns the database behind the proxy.
    pub(super) fn behind(&self) -> &postgres::PostgresDatabase {
        &self.behind
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
        self.troubles.add(troubles);
    }

    /// Counts the troubles that are still to come.
    pub fn troubles_left(&self) -> usize {
        self.troubles.left()
    }

    /// Returns the statements that were refused so far, each with the words of the refusal.
    pub fn refused(&self) -> Vec<(String, String)> {
        self.troubles.refused()
    }

    /// Statements with `UPSERT` so far.
    pub fn upserts(&self) -> u64 {
        self.troubles.upserts()
    }
}

/// Returns the `host:port` of a URL.
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
