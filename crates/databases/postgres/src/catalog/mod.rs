//! Descriptions of tables, read once from the database's catalog and shared. Also creates tables
//! and columns for rows that need them.
//!
//! | module | what it does |
//! | --- | --- |
//! | `ask` | queries of the catalog, and the rows of their answers |
//! | `schema` | reading a table's description; `schema/plain`: from a catalog with fewer tables |
//! | `table`, `column` | the description |
//! | `cache` | all descriptions of a sink |
//! | `check` | notices changes since a description was read |
//! | `create` | creating tables and columns |

pub(crate) mod ask;
pub(crate) mod cache;
pub(crate) mod check;
pub(crate) mod column;
pub(crate) mod create;
pub(crate) mod schema;
pub(crate) mod table;
