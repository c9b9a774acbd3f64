//! The MySQL and MariaDB sink.
//!
//! A batch is one transaction whose statements hold many rows each. A batch of one statement
//! commits by itself and takes one round trip. InnoDB undoes a statement that fails and nothing
//! else, so a failure is isolated within the transaction.
//!
//! | module | what it does |
//! | --- | --- |
//! | `location` | parses URLs |
//! | `sink` | opens connections, which share a catalog |
//! | `server` | the server, and how to connect to it |
//! | `session` | a connection: settings, prepared statements, cost; cancels statements |
//! | `executor` | a batch: from units to statements, and from answers to verdicts |
//! | `statements` | executes the statements of MySQL clients for a lane |
//! | `catalog` | descriptions of tables and their guard; creates tables; proves which writes may share a transaction |
//! | `values` | encodes and decodes values; identifies the row of a write |
//! | `load` | loads many rows by LOAD DATA LOCAL |
//! | `moves` | moves rows of a queue to their final tables |
//! | `own_tables` | the texts of tables that Windrow keeps for itself |
//! | `inventory` | lists tables and their keys, for replicas |
//! | `fault` | the table of errors |
//! | `quoted` | parses names as the server quotes them |
//!
//! `docs/mysql.md` lists what differs from other databases.

mod catalog;
mod executor;
mod fault;
mod inventory;
mod load;
mod location;
mod moves;
mod own_tables;
mod quoted;
mod server;
mod session;
mod sink;
mod statements;
mod values;

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Database, Fault, Profile};
use windrow_database::Driver;
use windrow_database::Options;

use self::sink::MysqlSink;
pub use self::statements::{ClientSink, ClientStanding};

/// The driver.
pub struct Mysql;

#[async_trait]
impl Driver for Mysql {
    fn schemes(&self) -> &'static [&'static str] {
        &["mysql", "mariadb"]
    }

    fn url_form(&self) -> &'static str {
        "mysql://USER@HOST:PORT/DATABASE"
    }

    fn profiles(&self) -> &'static [Profile] {
        &[sink::PROFILE]
    }

    async fn open(&self, url: &str, options: &Options) -> Result<Arc<dyn Database>, Fault> {
        let location = location::read(url)?;
        Ok(Arc::new(MysqlSink::new(location, options)))
    }
}
