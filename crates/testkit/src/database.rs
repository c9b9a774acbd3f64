//! A database for one test, on a server that all tests share where there is one.

use std::fmt::Debug;

use anyhow::{Context, Result};
use rand::RngExt;

/// A kind of server that tests can share.
pub trait TestServer: Debug + Sized {
    /// The environment variable that names a server for all tests to share, as a URL of a role
    /// that may create databases.
    const SHARED: &'static str;

    /// Runs SQL; rows come back one a line, columns separated by `|`.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses a statement.
    fn sql(url: &str, text: &str) -> Result<String>;

    /// Returns the statement that creates a database.
    fn creation(name: &str) -> String;

    /// Returns the statement that drops it, with all connections to it.
    fn removal(name: &str) -> String;

    /// Returns the URL for the test's own SQL, if that is another one than a client's.
    fn direct(&self) -> Option<&str> {
        None
    }
}

/// An empty database; dropped when this is dropped.
#[derive(Debug)]
pub struct TestDatabase<S: TestServer> {
    url: String,
    home: Home<S>,
}

#[derive(Debug)]
enum Home<S> {
    Private(S),
    Shared { maintenance: String, name: String },
}

impl<S: TestServer> TestDatabase<S> {
    /// Makes a database on the server that [`TestServer::SHARED`] names; `None` if it names none.
    pub(crate) fn on_shared() -> Result<Option<Self>> {
        let maintenance = match std::env::var(S::SHARED) {
            Ok(url) if !url.is_empty() => url,
            _ => return Ok(None),
        };
        let name = format!("windrow_{:016x}", rand::rng().random::<u64>());
        S::sql(&maintenance, &S::creation(&name))
            .with_context(|| format!("the server that {} names", S::SHARED))?;
        Ok(Some(Self {
            url: with_database(&maintenance, &name),
            home: Home::Shared { maintenance, name },
        }))
    }

    /// Makes the empty database at `url` on a server of the test's own.
    pub(crate) fn on_private(server: S, url: String) -> Self {
        Self {
            url,
            home: Home::Private(server),
        }
    }

    /// Returns the database's URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the server, if it is the test's own.
    pub fn private(&self) -> Option<&S> {
        match &self.home {
            Home::Private(server) => Some(server),
            Home::Shared { .. } => None,
        }
    }

    /// Runs SQL in it; rows come back one a line, columns separated by `|`.
    ///
    /// # Errors
    /// As [`TestServer::sql`].
    pub fn exec(&self, sql: &str) -> Result<String> {
        let direct = self.private().and_then(S::direct);
        S::sql(direct.unwrap_or(&self.url), sql)
    }
}

impl<S: TestServer> Drop for TestDatabase<S> {
    fn drop(&mut self) {
        if let Home::Shared { maintenance, name } = &self.home {
            // A server that is gone has taken the database with it.
            S::sql(maintenance, &S::removal(name)).ok();
        }
    }
}

/// Returns the same URL for another database.
fn with_database(url: &str, database: &str) -> String {
    let (base, query) = url
        .split_once('?')
        .map_or((url, None), |(b, q)| (b, Some(q)));
    let (scheme, rest) = base.split_once("://").unwrap_or(("", base));
    let authority = rest.split('/').next().unwrap_or_default();
    let query = query.map(|q| format!("?{q}")).unwrap_or_default();
    format!("{scheme}://{authority}/{database}{query}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_database_of_a_url_is_replaced() {
        for (from, to) in [
            ("mysql://u@h:1/mysql", "mysql://u@h:1/x"),
            ("postgres://u:p@h:1", "postgres://u:p@h:1/x"),
            (
                "postgresql://h/a?host=/tmp/s",
                "postgresql://h/x?host=/tmp/s",
            ),
        ] {
            assert_eq!(with_database(from, "x"), to);
        }
    }
}
