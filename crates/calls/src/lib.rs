//! Writes that clients wrote as SQL: the texts, what was read from them, and the raw bytes of their
//! values.
//!
//! The way of a statement: a frontend reads a text once into a [`ParsedStatement`]; a [`Describer`]
//! asks the database what that parsed statement means under one role and its settings, which gives
//! a [`Statement`]; each use of it by a client is an [`SqlCall`]; calls that commit together are a
//! [`windrow_core::Unit`].
//!
//! Only the PostgreSQL frontend and the databases that speak PostgreSQL's protocol know this crate:
//! values, rows and signatures are bytes of its messages.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`parsed`] | what the text of a statement says |
//! | [`signature`] | the types of a prepared statement, as its client was told |
//! | [`statement`] | a parsed statement as the database understands it |
//! | [`arguments`] | the values of a call, and how they are encoded |
//! | [`call`] | one use of a statement |
//! | [`done`] | what its client is told |

pub mod arguments;
pub mod call;
pub mod done;
pub mod parsed;
pub mod signature;
pub mod statement;

pub use arguments::{Arguments, Formats, Values};
pub use call::{Origin, SqlCall};
pub use done::{CallDone, Extra, Generated};
pub use parsed::{Conflict, Expression, ParsedStatement, Piece};
pub use signature::Signature;
pub use statement::{AsRow, Described, Describer, REFUSED, Statement, Touches};
