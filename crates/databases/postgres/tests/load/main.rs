//! Loading into PostgreSQL by COPY, against a real server: what a portion writes is what its rows
//! alone would have written.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may end by any of these"
)]

mod alike;
mod conflicts;
mod faults;
mod filter;
mod large;
mod lost;
mod marks;
mod random;
mod support;
mod tables;
mod verbatim;
