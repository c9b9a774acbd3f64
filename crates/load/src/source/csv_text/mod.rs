//! The text of CSV records: where fields begin and end, and records that are not yet split into
//! fields.

mod escaped;
pub(super) mod record;
pub(super) mod splitter;
pub(super) mod style;
pub(super) mod unsplit;
