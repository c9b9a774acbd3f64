//! The PostgreSQL sink.
//!
//! A batch is one pipeline and, if nothing goes wrong, one round trip: the statements of all writes
//! and one Sync, which is an implicit transaction. The rooms, in the order in which a batch meets
//! them:
//!
//! | room | what it does |
//! | --- | --- |
//! | `executor` | the loop of round trips that ends when every unit has its verdict |
//! | `schema`, `table`, `column`, `catalog` | what the database says of a table, read once and shared |
//! | `level` | what writes may share, by the proof over the catalog |
//! | `standing` | what of that operators are told |
//! | `dialect` | what CockroachDB does otherwise |
//! | `create` | tables and columns that are made from rows |
//! | `patience`, `interrupt` | how long its clients wait, and giving a batch up |
//! | `compiled` | a shape joined with its table: `statement` (one write), `fused` (many) |
//! | `bulk` | many rows of one table, by COPY |
//! | `calls` | the same for SQL statements that clients wrote themselves |
//! | `batch` | every write in its place: does it `fit`, which rows does it touch (`key`) |
//! | `segment`, `order` | the transactions of a round trip |
//! | `prepare`, `prepared` | statements and guards that the connection does not have yet |
//! | `send`, `text`, `encode` | values as text, or as one array a column |
//! | `care`, `executor/careful` | a transaction in which failures are set apart in their places |
//! | `listen`, `absorb`, `decode` | from answers to verdicts, and to what runs again |
//! | `queue` | tables of pending rows, for `windrow move` |
//!
//! The protocol itself is in `windrow-pgwire`.

mod absorb;
mod batch;
mod bulk;
mod calls;
mod care;
mod catalog;
mod column;
mod compiled;
mod create;
mod decode;
mod dialect;
mod encode;
mod executor;
mod fit;
mod fused;
mod heat;
mod interrupt;
mod key;
mod level;
mod listen;
mod order;
mod patience;
mod prepare;
mod prepared;
mod queue;
mod scalar;
mod schema;
mod segment;
mod send;
mod server;
mod sink;
mod standing;
mod statement;
mod table;
mod text;
mod time;

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Fault, Profile, Sink};

use crate::options::Options;
use crate::registry::Driver;
use dialect::PROFILE;
use windrow_pgwire::Target;

pub use calls::StatementSink;
pub(crate) use dialect::COCKROACH_PROFILE;
pub(crate) use server::Named;
pub(crate) use sink::PostgresSink;

/// The driver, for the registry.
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

    async fn open(&self, url: &str, options: &Options) -> Result<Arc<dyn Sink>, Fault> {
        let target = Target::parse(url)?;
        Ok(Arc::new(PostgresSink::new(
            target,
            Named::Postgres,
            options,
        )))
    }
}
