//! ArangoDB over its HTTP API for documents (<https://docs.arangodb.com/stable/develop/http-api/documents/>).
//!
//! A table is a collection, a row a document, a column a top-level attribute, and the key is
//! `_key`. Many documents go out as one array, whose answer is an array of the same length: a
//! document that fails has its error in its place and takes no other with it.
//!
//! | room | what it does |
//! | --- | --- |
//! | this file | the driver: URL in, sink out |
//! | `sink` | the sink: opens connections, asks for signs of life |
//! | `ladder` | the way of a batch, from units to requests, and from answers to verdicts |
//! | `ladder::executor` | its order: join, send step by step |
//! | `ladder::bind` | every write joined with its collection: is it sound, which document does it touch |
//! | `ladder::request` | a shape as a request: method, path, what an entry of its array is |
//! | `ladder::connection`, `ladder::session` | a connection: who we are, a request out, an answer in |
//! | `ladder::bulk` | a step: one array, and what is set apart when it fails |
//! | `answer`, `fault` | what the server says, and what it means |
//! | `values` | documents in and out |

mod answer;
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

use self::sink::{ArangoSink, PROFILE};

/// ArangoDB's port.
const PORT: u16 = 8529;

const FORM: &str = "arangodb://USER:PASSWORD@HOST:8529/DATABASE (arangodbs:// with TLS)";

/// The driver.
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
