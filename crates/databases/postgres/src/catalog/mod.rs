//! Descriptions of tables, read once from the database's catalog and shared. Also creates tables
//! and columns for rows that need them.
//!
//! | module | what it does |
//! | --- | --- |
//! | `ask` | questions to the catalog, and the rows of their answers |
//! | `schema` | reading a table's description; `schema/plain`: where the catalog knows less |
//! | `table`, `column` | the description |
//! | `cache` | all descriptions of a sink |
//! | `check` | notices what has changed since a description was read |
//! | `create` | tables and columns that are made |

pub(crate) mod ask;
pub(crate) mod cache;
pub(crate) mod check;
pub(crate) mod column;
pub(crate) mod create;
pub(crate) mod schema;
pub(crate) mod table;
