//! The usual ways to write the same rows.

mod clients;
mod cratedb;
pub mod mover;
pub mod parallel_copy;
mod pgbench;
mod slap;
mod written;

pub use clients::prepared;
pub use cratedb::CrateInsert;
pub use pgbench::pgbench;
pub use slap::slap;
pub use written::Written;
