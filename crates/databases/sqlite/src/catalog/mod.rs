//! What the database says of a table, read once and shared; what its writes may share; tables and
//! columns that are made from rows.

pub(crate) mod cache;
pub(crate) mod create;
pub(crate) mod definition;
pub(crate) mod sharing;
pub(crate) mod standings;
pub(crate) mod table;
