//! The HTTP frontend: JSON, NDJSON and CSV in, one true answer for each row out.
//!
//! Rooms, in the order in which a request meets them:
//!
//! | room | what it holds |
//! | --- | --- |
//! | [`HttpConfig`] | the knobs |
//! | `server` | listening, one connection, its timeouts |
//! | `auth`, `origin` | who may ask: the token, and no web page of somebody else's |
//! | `route`, `query`, `plan` | which request it is, its parameters, the shapes of its rows |
//! | `system` | tables of the database itself, which are not served |
//! | `body` | reading a body: chunk by chunk, with its limits and its charge to the memory budget |
//! | `rows` | text to rows: JSON objects, arrays, NDJSON, CSV |
//! | `handle` | one file for each kind of request |
//! | `document` | ArangoDB's document routes: rows whose key column is `_key` |
//! | `envelope` | requests within a request: multipart bodies, run part by part |
//! | `answer` | what is told: errors, results, values as JSON |
//! | [`HttpMetrics`] | what is counted |
//!
//! The API is described by `src/openapi.json`, which is served at `/openapi.json`.

mod answer;
mod app;
mod auth;
mod body;
mod config;
mod document;
mod envelope;
mod handle;
mod metrics;
mod origin;
mod plan;
mod query;
mod route;
mod rows;
mod server;
mod services;
mod system;
#[cfg(any(test, fuzzing))]
pub mod trial;

pub use config::HttpConfig;
pub use metrics::HttpMetrics;
pub use server::Http;
pub use services::{Readiness, Services};
