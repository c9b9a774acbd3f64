//! The HTTP frontend: JSON, NDJSON and CSV in, one true answer for each row out.
//!
//! Modules, in the order in which a request meets them:
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`HttpConfig`] | the settings |
//! | `server` | listening, one connection, its timeouts |
//! | `routes` | where a request goes: the endpoint of its path, and what answers it |
//! | `auth`, `rights`, `origin` | checks of tokens, what they allow, and of web pages of other origins |
//! | [`extension`] | the routes of another API, and what their handlers use |
//! | `envelopes` | requests within a request: multipart bodies, run part by part |
//! | `handlers` | the API of rows: one file for each kind of request |
//! | `request`, `app` | one request with its surroundings, and what all of them share |
//! | `idempotency` | requests that have a key, and are executed once |
//! | `source` | one client's writes, by the lane or by the spool, in their order |
//! | `rows` | text to rows: JSON objects, arrays, NDJSON, CSV |
//! | `query`, `plan` | the parameters of a request, the shapes of its rows |
//! | `lists`, `page` | lists of tables and rows, and their parameters |
//! | `openapi` | the description of the API |
//! | `system` | tables of the database itself, which are not served |
//! | `bodies` | reading a body: chunk by chunk, with its limits and its charge to the memory budget |
//! | `traces` | requests that are traced: what their client says of its own span, what they are called |
//! | `answers` | what clients are answered: errors, results, values as JSON |
//! | [`HttpMetrics`] | what is counted |
//!
//! Each of them knows only those below it. An envelope has its parts answered through a trait of
//! its own, which `routes` implements. Below all of them are `endpoint` (which endpoints there
//! are), `handover` (when the next part of an envelope may begin), `ack` (when a write is answered)
//! and `connection_state`.
//!
//! The API is described by `src/openapi.json`, which is served at `/openapi.json` with what
//! extensions add to it.

mod ack;
mod answers;
mod app;
mod auth;
mod bodies;
mod config;
mod connection_state;
mod endpoint;
mod envelopes;
pub mod extension;
mod handlers;
mod handover;
mod idempotency;
mod lists;
mod metrics;
mod openapi;
mod origin;
mod page;
mod plan;
mod query;
mod request;
mod rights;
mod routes;
mod rows;
mod server;
mod services;
mod source;
mod system;
mod traces;
#[cfg(any(test, fuzzing))]
pub mod trial;
mod unfinished_heads;

pub use ack::Ack;
pub use auth::{Admission, Tokens};
pub use config::HttpConfig;
pub use metrics::HttpMetrics;
pub use rights::{Right, Rights};
pub use server::Http;
pub use services::{Readiness, Services};
