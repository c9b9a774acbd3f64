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
//! | `session` | a connection: its settings, its prepared statements, what it costs |
//! | `sink` | the sink: connections, and what they share |
//! | `ladder` | the way of a batch, from units to statements, and from answers to verdicts |
//! | `ladder::executor` | one batch: which transactions it takes, what runs again |
//! | `ladder::connection` | a connection and what it has learned |
//! | `ladder::bind`, `ladder::demands` | writes joined with their tables; what rows ask of these |
//! | `ladder::batch` | the units, their writes joined with the tables' descriptions |
//! | `ladder::plan`, `ladder::text` | a shape joined with its table, and its statements |
//! | `ladder::one_statement` | units whose writes are one statement, a transaction of its own |
//! | `ladder::settle` | one transaction: guard, commit, verdicts |
//! | `ladder::isolate` | the units of a transaction, with savepoints after a failure |
//! | `ladder::step` | the writes of one shape: by one statement, and cut up when that fails |
//! | `ladder::send_many` | one statement for many rows |
//! | `ladder::send_one` | one write by its own statement |
//! | `ladder::named` | the key by which a written row is read back |
//! | `session::interrupt` | giving up what is under way |
//! | `catalog` | what the database says of a table, read once and shared |
//! | `catalog::guard` | whether it is still so |
//! | `catalog::create` | tables and columns that are made from rows |
//! | `catalog::proof` | what may be joined: functions, triggers, privileges |
//! | `values` | values in and out; which row a write is about |
//! | `ladder::matching` | which answer belongs to which row of a statement for many |
//! | `load` | many rows by LOAD DATA LOCAL |
//! | `moves` | rows of a queue brought into their final tables |
//! | `bookkeeping` | what a spool needs besides: how far it has come, what was refused |
//! | `inventory` | which tables there are and what names their rows, for replicas |
//! | `quoted` | names as the server quotes them |
//! | `own_tables` | tables that Windrow keeps for itself |
//! | `fault` | the server's errors as faults |
//!
//! What differs from other databases is told in `docs/mysql.md`.

mod bookkeeping;
mod catalog;
mod fault;
mod inventory;
mod ladder;
mod load;
mod location;
mod moves;
mod own_tables;
mod quoted;
mod session;
mod sink;
mod values;

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Database, Fault, Profile};
use windrow_database::Driver;
use windrow_database::Options;

use self::sink::MysqlSink;

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
