//! Describes tables, decides which writes share transactions, and creates tables for rows.

pub(crate) mod cache;
pub(crate) mod create;
pub(crate) mod definition;
pub(crate) mod sharing;
pub(crate) mod standings;
pub(crate) mod table;
