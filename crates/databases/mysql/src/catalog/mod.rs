//! What the database says of a table, read once and shared; what its writes may share; tables and
//! columns that are made from rows.

pub(crate) mod create;
pub(crate) mod guard;
pub(crate) mod information;
pub(crate) mod proof;
pub(crate) mod schema;
pub(crate) mod table;
