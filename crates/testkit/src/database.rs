//! A database for one test, on a server that all tests share where there is one.

use std::fmt::Debug;

use anyhow::{Context, Result};
use rand::RngExt;

/// A kind of server that tests can share.
pub trait Server: Debug + Sized {
    /// The environment variable that names a server for all tests to share, as a URL of somebody
    /// who may create databases.
    const SHARED: &'static str;

    /// A server of the test's own, with an empty database: its URL.
    ///
    /// # Errors
    /// The server cannot be started.
    fn private() -> Result<(Self, String)>;

    /// Runs SQL; rows come back one a line, columns separated by `|`.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses a statement.
    fn sql(url: &str, text: &str) -> Result<String>;

    /// The statement that creates a database.
    fn creation(name: &str) -> String;

    /// The statement that drops it, with all connections to it.
    fn removal(name: &str) -> String;
}

/// An empty database; dropped when this is dropped.
#[derive(Debug)]
pub struct Database<S: Server> {
    url: String,
    home: Home<S>,
}

#[derive(Debug)]
enum Home<S> {
    Private { _server: S },
    Shared { maintenance: String, name: String },
}

impl<S: Server> Database<S> {
    /// On the server that [`Server::SHARED`] names, or else on a private one, started for it.
    ///
    /// # Errors
    /// The server cannot be reached, or (private) cannot be started.
    pub fn new() -> Result<Self> {
        match std::env::var(S::SHARED) {
            Ok(url) if !url.is_empty() => Self::on_shared(url),
            _ => {
                let (server, url) = S::private()?;
                let home = Home::Private { _server: server };
                Ok(Self { url, home })
            }
        }
    }

    fn on_shared(maintenance: String) -> Result<Self> {
        let name = format!("windrow_{:016x}", rand::rng().random::<u64>());
        S::sql(&maintenance, &S::creation(&name))
            .with_context(|| format!("the server that {} names", S::SHARED))?;
        Ok(Self {
            url: with_database(&maintenance, &name),
            home: Home::Shared { maintenance, name },
        })
    }

    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs SQL in it; rows come back one a line, columns separated by `|`.
    ///
    /// # Errors
    /// As [`Server::sql`].
    pub fn exec(&self, sql: &str) -> Result<String> {
        S::sql(&self.url, sql)
    }
}

impl<S: Server> Drop for Database<S> {
    fn drop(&mut self) {
        if let Home::Shared { maintenance, name } = &self.home {
            // A server that is gone has taken the database with it.
            S::sql(maintenance, &S::removal(name)).ok();
        }
    }
}

/// The same URL for another database.
pub(crate) fn with_database(url: &str, database: &str) -> String {
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
