//! Text to rows.
//!
//! [`RowStream`] finds where the text of a row ends, whatever pieces the body comes in, and makes a
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

/// The most columns of a row: PostgreSQL's own limit, the largest of the databases that are written
/// to (MySQL has 4,096, but rows of 64 KiB).
pub(crate) const MAX_COLUMNS: usize = 1600;

/// The deepest that JSON may be nested.
pub(crate) const MAX_DEPTH: usize = 128;
