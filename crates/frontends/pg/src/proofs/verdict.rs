//! What can be known of a statement, and of which tables that is meant.

use std::sync::Arc;

use windrow_core::Apart;

/// Which tables names mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Scope {
    /// Those that a session sees with a role and settings of this fingerprint.
    Of(u64),
    /// Those of any schema: it cannot be told any more what the session saw.
    Any,
}

/// What is known of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing is left behind but what its text says. The sequences that it may take from, as far
    /// as the catalog tells.
    Clean(Arc<[u32]>),
    /// The same, but that a view, a rule or a trusted function may take values from sequences.
    Takes(Arc<[u32]>),
    /// It may run code of which nothing is proven.
    Unproven(Arc<Apart>),
}

impl Verdict {
    /// Whether somebody who has relied on one may rely on the other.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Clean(_), Self::Clean(_)) | (Self::Takes(_), Self::Takes(_)) => true,
            _ => self == other,
        }
    }
}
