//! The prepared statements of a session.

use std::collections::HashMap;
use std::sync::Arc;

use windrow_core::{Fault, Statement};

use super::readings::Prepared;

/// The most named statements of one session.
pub(crate) const MOST: usize = 10_000;

/// A prepared statement of a session.
#[derive(Clone)]
pub(crate) struct Entry {
    /// What was prepared.
    pub(crate) prepared: Arc<Prepared>,
    /// What it means in a lane, by the lane's number.
    pub(crate) seen: Option<(u64, Arc<Statement>)>,
}

impl Entry {
    /// A statement of which nothing but its text is known.
    pub(crate) fn new(prepared: Arc<Prepared>) -> Self {
        Self {
            prepared,
            seen: None,
        }
    }
}

/// A session's statements, by the names that its client gave them.
#[derive(Default)]
pub(crate) struct Statements {
    named: HashMap<Box<[u8]>, Entry, foldhash::fast::RandomState>,
    unnamed: Option<Entry>,
}

impl Statements {
    /// The statement of a name; the empty name is the unnamed one.
    #[inline]
    pub(crate) fn get(&self, name: &[u8]) -> Option<&Entry> {
        if name.is_empty() {
            self.unnamed.as_ref()
        } else {
            self.named.get(name)
        }
    }

    /// The same, to be changed.
    pub(crate) fn get_mut(&mut self, name: &[u8]) -> Option<&mut Entry> {
        if name.is_empty() {
            self.unnamed.as_mut()
        } else {
            self.named.get_mut(name)
        }
    }

    /// Defines or removes a statement. Gives what was there.
    pub(crate) fn set(&mut self, name: &[u8], entry: Option<Entry>) -> Option<Entry> {
        match (name.is_empty(), entry) {
            (true, entry) => std::mem::replace(&mut self.unnamed, entry),
            (false, Some(entry)) => self.named.insert(name.into(), entry),
            (false, None) => self.named.remove(name),
        }
    }

    /// True where one more would be too many.
    pub(crate) fn is_full(&self) -> bool {
        self.named.len() >= MOST
    }

    /// Forgets all of them.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

/// What a client is told that prepares too many.
pub(crate) fn too_many() -> Fault {
    let text = format!("a session can have {MOST} prepared statements at most");
    Fault::too_large(text).with_hint(Some(
        "Close or DEALLOCATE those that are not used any more.",
    ))
}
