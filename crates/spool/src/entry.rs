//! The content of a log: entries, their positions, and their writers.

use std::fmt;
use std::time::SystemTime;

use bytes::Bytes;

/// The number of an entry within its partition: 0, 1, 2 and so on, without gaps if the spool is in
/// files. A position always means the same entry; none is used twice within a spool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position(pub u64);

impl Position {
    /// Returns the position this number of entries later.
    #[must_use]
    pub fn plus(self, entries: u64) -> Self {
        Self(self.0.saturating_add(entries))
    }

    /// Returns the number of entries from an earlier position up to this one; an upper bound if
    /// positions have gaps. 0 if the other position is not earlier.
    pub fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The name of a spool: a random number that is drawn when the spool is created. Positions have a
/// meaning only together with it: a spool that is created again in an emptied directory begins at
/// 0, and a position in the old spool that a database remembers must not be mistaken for one in the
/// new spool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpoolId(pub u128);

impl fmt::Display for SpoolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The writer of an entry, and the entry's number among those of the writer. Unique.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The gateway: a number that is drawn each time a gateway opens the spool.
    pub gateway: u64,
    /// A number that grows with every entry that this gateway writes to this partition. Failed
    /// attempts leave gaps.
    pub sequence: u64,
}

/// An entry as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The position of the entry.
    pub position: Position,
    /// The writer of the entry.
    pub origin: Origin,
    /// The time of writing, by the clock of the gateway that wrote it, in whole milliseconds.
    pub written: SystemTime,
    /// The bytes of the entry, whose meaning is up to the caller. They share memory with the other
    /// entries that were read with it.
    pub payload: Bytes,
}

/// Entries that are appended together: all of them become durable, next to each other, or none
/// does. Built in one buffer, into which an encoder writes directly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Batch {
    /// Returns a batch without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a batch of one entry.
    pub fn of(payload: &[u8]) -> Self {
        let mut batch = Self::new();
        batch.push(payload);
        batch
    }

    /// Adds an entry.
    pub fn push(&mut self, payload: &[u8]) {
        self.push_with(|bytes| bytes.extend_from_slice(payload));
    }

    /// Adds an entry that is written by `encode`, which must only append.
    pub fn push_with(&mut self, encode: impl FnOnce(&mut Vec<u8>)) {
        encode(&mut self.bytes);
        self.ends.push(self.bytes.len());
    }

    /// Removes the last entry.
    pub fn pop(&mut self) {
        self.ends.pop();
        let end = self.ends.last().copied().unwrap_or_default();
        self.bytes.truncate(end);
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the bytes of all payloads.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Returns the payloads in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let payload = self.bytes.get(start..*end).unwrap_or_default();
            start = *end;
            payload
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_keeps_its_entries_apart() {
        let mut batch = Batch::of(b"one");
        batch.push(b"");
        batch.push_with(|bytes| bytes.extend(b"three"));
        let entries: Vec<_> = batch.iter().collect();
        assert_eq!(entries, [&b"one"[..], b"", b"three"]);
        assert_eq!((batch.len(), batch.bytes()), (3, 8));
        batch.pop();
        batch.push(b"four");
        assert_eq!(batch.iter().last(), Some(&b"four"[..]));
        assert_eq!((batch.len(), batch.bytes()), (3, 7));
    }
}
