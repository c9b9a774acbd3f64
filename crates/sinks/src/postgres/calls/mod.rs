//! SQL calls: what clients wrote themselves, on the same ladder as everything else.
//!
//! | room | what it does |
//! | --- | --- |
//! | `sink` | the sink of one lane, and who says what drafts mean |
//! | `describe`, `judge` | asks the server what a draft means; may it be joined? |
//! | `meaning`, `lexicon` | the answer, and all answers of a lane |
//! | `check` | notices what has changed since |
//! | `spoken` | a statement with the formats of its values, ready to be executed |
//! | `carrier` | how the raw values of a parameter become one array |
//! | `key` | which row a call is about, told from raw values |
//! | `text` | the set-based statement, made of the client's own expressions |
//! | `forms` | what a connection has compiled |

mod carrier;
pub(super) mod check;
mod describe;
mod forms;
mod judge;
mod key;
mod lexicon;
mod meaning;
mod sink;
mod spoken;
mod text;

pub(super) use check::Check;
pub(super) use forms::{Forms, renew, types_of};
pub(super) use lexicon::Lexicon;
pub use sink::StatementSink;
pub(super) use sink::with_error;
pub(super) use spoken::Spoken;
