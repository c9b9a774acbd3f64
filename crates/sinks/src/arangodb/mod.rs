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
//! | `session` | one connection: who we are, a request out, an answer in |
//! | `executor` | the way of a batch: place, send step by step |
//! | `form` | a shape as a request: method, path, what an entry of its array is |
//! | `place` | every write in its place: is it sound, which document does it touch |
//! | `bulk` | a step: one array, and what is set apart when it fails |
//! | `encode`, `decode` | documents in and out |
//! | `answer`, `fault` | what the server says, and what it means |

mod answer;
mod bulk;
mod decode;
mod encode;
mod executor;
mod fault;
mod form;
mod place;
mod session;
mod sink;

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Fault, Profile, Sink};

use self::sink::{ArangoSink, PROFILE};
use crate::options::Options;
use crate::registry::Driver;
use crate::web::Target;

/// ArangoDB's port.
const PORT: u16 = 8529;

const FORM: &str = "arangodb://USER:PASSWORD@HOST:8529/DATABASE (arangodbs:// with TLS)";

/// The driver, for the registry.
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

    async fn open(&self, url: &str, options: &Options) -> Result<Arc<dyn Sink>, Fault> {
        let target = Target::parse(url, url.starts_with("arangodbs:"), PORT, FORM)?;
        Ok(Arc::new(ArangoSink::new(target, options)?))
    }
}
