//! What the database says of a table, read once and shared; tables and columns that are made from
//! rows.

pub(crate) mod cache;
pub(crate) mod create;
pub(crate) mod table;
