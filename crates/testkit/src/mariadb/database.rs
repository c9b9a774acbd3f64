//! Databases for tests.

use anyhow::Result;

use super::client::{creation, sql};
use super::server::MariaDb;
use crate::database::{TestDatabase, TestServer};

/// The environment variable that names a server for all tests to share, as a URL of a user who may
/// create databases.
pub const SHARED_SERVER: &str = "WINDROW_TEST_MARIADB";

/// An empty database; dropped when this is dropped.
pub type MariaDbDatabase = TestDatabase<MariaDb>;

/// Makes an empty database on the server that [`SHARED_SERVER`] names, or else on a private one,
/// started for it.
///
/// # Errors
/// The server cannot be reached, or (private) cannot be started.
pub fn shared() -> Result<MariaDbDatabase> {
    if let Some(database) = TestDatabase::on_shared()? {
        return Ok(database);
    }
    let server = MariaDb::start()?;
    let url = server.create_database()?;
    Ok(TestDatabase::on_private(server, url))
}

impl TestServer for MariaDb {
    const SHARED: &'static str = SHARED_SERVER;

    fn sql(url: &str, text: &str) -> Result<String> {
        sql(url, text)
    }

    fn creation(name: &str) -> String {
        creation(name)
    }

    fn removal(name: &str) -> String {
        format!("drop database {name}")
    }
}
