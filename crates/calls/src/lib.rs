//! Writes of SQL clients: parsed statements, and calls with the raw bytes of their values.
//!
//! A frontend parses a text once into a [`ParsedStatement`]. A [`Describer`] asks the database for
//! its meaning under one role and its settings, which gives a [`Statement`]. Each use of it by a
//! client is an [`SqlCall`]. Calls that commit together are a [`windrow_core::Unit`].
//!
//! Only the PostgreSQL frontend and databases with PostgreSQL's protocol use this crate: values,
//! rows and signatures are bytes of the protocol's messages.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`parsed`] | a statement, parsed from its text |
//! | [`signature`] | the types of a prepared statement, as reported to its client |
//! | [`statement`] | a parsed statement with its meaning in the database |
//! | [`arguments`] | the values of a call, and their formats |
//! | [`call`] | one use of a statement |
//! | [`done`] | the outcome of a successful call |

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
