//! Writes of rows, from HTTP and from files: a shape joined with its table, alone or as a set.
//!
//! | module | what it does |
//! | --- | --- |
//! | `form` | row writes for the executor |
//! | `catalog` | what the connections of a database know together |
//! | `row_statement` | a shape joined with its table |
//! | `messages` | values out; what writes are told |
//! | `standing` | what operators are told of them |

pub(crate) mod catalog;
mod form;
mod messages;
pub(crate) mod row_statement;
pub(crate) mod standing;
