//! Writes that are acknowledged by the spool, through the real program and real databases.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "a test ends where something is not as expected, in its helpers too"
)]

mod away;
mod certain;
mod drain_only;
mod full;
mod kills;
mod load;
mod looked;
mod once;
mod parents;
mod rejects;
mod repeated;
mod sent_again;
mod sql;
mod sql_keys;
mod started;
mod support;
#[cfg(feature = "kafka")]
mod topic;
