//! What the sinks that speak SQL have in common: data and statement texts, no I/O.

pub mod decimal;
pub mod infer;
pub mod new_table;
pub mod plan;
pub mod quote;
pub mod record;
