//! The numbers of alternatives. A number is never reused.

/// The version that is written, which is also the newest that is read.
pub(super) const VERSION: u8 = 1;

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
