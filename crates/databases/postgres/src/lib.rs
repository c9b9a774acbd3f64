//! PostgreSQL, and CockroachDB by another `dialect`.
//!
//! A batch is one pipeline and, unless something fails, one round trip: the statements of all
//! writes and one Sync, which is an implicit transaction.
//!
//! | module | what it does |
//! | --- | --- |
//! | `sink`, `statement_sink` | the sink of a database; that of one role's SQL clients |
//! | `lane_catalog`, `standing` | tables and statements that a lane knows; reports on them |
//! | `row_statement` | a shape matched with its table |
//! | `calls` | statements of SQL clients: their meaning, and their values |
//! | `statement` | a write as a parsed statement; the SQL that executes many at once |
//! | `executor` | a batch: from units to statements to verdicts |
//! | `catalog` | descriptions of tables; tables that are created from rows |
//! | `values` | values in and out |
//! | `load` | many rows of one table, by COPY |
//! | `moves` | tables of pending rows, for `windrow move` |
//! | `inventory` | the tables and their keys, for replicas |
//! | `own_tables`, `talk` | Windrow's own tables; several statements in one round trip |
//! | `compiled`, `touch` | a statement matched with its table; the rows that it touches and changes |
//! | `moment` | the moments of writes that share a transaction |
//! | `server`, `dialect`, `cockroachdb`, `fault` | the server, CockroachDB's differences, faults |
//!
//! The protocol itself is in `windrow-pgwire`.

mod calls;
mod catalog;
mod cockroachdb;
mod compiled;
mod dialect;
mod executor;
mod fault;
mod inventory;
mod lane_catalog;
mod load;
mod moment;
mod moves;
mod own_tables;
mod row_statement;
mod server;
mod sink;
mod standing;
mod statement;
mod statement_sink;
mod talk;
mod touch;
mod values;

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Database, Fault, Profile};
use windrow_database::{Driver, Options};

use windrow_pgwire::Target;

use dialect::PROFILE;
use server::Named;
use sink::PostgresSink;

pub use cockroachdb::Cockroachdb;
pub use statement_sink::StatementSink;

/// The driver of PostgreSQL.
pub struct Postgres;

#[async_trait]
impl Driver for Postgres {
    fn schemes(&self) -> &'static [&'static str] {
        &["postgres", "postgresql"]
    }

    fn url_form(&self) -> &'static str {
        "postgres://USER@HOST:PORT/DATABASE"
    }

    fn profiles(&self) -> &'static [Profile] {
        &[PROFILE]
    }

    async fn open(&self, url: &str, options: &Options) -> Result<Arc<dyn Database>, Fault> {
        let target = Target::parse(url)?;
        Ok(Arc::new(PostgresSink::new(
            target,
            Named::Postgres,
            options,
        )))
    }
}
