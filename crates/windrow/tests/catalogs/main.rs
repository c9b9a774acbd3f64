//! Random catalogs, random programs of several sources at once, and a judge who accepts what some
//! order of their transactions explains, and nothing else.
//!
//! `WINDROW_CATALOG_CASES` says how many cases are tried, `WINDROW_CATALOG_SEED` repeats a run that
//! failed.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "a test ends where something is not as expected, in its helpers too"
)]

mod cases;
mod http;
mod oracle;
mod postgres;
mod record;
mod tally;
mod turnstile;
