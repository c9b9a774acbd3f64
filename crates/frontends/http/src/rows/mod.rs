//! Parses rows.
//!
//! [`RowStream`] finds the end of each row's text, whatever pieces the body arrives in, and makes a
//! write of that text.

mod array;
mod csv;
pub(crate) mod elements;
pub mod object;
mod position;
mod stream;
#[cfg(any(test, fuzzing))]
pub(crate) mod trial;

pub(crate) use stream::{RowReceiver, RowStream, too_blank};

/// The most columns of a row: PostgreSQL's own limit, which is the largest that can be used in
/// practice (MySQL has 4,096, but rows of 64 KiB).
pub(crate) const MAX_COLUMNS: usize = 1600;

/// The deepest nesting of JSON.
pub(crate) const MAX_DEPTH: usize = 128;
