//! The databases that execute batches.
//!
//! One folder a sink, with the same file names as its neighbours, and one line in the [`registry`].
//! What is common to those that speak SQL is in [`sql`]: data and statement texts, no I/O.

#[cfg(feature = "arangodb")]
pub mod arangodb;
#[cfg(feature = "postgres")]
pub mod cockroachdb;
#[cfg(feature = "cratedb")]
pub mod cratedb;
#[cfg(feature = "mysql")]
pub mod mysql;
pub mod options;
#[cfg(feature = "postgres")]
pub mod postgres;
pub mod registry;
pub mod sql;
#[cfg(feature = "sqlite")]
pub mod sqlite;
#[cfg(feature = "web")]
mod web;

pub use options::{Options, Synchronous};
pub use registry::open;
