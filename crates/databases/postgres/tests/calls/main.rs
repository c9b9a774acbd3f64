//! SQL calls against a real PostgreSQL server.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test may end by any of these"
)]

mod altered;
mod apart;
mod cut;
mod differential;
mod forms;
mod functions;
mod isolation;
mod moments;
mod noticed;
mod parsed;
mod previewed;
mod proven;
mod support;
