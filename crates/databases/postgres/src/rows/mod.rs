//! Writes of rows, from HTTP and from files: a shape joined with its table, alone or as a set.
//!
//! | module | what it does |
//! | --- | --- |
//! | `form` | row writes on the ladder |
//! | `catalog` | what the connections of a database know together |
//! | `row_statement` | a shape joined with its table |
//! | `statement` | the statement of one row |
//! | `fused` | the statement of many rows |
//! | `messages` | values out; what writes are told |
//! | `standing` | what operators are told of them |

pub(crate) mod catalog;
mod clock_use;
mod form;
pub(crate) mod fused;
mod messages;
pub(crate) mod row_statement;
pub(crate) mod standing;
pub(crate) mod statement;
