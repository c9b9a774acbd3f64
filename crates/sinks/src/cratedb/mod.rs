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
//! | `executor` | the way of a batch: place, make what is missing, send step by step |
//! | `place` | every write joined with its table: is it sound, does it look good, which row does it touch |
//! | `session` | one connection and its statements: a request out, an answer in |
//! | `bulk` | a step of writes: one bulk, and what is set apart when it fails |
//! | `settle` | rows that a bulk failed without saying why, or of which it is not known whether they are there |
//! | `lookup` | rows by their keys: a step of reads |
//! | `statement` | a shape joined with its table |
//! | `table`, `column`, `catalog` | what the database says of a table, read once and shared |
//! | `create` | tables and columns that are made from rows |
//! | `encode`, `decode`, `moment`, `key` | values in and out, and which of them name the same row |
//! | `answer`, `fault` | what the server says, and what it means |

mod answer;
mod bulk;
mod catalog;
mod column;
mod create;
mod decode;
mod encode;
mod executor;
mod fault;
mod key;
mod lookup;
mod moment;
mod place;
mod session;
mod settle;
mod sink;
mod statement;
mod table;

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Fault, Profile, Sink};

use self::sink::{CrateSink, PROFILE};
use crate::options::Options;
use crate::registry::Driver;
use crate::web::Target;

/// CrateDB's port for HTTP.
const PORT: u16 = 4200;

const FORM: &str = "cratedb://USER:PASSWORD@HOST:4200/SCHEMA (cratedbs:// with TLS)";

/// The driver, for the registry.
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

    async fn open(&self, url: &str, options: &Options) -> Result<Arc<dyn Sink>, Fault> {
        let tls = url.starts_with("cratedbs:") || url.starts_with("crates:");
        let target = Target::parse(url, tls, PORT, FORM)?;
        target.finish("")?;
        Ok(Arc::new(CrateSink::new(target, options)?))
    }
}
