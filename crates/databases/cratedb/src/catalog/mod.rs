//! Descriptions of tables, read once and shared; creates tables and columns for rows.

pub(crate) mod cache;
pub(crate) mod create;
pub(crate) mod table;
