//! CockroachDB: PostgreSQL's protocol with different rules.
//!
//! The sink is that of [`crate`]. The differences are data in its `dialect`, and another way to
//! read a table's description. A server is recognized by the version that it reports, so a
//! `postgres://` URL works too.
//!
//! # Differences
//! - Batches have at most 1,000 rows, and more of them may be under way at once.
//! - Upserts of whole rows by the primary key, into tables without other unique keys, are
//!   `UPSERT`s, which read nothing.
//! - A transaction that has to be restarted (40001) is run again as a whole, in smaller batches. An
//!   ambiguous result (40003) is reported to the client as an unknown outcome, and never run again.
//! - JSONB and DECIMAL are sent as texts. Types other than the common ones are not joined into
//!   set-based statements, and duplicates are not distinguished together with rows that a check or
//!   a foreign key refuses.
//! - Tables have no mark that Windrow created them: `create_tables` makes tables, and columns only
//!   with `extend_tables`.
//! - Statements of SQL clients are executed one by one: the check that makes it safe to join them
//!   needs a catalog that records which transaction wrote it.
//! - Hidden columns (`rowid`, those of hash-sharded indexes and of regional tables) take no part in
//!   writes.

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Database, Fault, Profile};
use windrow_database::{Driver, Options};
use windrow_pgwire::Target;

use super::dialect::COCKROACH_PROFILE;
use super::server::Named;
use super::sink::PostgresSink;

/// The driver.
pub struct Cockroachdb;

#[async_trait]
impl Driver for Cockroachdb {
    fn schemes(&self) -> &'static [&'static str] {
        &["cockroachdb", "cockroach"]
    }

    fn url_form(&self) -> &'static str {
        "cockroachdb://USER@HOST:PORT/DATABASE"
    }

    fn profiles(&self) -> &'static [Profile] {
        &[COCKROACH_PROFILE]
    }

    async fn open(&self, url: &str, options: &Options) -> Result<Arc<dyn Database>, Fault> {
        let target = Target::parse(url)?;
        Ok(Arc::new(PostgresSink::new(
            target,
            Named::Cockroach,
            options,
        )))
    }
}
