//! The content of a log: entries, their positions, and their writers.

use std::fmt;
use std::time::SystemTime;

use bytes::Bytes;

/// The number of an entry within its partition: 0, 1, 2 and so on, in files without a gap. A
/// position names the same entry for ever; none is given twice within one spool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position(pub u64);

impl Position {
    /// The position so many entries further on.
    #[must_use]
    pub fn plus(self, entries: u64) -> Self {
        Self(self.0.saturating_add(entries))
    }

    /// Entries from an earlier position up to this one, or at most so many where there are gaps; 0
    /// where the other is not earlier.
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
/// meaning only together with it: a directory that is emptied and created again begins at 0 again,
/// and the position that a database remembers of the old spool must not be taken for one of the new
/// spool.
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
    /// Grows with every entry that this gateway writes to this partition. It may leave numbers
    /// out: an attempt that failed has used some.
    pub sequence: u64,
}

/// An entry as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it stands.
    pub position: Position,
    /// The writer of the entry.
    pub origin: Origin,
    /// When it was written, by the clock of the gateway that wrote it, in whole milliseconds.
    pub written: SystemTime,
    /// The bytes of the entry, whose meaning is the caller's matter. They share memory with the
    /// other entries that were read with it.
    pub payload: Bytes,
}

/// Entries that are appended together: all of them become durable, next to each other, or none
/// does. Built in one buffer, so that an encoder can write right into it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Batch {
    /// Without entries.
    pub fn new() -> Self {
        Self::default()
    }

    /// One entry.
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

    /// Takes the last entry away.
    pub fn pop(&mut self) {
        self.ends.pop();
        let end = self.ends.last().copied().unwrap_or_default();
        self.bytes.truncate(end);
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True without entries.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of all payloads.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The payloads in order.
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
