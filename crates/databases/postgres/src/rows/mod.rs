//! Writes of rows, from HTTP and from files: a shape joined with its table, alone or as a set.
//!
//! | module | what it does |
//! | --- | --- |
//! | `row_statement` | a shape joined with its table |
//! | `statement` | the statement of one row |
//! | `fused` | the statement of many rows |
//! | `standing` | what operators are told of them |

pub(crate) mod fused;
pub(crate) mod row_statement;
pub(crate) mod standing;
pub(crate) mod statement;
