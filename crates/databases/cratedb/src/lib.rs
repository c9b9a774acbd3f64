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
//! | `executor` | a batch: from units to requests, and from answers to verdicts |
//! | `answer` | parses the server's answers |
//! | `fault` | the table of errors |
//! | `catalog` | descriptions of tables; creates tables and columns for rows |
//! | `values` | encodes and decodes values, and compares keys |

mod answer;
mod catalog;
mod executor;
mod fault;
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
