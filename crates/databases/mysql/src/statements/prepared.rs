//! The prepared statements of a connection. Those that were not used lately are closed.

use std::collections::HashMap;

/// Prepared statements that a connection keeps.
const MAX_STATEMENTS: usize = 256;

/// Placeholders of all of them: each takes some 150 bytes on the server.
const MAX_PLACEHOLDERS: usize = 1 << 16;

/// The text of a prepared statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PreparedKey {
    /// The number of the client's statement.
    pub(super) statement: u64,
    /// The rows of an INSERT of many; 0 for the client's own text.
    pub(super) rows: usize,
    /// A hash of the values' types, if the server gives a parameter the type of an earlier value.
    pub(super) types: u64,
}

/// The prepared statements of a connection.
#[derive(Debug, Default)]
pub(super) struct PreparedStatements {
    known: HashMap<PreparedKey, Prepared>,
    placeholders: usize,
    /// Counts batches.
    clock: u64,
}

#[derive(Debug)]
struct Prepared {
    id: u32,
    placeholders: usize,
    used: u64,
}

impl PreparedStatements {
    /// Begins a batch: the statements that it uses are kept until the next one.
    pub(super) fn begin(&mut self) {
        self.clock += 1;
    }

    /// Returns the server's number of a prepared statement.
    pub(super) fn get(&mut self, key: &PreparedKey) -> Option<u32> {
        let prepared = self.known.get_mut(key)?;
        prepared.used = self.clock;
        Some(prepared.id)
    }

    /// Adds a statement that was prepared.
    pub(super) fn insert(&mut self, key: PreparedKey, id: u32, placeholders: usize) {
        self.placeholders += placeholders;
        let prepared = Prepared {
            id,
            placeholders,
            used: self.clock,
        };
        self.known.insert(key, prepared);
    }

    /// Removes the statements that are too many, and returns their numbers. They must be closed.
    pub(super) fn take_surplus(&mut self) -> Vec<u32> {
        let mut surplus = Vec::new();
        while self.known.len() > MAX_STATEMENTS || self.placeholders > MAX_PLACEHOLDERS {
            let unused = self.known.iter().filter(|(_, p)| p.used < self.clock);
            let oldest = unused.min_by_key(|(_, p)| p.used).map(|(key, _)| *key);
            let Some(removed) = oldest.and_then(|key| self.known.remove(&key)) else {
                break;
            };
            self.placeholders -= removed.placeholders;
            surplus.push(removed.id);
        }
        surplus
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(statement: u64) -> PreparedKey {
        PreparedKey {
            statement,
            rows: 0,
            types: 0,
        }
    }

    #[test]
    fn those_that_were_not_used_lately_are_closed() {
        let mut prepared = PreparedStatements::default();
        prepared.begin();
        let most = u32::try_from(MAX_STATEMENTS).unwrap();
        for n in 0..most {
            prepared.insert(key(n.into()), n, 1);
        }
        prepared.begin();
        prepared.get(&key(0));
        assert!(prepared.take_surplus().is_empty());
        prepared.insert(key(9_999), 9_999, 1);
        assert_eq!(prepared.take_surplus().len(), 1);
        assert_eq!(prepared.get(&key(0)), Some(0));
    }

    #[test]
    fn those_of_this_batch_are_kept() {
        let mut prepared = PreparedStatements::default();
        prepared.begin();
        prepared.insert(key(1), 1, MAX_PLACEHOLDERS);
        prepared.insert(key(2), 2, MAX_PLACEHOLDERS);
        assert!(prepared.take_surplus().is_empty());
        prepared.begin();
        assert_eq!(prepared.take_surplus().len(), 1);
    }
}
