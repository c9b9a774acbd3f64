//! Databases for tests.

use anyhow::Result;

use super::client::{creation, sql};
use super::server::MariaDb;
use crate::database::{self, Server};

/// The environment variable that names a server for all tests to share, as a URL of a user who may
/// create databases.
pub const SHARED_SERVER: &str = "WINDROW_TEST_MARIADB";

/// An empty database; dropped when this is dropped.
pub type Database = database::Database<MariaDb>;

/// An empty database on the server that [`SHARED_SERVER`] names, or else on a private one, started
/// for it.
///
/// # Errors
/// The server cannot be reached, or (private) cannot be started.
pub fn shared() -> Result<Database> {
    Database::new()
}

impl Server for MariaDb {
    const SHARED: &'static str = SHARED_SERVER;

    fn private() -> Result<(Self, String)> {
        let server = Self::start()?;
        let url = server.create_database()?;
        Ok((server, url))
    }

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
