//! SQLite: one file, one writer.
//!
//! | room | what it holds |
//! | --- | --- |
//! | this file | the driver: URL in, sink out |
//! | `location` | what a URL names |
//! | `sink` | the sink: hands out executors, asks for signs of life |
//! | `connection` | opening the file, its PRAGMAs |
//! | `identity` | whether it is still the file that its path names |
//! | `ladder` | the way of a batch, from units to statements, and from answers to verdicts |
//! | `ladder::executor` | packs a batch, sends it to the writer, awaits its report |
//! | `ladder::writer` | the thread that owns the connection |
//! | `ladder::session` | the connection and what is known of its database between batches |
//! | `ladder::settle`, `ladder::isolate` | one batch: its transactions and verdicts; what runs again when a transaction fails |
//! | `ladder::send` | one unit: its writes, its savepoint |
//! | `ladder::grow` | the change of the schema that a unit needs |
//! | `ladder::deferred_sync` | several commits and one wait for the disk |
//! | `ladder::plan`, `ladder::plans`, `ladder::sql` | from a shape to SQL and its parameters |
//! | `catalog` | what a table has, read once for each version of the schema |
//! | `catalog::sharing`, `catalog::standings` | which writes may share a transaction with others; what of that operators are told |
//! | `catalog::create`, `catalog::definition` | tables made and extended from the rows that come |
//! | `values::spelling` | what a key in a path means |
//! | `values` | values in and out, and a batch as the writer thread owns it |
//! | `load` | many rows in one transaction |
//! | `moves` | rows of a queue brought into their final tables |
//! | `bookkeeping` | what a spool needs besides: how far it has come, what was refused |
//! | `inventory` | which tables there are and what names their rows, for replicas |
//! | `own_tables` | tables that Windrow keeps for itself |
//! | `fault` | SQLite's result codes as faults |
//!
//! # What a value becomes
//! The column's declared type decides (<https://sqlite.org/datatype3.html>):
//! - A number goes into a column of INTEGER or NUMERIC affinity only if it comes back with the same
//!   value; one that a 64-bit integer and a double cannot give back exactly is refused (22003),
//!   because SQLite would silently round it. A column declared REAL, DOUBLE or FLOAT takes the
//!   nearest double: that is what the type means. A TEXT column keeps every digit.
//! - Text for a column declared BLOB is base64. `true` and `false` are 1 and 0, and in TEXT and
//!   JSON columns their words.
//! - Everything else is left to SQLite's own rules of affinity and to STRICT tables' own errors.
//!
//! Values come back by what is stored: a column declared BOOLEAN gives `true` and `false` for 1 and
//! 0, one declared JSON gives JSON, text that is not valid UTF-8 comes back as bytes.
//!
//! # Shared transactions
//! A write shares a transaction with others unless the schema shows that it could tell: `sharing`
//! says when, `docs/sqlite.md` why.

mod bookkeeping;
mod catalog;
mod connection;
mod fault;
mod identity;
mod inventory;
mod ladder;
mod load;
mod location;
mod moves;
mod own_tables;
mod sink;
mod values;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Database, Fault, Profile};
use windrow_database::Driver;
use windrow_database::Options;

use self::location::Location;
use self::sink::SqliteSink;

/// The driver.
pub struct Sqlite;

#[async_trait]
impl Driver for Sqlite {
    fn schemes(&self) -> &'static [&'static str] {
        &["sqlite"]
    }

    fn url_form(&self) -> &'static str {
        "sqlite:PATH"
    }

    fn profiles(&self) -> &'static [Profile] {
        &[sink::PROFILE]
    }

    fn file(&self, url: &str) -> Result<Option<PathBuf>, Fault> {
        let location = Location::parse(url)?;
        location.check()?;
        Ok(match location {
            Location::Memory => None,
            Location::File { path, .. } => Some(path),
        })
    }

    async fn open(&self, url: &str, options: &Options) -> Result<Arc<dyn Database>, Fault> {
        let location = Location::parse(url)?;
        Ok(Arc::new(SqliteSink::open(location, options).await?))
    }
}
