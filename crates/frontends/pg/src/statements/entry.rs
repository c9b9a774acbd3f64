//! The prepared statements of a session.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;
use windrow_core::{Fault, Signature, Statement};

use super::readings::{Prepared, Readings};

/// A name given by a client.
pub(crate) type ClientName = SmallVec<[u8; 16]>;

/// The most named statements of one session.
const MOST: usize = 10_000;

/// A prepared statement of a session.
#[derive(Clone)]
pub(crate) struct Entry {
    /// What was prepared.
    pub(crate) prepared: Arc<Prepared>,
    /// Its types, once they are fixed.
    pub(crate) fixed: FixedTypes,
    /// What it means in a lane, by the lane's number.
    pub(crate) seen: Option<(u64, Arc<Statement>)>,
}

impl Entry {
    /// A statement of which nothing but its text is known.
    pub(crate) fn new(prepared: Arc<Prepared>) -> Self {
        Self {
            prepared,
            fixed: FixedTypes::default(),
            seen: None,
        }
    }

    /// The same text with the types that it was told for its parameters: as that it is prepared
    /// wherever it is prepared again.
    pub(crate) fn exact(&self, readings: &Readings, utf8: bool) -> Arc<Prepared> {
        match self.fixed.get() {
            Some(fixed) if fixed.parameters != self.prepared.types => {
                let types = fixed.parameters.iter().copied();
                readings.get(&self.prepared.text, types, utf8)
            }
            _ => Arc::clone(&self.prepared),
        }
    }

    /// Fixes its types: what it means in its lane is what its client relies on from now on.
    pub(crate) fn fix(&self) {
        if let Some((_, statement)) = &self.seen {
            self.fixed.set(statement.signature());
        }
    }
}

/// The types of a client's statement: what the server made of it when it was parsed. Until that is
/// known, nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct FixedTypes(Arc<OnceLock<Arc<Signature>>>);

impl FixedTypes {
    pub(crate) fn get(&self) -> Option<&Arc<Signature>> {
        self.0.get()
    }

    /// What was told first stays.
    pub(crate) fn set(&self, signature: &Arc<Signature>) {
        self.0.get_or_init(|| Arc::clone(signature));
    }

    /// True where they are those of one statement.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// True where they are the same, or would be read as the same.
    pub(crate) fn fits(&self, other: &Self) -> bool {
        let alike = || Some(self.get()?.fits(other.get()?));
        self.is(other) || alike().unwrap_or_default()
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
