//! The MySQL and MariaDB sink.
//!
//! A batch is one transaction whose statements hold many rows each; where one statement is all
//! there is, it commits by itself and takes one round trip. InnoDB undoes a statement that fails
//! and nothing else, so a failure is set apart inside of the transaction, without disturbing the
//! rows that came before it.
//!
//! | room | what it does |
//! | --- | --- |
//! | `location` | what a URL names |
//! | `line` | a connection: its settings, its prepared statements, what it costs |
//! | `sink` | the sink: connections, and what they share |
//! | `executor` | one batch: which transactions it takes, what runs again |
//! | `transaction` | one transaction: guard, steps, savepoints, commit |
//! | `step` | the writes of one shape: by one statement, and cut up when that fails |
//! | `set` | one statement for many rows |
//! | `single` | one write by its own statement |
//! | `matching` | which answer belongs to which row of a statement for many |
//! | `batch` | the units, their writes joined with the tables' descriptions |
//! | `compiled` | a shape joined with its table: `text` holds its statements |
//! | `schema`, `table`, `column`, `catalog` | what the database says of a table, read once and shared |
//! | `guard` | whether it is still so |
//! | `create` | tables and columns that are made from rows |
//! | `encode`, `literal`, `moment`, `decode` | values in and out |
//! | `key` | which row a write is about |
//! | `proof` | what may be joined: functions, triggers, privileges |
//! | `bulk` | many rows by LOAD DATA LOCAL |
//! | `queue` | rows of a queue brought into their final tables |
//! | `fault` | the server's errors as faults |
//!
//! What differs from other databases is told in `docs/mysql.md`.

mod batch;
mod bulk;
mod catalog;
mod column;
mod compiled;
mod create;
mod decode;
mod encode;
mod executor;
mod fault;
mod guard;
mod interrupt;
mod key;
mod line;
mod literal;
mod location;
mod matching;
mod moment;
mod proof;
mod queue;
mod schema;
mod set;
mod single;
mod sink;
mod step;
mod table;
mod text;
mod transaction;

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Fault, Profile, Sink};

use self::sink::MysqlSink;
use crate::options::Options;
use crate::registry::Driver;

/// The driver, for the registry.
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

    async fn open(&self, url: &str, options: &Options) -> Result<Arc<dyn Sink>, Fault> {
        let location = location::read(url)?;
        Ok(Arc::new(MysqlSink::new(location, options)))
    }
}
