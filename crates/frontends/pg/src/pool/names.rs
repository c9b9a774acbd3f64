//! The statements that are prepared on a server connection.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use crate::statements::FixedTypes;

/// The most statements that are kept prepared on one server connection.
const MAX_PREPARED: usize = 500;

/// The prefix of the names of statements.
const PREFIX: &str = "windrow_";

/// The name of a statement that is used once.
pub(crate) const PASSING: &str = "windrow value";

/// A prepared statement of the process: its number, and a fingerprint of the settings under which
/// it was read.
pub(crate) type StatementKey = (u64, u64);

/// Statements by their process-wide number.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashMap<StatementKey, FixedTypes>,
    order: VecDeque<StatementKey>,
    /// The text that is the unnamed statement, and its types; `None`: none of ours.
    pub(crate) unnamed: Option<(StatementKey, FixedTypes)>,
}

impl Names {
    /// The types that it was prepared with, if it is.
    pub(crate) fn fixed_types(&self, key: StatementKey) -> Option<&FixedTypes> {
        self.known.get(&key)
    }

    /// Notes that it is prepared now, with which types. Gives the one that has to be closed for it,
    /// if there is one.
    pub(crate) fn add(&mut self, key: StatementKey, fixed: FixedTypes) -> Option<StatementKey> {
        if self.known.insert(key, fixed).is_none() {
            self.order.push_back(key);
        }
        if self.known.len() <= MAX_PREPARED {
            return None;
        }
        while let Some(oldest) = self.order.pop_front() {
            if oldest != key && self.known.remove(&oldest).is_some() {
                return Some(oldest);
            }
        }
        None
    }

    /// Notes that it is not prepared, or may not be.
    pub(crate) fn remove(&mut self, key: StatementKey) {
        self.known.remove(&key);
        self.order.retain(|other| *other != key);
    }

    /// Notes that none is prepared.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Notes that none that has a name is prepared.
    pub(crate) fn clear_named(&mut self) {
        let unnamed = self.unnamed.take();
        *self = Self {
            unnamed,
            ..Self::default()
        };
    }

    /// Returns the name of a statement at the server.
    pub(crate) fn name(key: StatementKey) -> String {
        format!("{PREFIX}{}_{:x}", key.0, key.1)
    }

    /// Returns where a message of the server holds such a name, or [`PASSING`], between double
    /// quotes.
    pub(crate) fn find(message: &[u8]) -> Option<Range<usize>> {
        let quoted = |name: &str| format!("\"{name}");
        let named = memchr::memmem::find(message, quoted(PREFIX).as_bytes());
        let passing = || memchr::memmem::find(message, quoted(PASSING).as_bytes());
        let start = named.or_else(passing)? + 1;
        let length = memchr::memchr(b'"', message.get(start..)?)?;
        Some(start..start + length)
    }
}
