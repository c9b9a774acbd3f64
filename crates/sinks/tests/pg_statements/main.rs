//! SQL calls against a real PostgreSQL server.

#![cfg(feature = "postgres")]
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may end by any of these"
)]

mod altered;
mod apart;
mod differential;
mod draft;
mod forms;
mod isolation;
mod proven;
mod support;
