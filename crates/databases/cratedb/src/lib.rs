//! CrateDB over its HTTP endpoint (<https://cratedb.com/docs/crate/reference/en/latest/interfaces/http.html>).
//!
//! CrateDB has no transactions. For batches of many clients its bulk requests are better: the
//! server reports a result for each row, and a failed row does not affect the others. Only if a
//! value cannot be parsed is nothing of the bulk stored.
//!
//! | module | what it does |
//! | --- | --- |
//! | this file | the driver: opens a sink for a URL |
//! | `sink` | opens connections, checks that the database answers |
//! | `ladder` | the path of a batch, from units to requests, and from answers to verdicts |
//! | `ladder::executor` | joins writes with tables, creates what is missing, sends step by step |
//! | `ladder::bind` | joins a write with its table, checks it, finds the row that it touches |
//! | `ladder::knowledge`, `ladder::grow` | descriptions of a batch's tables; creates tables and columns |
//! | `ladder::connection`, `ladder::session` | a connection and its state; requests and answers |
//! | `ladder::bulk` | executes writes as one bulk, and isolates rows if it fails |
//! | `ladder::single` | executes a write as its own statement |
//! | `ladder::settle` | finds the outcome of rows that failed without a message |
//! | `ladder::lookup` | reads rows by their keys |
//! | `ladder::statement` | the SQL for a shape |
//! | `answer`, `fault` | parses and classifies the server's answers |
//! | `catalog` | descriptions of tables; creates tables and columns for rows |
//! | `values` | encodes and decodes values, and compares keys |

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

/// CrateDB's usual port for HTTP.
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
