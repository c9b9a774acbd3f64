//! The place of a statement in the plan of a preview.

use std::sync::Arc;

use windrow_core::ParsedStatement;

/// One of the statements of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartKind {
    Question,
    Ahead,
    Write,
    /// The write itself, executed as late as at COMMIT.
    Late {
        has_time: bool,
        generates: bool,
        cascades: bool,
    },
    /// The question for the number of its rows.
    Count,
}

/// The place of a statement in a plan: what is needed to make it again.
#[derive(Debug)]
pub(crate) struct PreviewPart {
    pub(crate) kind: PartKind,
    /// The write that the plan is about, with the types of its parameters.
    pub(crate) insert: Arc<ParsedStatement>,
    pub(crate) types: Box<[u32]>,
    /// The texts of the plan's question, and of its write with the test of what was stored: they
    /// contain everything that the plan relies on. Empty for a write that is executed late.
    pub(crate) texts: [Box<str>; 2],
}
