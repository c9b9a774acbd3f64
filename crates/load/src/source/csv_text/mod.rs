//! The text of CSV records: the places of fields, and records that are not split into fields yet.

mod escaped;
pub(super) mod record;
pub(super) mod splitter;
pub(super) mod style;
pub(super) mod unsplit;
