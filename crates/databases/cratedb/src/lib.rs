//! CrateDB over its HTTP endpoint (<https://cratedb.com/docs/crate/reference/en/latest/interfaces/http.html>).
//!
//! CrateDB has no transactions. What it has is better than a transaction for a batch of many
//! clients: a bulk of rows is told row by row, and a row that fails takes no other with it, unless
//! a value of it cannot be read: then nothing of the bulk is stored.
//!
//! | room | what it does |
//! | --- | --- |
//! | this file | the driver: URL in, sink out |
//! | `sink` | the sink: opens connections, asks for signs of life |
//! | `ladder` | the way of a batch, from units to requests, and from answers to verdicts |
//! | `ladder::executor` | its order: join, make what is missing, send step by step |
//! | `ladder::bind` | every write joined with its table: is it sound, does it look good, which row does it touch |
//! | `ladder::knowledge`, `ladder::grow` | what a batch knows of its tables; what it makes of them |
//! | `ladder::connection`, `ladder::session` | a connection and what it has learned; a request out, an answer in |
//! | `ladder::bulk` | a step of writes: one bulk, and what is set apart when it fails |
//! | `ladder::single` | a write that is sent by itself |
//! | `ladder::settle` | rows that a bulk failed without saying why, or of which it is not known whether they are there |
//! | `ladder::lookup` | rows by their keys: a step of reads |
//! | `ladder::statement` | a shape joined with its table |
//! | `answer`, `fault` | what the server says, and what it means |
//! | `catalog` | what the database says of a table, read once and shared; tables and columns that are made from rows |
//! | `values` | values in and out, and which of them name the same row |

mod answer;
mod catalog;
mod fault;
mod ladder;
mod sink;
mod values;

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Database, Fault, Profile};
use windrow_database::Driver;
use windrow_database::Options;
use windrow_database::web::Target;

use self::sink::{CrateSink, PROFILE};

/// CrateDB's port for HTTP.
const PORT: u16 = 4200;

const FORM: &str = "cratedb://USER:PASSWORD@HOST:4200/SCHEMA (cratedbs:// with TLS)";

/// The driver.
pub struct CrateDb;

#[async_trait]
impl Driver for CrateDb {
    fn schemes(&self) -> &'static [&'static str] {
        &["cratedb", "cratedbs", "crate", "crates"]
    }

    fn url_form(&self) -> &'static str {
        "cratedb://USER@HOST:PORT/SCHEMA"
    }

    fn profiles(&self) -> &'static [Profile] {
        const { &[PROFILE] }
    }

    async fn open(&self, url: &str, options: &Options) -> Result<Arc<dyn Database>, Fault> {
        let tls = url.starts_with("cratedbs:") || url.starts_with("crates:");
        let target = Target::parse(url, tls, PORT, FORM)?;
        target.finish("")?;
        Ok(Arc::new(CrateSink::new(target, options)?))
    }
}
