//! Writes of SQL clients: parsed statements, and calls with the raw bytes of their values.
//!
//! A frontend parses a text once into a [`ParsedStatement`]. A [`Describer`] asks the database for
//! its meaning under one role and its settings, which gives a [`Statement`]. Each use of it by a
//! client is an [`SqlCall`]. Only databases that have a describer get calls.
//!
//! | module | what it holds |
//! | --- | --- |
//! | `parsed` | a statement, parsed from its text |
//! | `preview` | the values of rows that are answered before they are stored |
//! | `signature` | the types of a prepared statement, as reported to its client |
//! | `statement` | a parsed statement with its meaning in the database |
//! | `current` | the statements that still mean what they meant |
//! | `arguments` | the values of a call, and their formats |
//! | `call` | one use of a statement |

mod arguments;
mod call;
mod current;
mod parsed;
mod preview;
mod signature;
mod statement;

pub use arguments::{Arguments, Formats, Values};
pub use call::{Origin, SqlCall};
pub use current::CurrentStatements;
pub use parsed::{Conflict, Expression, ParsedStatement, Piece};
pub use preview::{Doubt, PreviewReference, PreviewValue};
pub use signature::Signature;
pub use statement::{
    AsRow, Described, Describer, LateWrite, Preview, REFUSED, RowNumber, Statement, Touches,
};
