//! Row writes as bytes: what a drain needs to apply them exactly as they were asked for.
//!
//! A write begins with a version byte. Its shape stands in front of its values, in every entry: an
//! entry can be read by itself, whatever was trimmed before it. Numbers are little-endian base-128
//! (LEB128), texts and bytes have their length before them.

mod read;
mod write;

use windrow_core::RowWrite;

pub use self::read::{Unreadable, decode};
pub use self::write::encode;

/// The version that is written, and the newest that is read.
const VERSION: u8 = 1;

/// The tags of what has several forms. A number is never used for something else.
mod tag {
    pub(super) const OP_INSERT: u8 = 0;
    pub(super) const OP_UPDATE: u8 = 1;
    pub(super) const OP_DELETE: u8 = 2;
    pub(super) const OP_GET: u8 = 3;

    pub(super) const CONFLICT_ERROR: u8 = 0;
    pub(super) const CONFLICT_IGNORE: u8 = 1;
    pub(super) const CONFLICT_UPDATE: u8 = 2;

    pub(super) const KEY_PRIMARY: u8 = 0;
    pub(super) const KEY_COLUMNS: u8 = 1;

    pub(super) const RETURNING_NOTHING: u8 = 0;
    pub(super) const RETURNING_ALL: u8 = 1;
    pub(super) const RETURNING_COLUMNS: u8 = 2;

    pub(super) const NULL: u8 = 0;
    pub(super) const FALSE: u8 = 1;
    pub(super) const TRUE: u8 = 2;
    pub(super) const INT: u8 = 3;
    pub(super) const NUMBER: u8 = 4;
    pub(super) const TEXT: u8 = 5;
    pub(super) const BYTES: u8 = 6;
    pub(super) const JSON: u8 = 7;
}

/// A row write as bytes.
pub fn to_bytes(write: &RowWrite) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(write, &mut bytes);
    bytes
}

#[cfg(test)]
mod tests;
