//! Texts that `windrow_sql::mysql` reads are held against the server: where literals begin and end,
//! what a statement does besides writing its row, and which words and functions the server has.
//!
//! `PROPTEST_CASES` sets how many random texts are tried, in units of eight.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests may panic as tests may"
)]

mod filters;
mod literals;
mod rows;
mod settings;
mod smuggled;
mod support;
mod words;
