//! ArangoDB's HTTP API over any database, beside the routes of [`windrow_http`]: a document is a
//! row whose key column is `_key`.
//!
//! A request for a feature that the database lacks is refused, never ignored. Answers and errors
//! have ArangoDB's form.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `api` | [`ArangoApi`], the extension of the HTTP server |
//! | `routes`, `endpoint` | paths, with or without a database before them |
//! | `documents` | dispatches a request to its handler |
//! | `create`, `modify`, `replace`, `read`, `many` | one file for each kind of request |
//! | `request`, `options` | a request with its collection and its parameters |
//! | `document`, `key`, `writes`, `layout` | documents to writes |
//! | `answer`, `revision` | rows to answers |
//! | `error` | errors in ArangoDB's form |
//!
//! Batches (`/_api/batch`) are envelopes of whole requests, whose parts the HTTP frontend executes
//! one by one.
//!
//! The HTTP frontend appends the API's description, `src/openapi.json`, to its own.

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
