//! ArangoDB over its HTTP API for documents (<https://docs.arangodb.com/stable/develop/http-api/documents/>).
//!
//! A table is a collection, a row a document, a column a top-level attribute, and the key is
//! `_key`. Many documents are sent as one array. The answer is an array of the same length; a
//! document that fails has its error at its position and does not affect the others.
//!
//! | module | what it does |
//! | --- | --- |
//! | this file | the driver: opens a sink for a URL |
//! | `sink` | opens connections, checks that the database answers |
//! | `executor` | a batch: from units to requests, and from answers to verdicts |
//! | `answer` | parses the server's answers |
//! | `fault` | the table of errors |
//! | `values` | encodes and decodes documents |

mod answer;
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

use self::sink::{ArangoSink, PROFILE};

/// ArangoDB's usual port.
const PORT: u16 = 8529;

const FORM: &str = "arangodb://USER:PASSWORD@HOST:8529/DATABASE (arangodbs:// with TLS)";

/// The driver for ArangoDB.
pub struct ArangoDb;

#[async_trait]
impl Driver for ArangoDb {
    fn schemes(&self) -> &'static [&'static str] {
        &["arangodb", "arangodbs"]
    }

    fn url_form(&self) -> &'static str {
        "arangodb://USER@HOST:PORT/DATABASE"
    }

    fn profiles(&self) -> &'static [Profile] {
        const { &[PROFILE] }
    }

    async fn open(&self, url: &str, options: &Options) -> Result<Arc<dyn Database>, Fault> {
        let target = Target::parse(url, url.starts_with("arangodbs:"), PORT, FORM)?;
        Ok(Arc::new(ArangoSink::new(target, options)?))
    }
}
