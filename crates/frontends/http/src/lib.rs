//! The HTTP frontend: reads rows as JSON, NDJSON or CSV, and answers each of them.
//!
//! The modules, in the order in which a request passes them:
//!
//! | module | content |
//! | --- | --- |
//! | [`HttpConfig`] | the settings |
//! | `server` | listening, one connection with its timeouts |
//! | `routes` | the endpoint of a request, and its handler |
//! | `auth`, `rights`, `origin` | checks of tokens, of their rights, and of web pages of other origins |
//! | [`extension`] | the routes of another API, and the helpers of their handlers |
//! | `envelopes` | requests within a request: multipart bodies, run part by part |
//! | `handlers` | the API of rows: one file for each kind of request |
//! | `request`, `app` | one request with its context, and the state shared by all |
//! | `idempotency` | requests with a key, which are executed once |
//! | `source` | the order of one client's writes through the lane and the spool |
//! | `rows` | parses rows: JSON objects, arrays, NDJSON, CSV |
//! | `query`, `plan` | the parameters of a request, the shapes of its rows |
//! | `lists`, `page` | lists of tables and rows, and their parameters |
//! | `openapi` | the description of the API |
//! | `system` | tables of the database itself, which are not served |
//! | `bodies` | reading a body: chunk by chunk, with its limits and its charge to the memory budget |
//! | `traces` | traced requests: the client's own span, and their names |
//! | `answers` | answers to clients: errors, results, values as JSON |
//! | [`HttpMetrics`] | counters |
//!
//! Each module imports only those below it. Envelopes answer their parts through a trait that
//! `routes` implements. Below all of them are `endpoint` (the list of endpoints), `handover` (when
//! the next part of an envelope may begin), `ack` (when a write is answered) and
//! `connection_state`.
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
