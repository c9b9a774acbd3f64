//! Parses texts of MySQL's and MariaDB's clients: which single-row writes may be joined, and which
//! effects a relayed statement has on its session. Pure: no I/O.
//!
//! The server parses each text itself, so this code never changes what is executed, except for
//! plain INSERTs, whose rows are put into one statement. Any doubt about a text is a reason to
//! relay it.
//!
//! All code here assumes that a byte below 0x80 is a character of its own. Do not read texts of
//! clients whose `character_set_client` is big5, cp932, gb18030, gbk or sjis.

mod effect;
mod expression;
mod filter;
mod functions;
mod lift;
mod modes;
mod own_settings;
mod question;
mod read;
mod reader;
mod reserved;
mod scanner;
mod settings;

pub use effect::{effect, effect_in_any_mode};
pub use functions::harmless_functions;
pub use lift::{LiftedText, lift};
pub use modes::Modes;
pub use own_settings::{AssignedValue, own_name_among_several, own_settings};
pub use question::{Asked, Question, mentions_insert_id, mentions_row_count, question};
pub use read::read;
pub use settings::SessionEffect;
