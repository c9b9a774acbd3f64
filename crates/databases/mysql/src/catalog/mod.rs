//! Describes tables, decides which writes share transactions, and creates tables for rows.

pub(crate) mod create;
pub(crate) mod guard;
pub(crate) mod information;
pub(crate) mod proof;
pub(crate) mod schema;
pub(crate) mod table;
