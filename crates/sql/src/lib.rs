//! Parses SQL texts: what a statement writes, which values can be lifted out of it, whether it may
//! be joined with others, and if not why. Pure: no I/O.
//!
//! Texts are cut into the same tokens as by PostgreSQL's scanner, and the few statements that may
//! be joined are parsed by the rules and the precedence of PostgreSQL's grammar. A joined statement
//! is executed in another form, so any difference from PostgreSQL's own reading would give wrong
//! answers. Statements outside of that part of the grammar are not joined.
//!
//! A long text is read while the other tasks of its thread go on, and in a time that grows with its
//! length alone.
//!
//! All of it takes a byte below 0x80 for a character of its own. In the client encodings SJIS,
//! BIG5, GBK, UHC, GB18030 and JOHAB it may be a part of one: do not read texts of such clients.

mod block;
mod clause;
mod ddl;
mod effect;
mod expression;
mod frozen;
mod identifier;
mod into;
mod kinds;
pub mod lex;
pub mod lift;
pub mod mysql;
mod names;
mod numbered;
mod parentheses;
mod parse;
mod primary;
mod read;
pub mod reading;
mod rows;
mod script;
mod steps;
mod string;
mod text;
mod tokens;
#[cfg(any(test, fuzzing))]
pub mod trial;
mod types;
mod word;
mod words;
mod write;

pub use block::{BlockEffect, BlockStatement, block};
pub use effect::{Sequences, answered, sequences};
pub use frozen::{is_moment, may_freeze};
pub use kinds::Property;
pub use lift::{Lifted, Lifter, highest_parameter, lift};
pub use names::{Names, names};
pub use read::{read, split};
pub use reading::{Apart, Effect, MAX_TEXT, Reading};
pub use rows::{SingleRow, single_rows};
pub use script::{WriteScript, write_script};
pub use steps::{Commits, NameUsage, StatementName, Step, steps};
pub use tokens::MAX_SCANNED;
