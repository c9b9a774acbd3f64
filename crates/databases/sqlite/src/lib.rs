//! SQLite: one file, one writer.
//!
//! | module | what it does |
//! | --- | --- |
//! | this file | the driver: opens a sink for a URL |
//! | `location` | parses URLs |
//! | `sink` | hands out executors, checks that the database answers |
//! | `connection` | opens the file, sets its PRAGMAs |
//! | `identity` | checks that the path still names the same file |
//! | `executor` | a batch: from units to statements, and from answers to verdicts |
//! | `catalog` | descriptions of tables, which writes may share a transaction, tables created from rows |
//! | `values` | encodes and decodes values; a batch as the writer thread owns it |
//! | `load` | loads many rows in one transaction |
//! | `moves` | moves rows of a queue to their final tables |
//! | `own_tables` | the texts of tables that Windrow keeps for itself |
//! | `inventory` | lists tables and their keys, for replicas |
//! | `fault` | the table of errors |
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

mod catalog;
mod connection;
mod executor;
mod fault;
mod identity;
mod inventory;
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
