//! `windrow load` as its users meet it: the program itself, files as they come, real databases.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "a test ends where something is not as expected, in its helpers too"
)]

mod alike;
mod clean;
mod closed;
mod dropped;
mod end;
mod escapes;
mod full;
mod header;
mod input;
mod json;
mod made;
mod modes;
mod parquet;
mod refused;
mod resume;
mod sparse;
mod support;
mod times;
