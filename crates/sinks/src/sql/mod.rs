//! What the sinks that speak SQL have in common: data and statement texts, no I/O.

pub mod binary;
pub mod decimal;
#[cfg(any(feature = "cratedb", feature = "mysql", feature = "postgres"))]
pub mod described;
pub mod infer;
pub mod new_table;
pub mod plan;
pub mod quote;
pub mod record;
pub(crate) mod sources;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub mod wish;
