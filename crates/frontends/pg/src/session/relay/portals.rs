//! Statements bound to the portals of a session: whether their execution may commit, and which of
//! the session's statements their texts name.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};
use windrow_sql::Commits;

use super::renames::Renames;
use crate::statements::{CachedStatement, ClientName, name_key};

/// The most portals that are followed. Any other counts as one that may commit.
const MAX_PORTALS: usize = 16;

/// Effects on the transaction of the statements of a text, in their order.
pub(super) type Committing = SmallVec<[Commits; 1]>;

/// The most recently bound portals.
#[derive(Default)]
pub(super) struct Portals(Vec<(ClientName, Bound)>);

/// A statement bound to a portal.
#[derive(Clone)]
pub(super) struct Bound {
    /// The statement; `None` if it is not known.
    pub(super) cached: Option<Arc<CachedStatement>>,
    /// The effects of its execution.
    pub(super) commits: Committing,
    /// The names in its text that replace the session's.
    pub(super) renames: Option<Box<Renames>>,
}

impl Portals {
    /// Notes the statement bound to a portal.
    pub(super) fn bind(&mut self, portal: &[u8], bound: Bound) {
        self.forget(portal);
        if self.0.len() >= MAX_PORTALS {
            self.0.remove(0);
        }
        self.0.push((name_key(portal).into(), bound));
    }

    /// Notes that a portal is bound to an unknown statement.
    pub(super) fn forget(&mut self, portal: &[u8]) {
        self.0.retain(|(name, _)| **name != *name_key(portal));
    }

    /// Returns the statement bound to a portal; one that may commit if it is not known.
    pub(super) fn bound(&self, portal: &[u8]) -> Bound {
        let mut all = self.0.iter();
        let found = all.find(|(name, _)| **name == *name_key(portal));
        found.map_or_else(
            || Bound {
                cached: None,
                commits: smallvec![Commits::Anytime],
                renames: None,
            },
            |(_, bound)| bound.clone(),
        )
    }
}
