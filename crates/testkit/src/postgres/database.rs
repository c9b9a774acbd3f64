//! Databases for tests.

use anyhow::Result;

use super::psql::psql;
use super::server::Postgres;
use crate::database::{TestDatabase, TestServer};

/// The environment variable that names a server for all tests to share, as a URL of a role that may
/// create databases.
pub const SHARED_SERVER: &str = "WINDROW_TEST_POSTGRES";

/// An empty database; dropped when this is dropped.
pub type PostgresDatabase = TestDatabase<Postgres>;

/// Makes an empty database on the server that [`SHARED_SERVER`] names, or else on a private one,
/// started for it.
///
/// # Errors
/// The server cannot be reached, or (private) cannot be started.
pub fn shared() -> Result<PostgresDatabase> {
    if let Some(database) = TestDatabase::on_shared()? {
        return Ok(database);
    }
    let server = Postgres::start()?;
    let url = server.create_database()?;
    Ok(TestDatabase::on_private(server, url))
}

impl TestServer for Postgres {
    const SHARED: &'static str = SHARED_SERVER;

    fn sql(url: &str, text: &str) -> Result<String> {
        psql(url, text)
    }

    fn creation(name: &str) -> String {
        format!("create database {name}")
    }

    fn removal(name: &str) -> String {
        format!("drop database {name} with (force)")
    }
}
