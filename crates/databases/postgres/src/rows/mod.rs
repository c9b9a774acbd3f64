//! Writes of rows, from HTTP and from files: a shape joined with its table, alone or as a set.
//!
//! | module | what it does |
//! | --- | --- |
//! | `form` | row writes for the executor |
//! | `catalog` | the catalog that the connections of a database share |
//! | `row_statement` | a shape joined with its table |
//! | `messages` | messages to the server, and the answers to writes |
//! | `standing` | reports what writes share, for operators |

pub(crate) mod catalog;
mod form;
mod messages;
pub(crate) mod row_statement;
pub(crate) mod standing;
