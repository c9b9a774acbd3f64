//! ArangoDB's HTTP API over any database, beside the routes of [`windrow_http`]: a document is a
//! row whose key column is `_key`.
//!
//! What a database cannot promise is refused, never ignored. Answers and errors have ArangoDB's
//! form.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `api` | [`ArangoApi`], which the HTTP server is given |
//! | `routes`, `endpoint` | paths, with or without a database before them |
//! | `documents` | where a request goes |
//! | `create`, `modify`, `replace`, `read`, `many` | one file for each kind of request |
//! | `request`, `options` | a request with its collection and its parameters |
//! | `document`, `key`, `writes`, `layout` | documents to writes |
//! | `answer`, `revision` | rows to answers |
//! | `error` | errors in ArangoDB's form |
//!
//! Batches (`/_api/batch`) are envelopes of whole requests: the HTTP frontend has their parts
//! answered one by one.
//!
//! The API is described by `src/openapi.json`, which the HTTP frontend serves behind its own.

mod answer;
mod api;
mod attributes;
mod create;
mod document;
mod documents;
mod endpoint;
mod error;
mod key;
mod layout;
mod many;
mod modify;
mod options;
mod read;
mod replace;
mod request;
mod revision;
mod routes;
#[cfg(any(test, fuzzing))]
pub mod trial;
mod writes;

pub use api::ArangoApi;
