//! A database for one test, on a server that all tests share where there is one.

use anyhow::{Context, Result};
use rand::RngExt;

use super::client::{creation, sql};
use super::server::MariaDb;

/// The environment variable that names a server for all tests to share, as a URL of a user who may
/// create databases.
pub const SHARED_SERVER: &str = "WINDROW_TEST_MARIADB";

/// An empty database; dropped when this is dropped.
#[derive(Debug)]
pub struct Database {
    url: String,
    home: Home,
}

#[derive(Debug)]
enum Home {
    Private { _server: MariaDb },
    Shared { maintenance: String, name: String },
}

/// An empty database on the server that [`SHARED_SERVER`] names, or else on a private one, started
/// for it.
///
/// # Errors
/// The server cannot be reached, or (private) cannot be started.
pub fn shared() -> Result<Database> {
    match std::env::var(SHARED_SERVER) {
        Ok(url) if !url.is_empty() => on_shared(url),
        _ => {
            let server = MariaDb::start()?;
            Ok(Database {
                url: server.create_database()?,
                home: Home::Private { _server: server },
            })
        }
    }
}

fn on_shared(maintenance: String) -> Result<Database> {
    let name = format!("windrow_{:016x}", rand::rng().random::<u64>());
    sql(&maintenance, &creation(&name))
        .with_context(|| format!("the server that {SHARED_SERVER} names"))?;
    Ok(Database {
        url: with_database(&maintenance, &name),
        home: Home::Shared { maintenance, name },
    })
}

impl Database {
    /// Its URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Runs SQL in it; rows come back one a line, columns separated by `|`.
    ///
    /// # Errors
    /// As [`sql`].
    pub fn exec(&self, text: &str) -> Result<String> {
        sql(&self.url, text)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Home::Shared { maintenance, name } = &self.home {
            // A server that is gone has taken the database with it.
            sql(maintenance, &format!("drop database {name}")).ok();
        }
    }
}

/// The same URL for another database.
fn with_database(url: &str, database: &str) -> String {
    let (base, query) = url
        .split_once('?')
        .map_or((url, None), |(b, q)| (b, Some(q)));
    let (scheme, rest) = base.split_once("://").unwrap_or(("mysql", base));
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
            ("mysql://u:p@h:1", "mysql://u:p@h:1/x"),
            ("mysql://h/a?k=v", "mysql://h/x?k=v"),
        ] {
            assert_eq!(with_database(from, "x"), to);
        }
    }
}
