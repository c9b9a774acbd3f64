//! Bulk work: `load` brings files into tables, `move` brings pending rows into their final tables.
//!
//! A [`source`] reads a file into portions of rows. Nothing here knows a database: rows leave
//! through the ports of `windrow-core`.

pub mod load;
pub mod relocate;
pub mod source;
#[cfg(any(test, fuzzing))]
pub mod trial;

pub use source::{Bad, Portion, Source, SourceFault};
