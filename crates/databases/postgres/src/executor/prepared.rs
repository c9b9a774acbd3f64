//! The prepared statements of one connection. Beyond a limit, the least recently used are closed.

use std::collections::HashMap;
use std::time::Duration;

use foldhash::fast::RandomState;
use tokio::time::Instant;

use crate::catalog::check::Check;

/// Limit on the number of statements of a connection. Each costs the server some tens of kilobytes.
const MOST: usize = 256;

/// The purpose of a prepared statement, and the number of its table's version or its compiled
/// statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StatementKey {
    /// The guard of a version of a table, which finds changed columns.
    Guard(u64),
    /// The statement of one write.
    Single(u64),
    /// The set-based statement.
    Fused(u64),
    /// The set-based insert that leaves out and reports rows that would fail.
    Telling(u64),
    /// The check of a version of a table, which finds changes of all that its proof relies on.
    Check(Check),
    /// The statement that reads the sequence value of the preceding write.
    FollowUp,
}

/// The state of a prepared statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// The statement can be bound.
    Ready,
    /// The server refused to parse the statement.
    Failed,
}

#[derive(Debug)]
struct Entry {
    born: Instant,
    number: u64,
    used: u64,
    state: State,
}

/// Statements by key.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    entries: HashMap<StatementKey, Entry, RandomState>,
    numbers: u64,
    clock: u64,
    /// Numbers of statements to be closed on the server.
    closing: Vec<u64>,
    /// Versions of tables that no longer match their descriptions.
    changed: Vec<u64>,
}

/// Returns the server's name of a statement.
pub(crate) fn name(number: u64) -> String {
    format!("w{number}")
}

impl Prepared {
    /// Returns true if the statement was prepared or has failed. Counts as a use.
    pub(crate) fn knows(&mut self, key: StatementKey) -> bool {
        self.clock += 1;
        let entry = self.entries.get_mut(&key);
        entry.map(|entry| entry.used = self.clock).is_some()
    }

    /// Returns the current time of the usage clock. Statements used later count as in use.
    pub(crate) fn now(&self) -> u64 {
        self.clock
    }

    /// Returns true if the statement was prepared longer than `age` ago.
    pub(crate) fn is_older(&self, key: StatementKey, age: Duration) -> bool {
        let entry = self.entries.get(&key);
        entry.is_some_and(|entry| entry.born.elapsed() > age)
    }

    /// Returns the number of a statement that is ready. Counts as a use.
    pub(crate) fn ready(&mut self, key: StatementKey) -> Option<u64> {
        self.clock += 1;
        let entry = self.entries.get_mut(&key)?;
        entry.used = self.clock;
        (entry.state == State::Ready).then_some(entry.number)
    }

    /// Returns a number for a new statement.
    pub(crate) fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// Records the state of a statement.
    pub(crate) fn put(&mut self, key: StatementKey, number: u64, state: State) {
        self.clock += 1;
        let used = self.clock;
        let entry = Entry {
            born: Instant::now(),
            number,
            used,
            state,
        };
        let old = self.entries.insert(key, entry);
        let old = old.filter(|old| old.number != number);
        self.closing.extend(old.map(|old| old.number));
    }

    /// Marks a statement as unusable, though it was parsed.
    pub(crate) fn fail(&mut self, key: StatementKey) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.state = State::Failed;
        }
    }

    /// Records that a table no longer matches its description.
    pub(crate) fn changed(&mut self, version: u64) {
        self.changed.push(version);
    }

    /// Returns the versions of such tables since the last call.
    pub(crate) fn take_changed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.changed)
    }

    /// Drops statements. They are closed in the next round trip that prepares statements.
    pub(crate) fn forget(&mut self, gone: impl Fn(StatementKey) -> bool) {
        let closing = &mut self.closing;
        self.entries.retain(|key, entry| {
            if gone(*key) {
                closing.push(entry.number);
            }
            !gone(*key)
        });
    }

    /// Drops all statements, because the server has lost them.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.closing.clear();
    }

    /// Evicts statements so that `more` fit within the limit. Returns the numbers of statements to
    /// be closed on the server. Statements used since `begun` are kept.
    pub(crate) fn evict(&mut self, more: usize, begun: u64) -> Vec<u64> {
        let surplus = (self.entries.len() + more).saturating_sub(MOST);
        if surplus > 0 {
            let unused = self.entries.iter().filter(|(_, entry)| entry.used <= begun);
            let mut by_age: Vec<_> = unused.map(|(k, e)| (e.used, *k)).collect();
            by_age.sort_unstable_by_key(|(used, _)| *used);
            for (_, key) in by_age.into_iter().take(surplus) {
                self.forget(|k| k == key);
            }
        }
        std::mem::take(&mut self.closing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_go_first_and_are_closed() {
        let mut prepared = Prepared::default();
        for id in 0..MOST as u64 {
            let number = prepared.number();
            prepared.put(StatementKey::Single(id), number, State::Ready);
        }
        assert!(prepared.evict(0, u64::MAX).is_empty());
        assert!(prepared.ready(StatementKey::Single(0)).is_some());
        assert_eq!(prepared.evict(2, u64::MAX), [2, 3]);
        assert!(prepared.knows(StatementKey::Single(0)));
        assert!(!prepared.knows(StatementKey::Single(1)));
    }

    #[test]
    fn what_is_needed_now_stays() {
        let mut prepared = Prepared::default();
        for id in 0..MOST as u64 {
            let number = prepared.number();
            prepared.put(StatementKey::Single(id), number, State::Ready);
        }
        let begun = prepared.now();
        assert!(prepared.knows(StatementKey::Single(0)));
        assert_eq!(prepared.evict(2, begun), [2, 3]);
        assert!(prepared.knows(StatementKey::Single(0)));
        assert_eq!(prepared.evict(1000, prepared.now()).len(), MOST - 2);
    }

    #[test]
    fn what_failed_is_known_but_not_ready() {
        let mut prepared = Prepared::default();
        prepared.put(StatementKey::Guard(1), 7, State::Failed);
        assert!(prepared.knows(StatementKey::Guard(1)));
        assert_eq!(prepared.ready(StatementKey::Guard(1)), None);
        prepared.put(StatementKey::Guard(1), 8, State::Ready);
        assert_eq!(prepared.ready(StatementKey::Guard(1)), Some(8));
        assert_eq!(
            prepared.evict(0, u64::MAX),
            [7],
            "the replaced one is closed"
        );
    }
}
