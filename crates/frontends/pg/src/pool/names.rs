//! The statements prepared on a server connection.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use crate::statements::FixedTypes;

/// The most statements kept prepared on one server connection.
const MAX_PREPARED: usize = 500;

/// The prefix of the names of statements.
const PREFIX: &str = "windrow_";

/// The name of a statement that is used once.
pub(crate) const PASSING: &str = "windrow value";

/// A name that no statement has.
pub(crate) const NOWHERE: &str = "windrow nowhere";

/// The prefix for a client's own statement whose name looks like Windrow's.
const OF_CLIENT: &str = "client ";

/// A prepared statement of the process: its number, and a fingerprint of the settings under which
/// it was prepared.
pub(crate) type StatementKey = (u64, u64);

/// Statements by their process-wide number.
#[derive(Debug, Default)]
pub(crate) struct Names {
    known: HashMap<StatementKey, FixedTypes, foldhash::fast::RandomState>,
    order: VecDeque<StatementKey>,
    /// The text of the unnamed statement, and its types; `None` if it is not one of the session's.
    pub(crate) unnamed: Option<(StatementKey, FixedTypes)>,
}

impl Names {
    /// Returns the types with which a statement is prepared, if it is.
    pub(crate) fn fixed_types(&self, key: StatementKey) -> Option<&FixedTypes> {
        self.known.get(&key)
    }

    /// Notes that a statement is prepared now, with these types. Returns the one to be closed for
    /// it, if there is one.
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

    /// Notes that a statement is not prepared, or may not be.
    pub(crate) fn remove(&mut self, key: StatementKey) {
        self.known.remove(&key);
        self.order.retain(|other| *other != key);
    }

    /// Handles the error that a statement does not exist because SQL code has removed it: it is
    /// prepared again when it is used.
    pub(crate) fn note_gone(&mut self, error: &[u8]) {
        let name = Self::find(error).and_then(|place| error.get(place));
        if let Some(key) = name.and_then(key_of) {
            self.remove(key);
        }
    }

    /// Notes that no statement is prepared.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Notes that no named statement is prepared.
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

    /// Returns the name at the server for a statement that the session has not prepared by the
    /// protocol, if its own name is or may become one of Windrow's: another session's statement may
    /// have that name.
    pub(crate) fn of_client(name: &[u8]) -> Option<String> {
        let name = std::str::from_utf8(name).ok()?;
        let is_taken = key_of(name.as_bytes()).is_some() || matches!(name, PASSING | NOWHERE);
        is_taken.then(|| format!("{OF_CLIENT}{name}"))
    }

    /// Returns the range of such a name, or of [`PASSING`], between double quotes in a message of
    /// the server.
    pub(crate) fn find(message: &[u8]) -> Option<Range<usize>> {
        let quoted = |name: &str| format!("\"{name}");
        let named = memchr::memmem::find(message, quoted(PREFIX).as_bytes());
        let passing = || memchr::memmem::find(message, quoted(PASSING).as_bytes());
        let start = named.or_else(passing)? + 1;
        let length = memchr::memchr(b'"', message.get(start..)?)?;
        Some(start..start + length)
    }
}

/// Returns the statement of a name that [`Names::name`] has returned.
fn key_of(name: &[u8]) -> Option<StatementKey> {
    let name = std::str::from_utf8(name).ok()?;
    let (number, settings) = name.strip_prefix(PREFIX)?.split_once('_')?;
    let settings = u64::from_str_radix(settings, 16).ok()?;
    Some((number.parse().ok()?, settings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_that_the_server_does_not_have_is_forgotten() {
        let mut names = Names::default();
        for key in [(7, 0xab), (8, 0)] {
            names.add(key, FixedTypes::default());
        }
        names.note_gone(b"Mprepared statement \"windrow_7_ab\" does not exist\0");
        assert!(names.fixed_types((7, 0xab)).is_none());
        names.note_gone(b"Mprepared statement \"windrow_orders\" does not exist\0");
        assert!(names.fixed_types((8, 0)).is_some());
    }

    #[test]
    fn a_clients_name_is_never_one_of_the_process() {
        for name in [&*Names::name((7, 0xab)), PASSING, NOWHERE] {
            let own = Names::of_client(name.as_bytes());
            assert_eq!(own, Some(format!("client {name}")));
        }
        for name in ["windrow_orders", "windrow_1_next", "windrow_1", "s", ""] {
            assert_eq!(Names::of_client(name.as_bytes()), None, "{name}");
        }
    }
}
