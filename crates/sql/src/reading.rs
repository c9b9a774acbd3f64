//! The result of reading a text.

use std::sync::Arc;

use windrow_core::{Name, ParsedStatement};

/// The longest text that is joined or cached, in bytes.
pub const MAX_TEXT: usize = 64 << 10;

/// The result of reading a statement's text.
#[derive(Clone, Debug)]
pub enum Reading {
    /// A write that may be joined with others, as far as the text alone can tell.
    Join(Arc<ParsedStatement>),
    /// Any other text: it is sent to the server as it is.
    Apart(Apart),
}

/// A statement that is executed by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Apart {
    /// The reason why it is not joined: a short phrase, the same for all statements of a kind, for
    /// metrics.
    pub reason: &'static str,
    /// The effect on the session.
    pub effect: Effect,
}

impl Reading {
    /// Returns the effect of the statement on the session if it is relayed.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Join(parsed) => {
                let is_question = |name: &str| matches!(name, "lastval" | "currval");
                let mut functions = parsed.functions.iter();
                match functions.any(|function| is_question(&function.table)) {
                    true => Effect::AsksForGenerated,
                    false => Effect::Other,
                }
            }
            Self::Apart(apart) => apart.effect.clone(),
        }
    }
}

/// The effect of a statement on its session, if the words of its text show all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// BEGIN or START TRANSACTION.
    Begin,
    /// COMMIT, ROLLBACK and similar statements: the transaction block ends.
    End,
    /// A setting of the session by its folded name (`SET x = y`, `SET SESSION x TO y`, `SET ROLE`,
    /// `SET TIME ZONE`, `RESET x`).
    Set {
        /// The setting's name as the server shows it (`timezone` for SET TIME ZONE, `role`,
        /// `session_authorization`).
        name: Name,
        /// False for RESET and for `SET .. TO DEFAULT`: the setting has its initial value again.
        set: bool,
    },
    /// RESET ALL.
    ResetAll,
    /// DISCARD ALL.
    DiscardAll,
    /// `SET windrow.name = value`: one of Windrow's own settings, never sent to the server.
    SetWindrow {
        /// The name without `windrow.`, folded.
        name: Name,
        /// The value without its quotes; `None` for RESET and DEFAULT.
        value: Option<Name>,
    },
    /// `SHOW windrow.name`: Windrow answers it, and it is never sent to the server.
    ShowWindrow {
        /// The name without `windrow.`, folded.
        name: Name,
    },
    /// Exactly `SELECT lastval()`.
    Lastval,
    /// Exactly `SELECT currval('sequence')`; the argument as it is written, or `None` if it is the
    /// parameter `$1`.
    Currval(Option<Name>),
    /// The text names `lastval` or `currval` in another way.
    AsksForGenerated,
    /// An empty text, or only comments.
    Empty,
    /// `SET seed`: the seed of the random generator cannot be restored.
    Seed,
    /// Several statements in one text: the effect of each, in order. Never nested, and never
    /// [`Effect::Other`] for all of them.
    Several(Box<[Self]>),
    /// Any other statement: the names in the text show what it may run and leave behind.
    Other,
}
