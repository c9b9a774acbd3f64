//! Reads and decodes the entries of a log ahead of what is applied.

use std::collections::VecDeque;
use std::time::SystemTime;

use bytes::Bytes;
use windrow_core::Write;
use windrow_core::unit::UNIT_OVERHEAD;
use windrow_spool::codec::{Decoder, Unreadable};
use windrow_spool::{Cursor, Entry, Log, Origin, Position, SpoolFault};

/// The bytes that are read at once.
const CHUNK: usize = 256 << 10;

/// An entry that is not applied.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) position: u64,
    pub(crate) written: SystemTime,
    origin: Origin,
    pub(crate) payload: Bytes,
    /// The decoded writes, until a unit takes them.
    writes: Option<Vec<Write>>,
    /// The number of rows that it writes.
    pub(crate) rows: usize,
    /// The bytes of its writes.
    pub(crate) bytes: usize,
}

impl Item {
    /// Returns a name that no other entry has.
    pub(crate) fn name(&self) -> Box<str> {
        name_of(self.origin)
    }

    /// Returns the bytes that the item takes in memory.
    fn held(&self) -> usize {
        self.bytes + self.payload.len()
    }
}

/// Returns a name that no other entry has, from its writer and its number there.
pub(crate) fn name_of(origin: Origin) -> Box<str> {
    format!("{:016x}-{:x}", origin.gateway, origin.sequence).into()
}

/// The reason why nothing more is read.
#[derive(Clone, Debug)]
pub(crate) enum ReadEnd {
    /// The log was closed, or takes nothing more.
    Closed,
    /// The log could not be read at this moment.
    Later(SpoolFault),
    /// The next entries are gone: another process has applied them, or the database is too old.
    Behind,
    /// The next entry cannot be applied.
    Never(Box<str>),
}

/// Reads a log from a position on.
pub(crate) struct Reader {
    cursor: Box<dyn Cursor>,
    decoder: Decoder,
    /// Entries that were read and not decoded.
    raw: VecDeque<Entry>,
    /// Decoded entries, in order.
    items: VecDeque<Item>,
    /// The bytes of the items in memory.
    held: usize,
    most: usize,
    /// The reason why nothing comes after them.
    stopped: Option<ReadEnd>,
}

impl Reader {
    /// Returns a reader. `most`: the most bytes that it holds; a single entry may be larger.
    pub(crate) fn new(log: &dyn Log, from: u64, most: usize) -> Result<Self, SpoolFault> {
        Ok(Self {
            cursor: log.cursor(Position(from))?,
            decoder: Decoder::new(),
            raw: VecDeque::new(),
            items: VecDeque::new(),
            held: 0,
            most: most.max(1),
            stopped: None,
        })
    }

    /// Returns the position of the next entry.
    pub(crate) fn position(&self) -> u64 {
        let ready = self.items.front().map(|item| item.position);
        let raw = || self.raw.front().map(|entry| entry.position.0);
        ready
            .or_else(raw)
            .unwrap_or_else(|| self.cursor.position().0)
    }

    /// Returns the position of the entry at this index among those that were read.
    pub(crate) fn place(&self, place: usize) -> u64 {
        let item = self.items.get(place);
        item.map_or_else(|| self.position(), |item| item.position)
    }

    /// Returns the entries that are read, in order.
    pub(crate) fn items(&self) -> &VecDeque<Item> {
        &self.items
    }

    /// Returns the reason why nothing comes after the entries that were read.
    pub(crate) fn stopped(&self) -> Option<&ReadEnd> {
        self.stopped.as_ref()
    }

    /// True while more should be read ahead.
    pub(crate) fn wants_more(&self) -> bool {
        self.stopped.is_none() && self.held < self.most
    }

    /// True if at least this many positions of a log with this end are not read.
    pub(crate) fn lags(&self, end: Position, least: u64) -> bool {
        let read = self.raw.front().map(|entry| entry.position);
        let read = read.unwrap_or_else(|| self.cursor.position());
        self.wants_more() && end.0.saturating_sub(read.0) >= least
    }

    /// Reads and decodes more, and waits if there is nothing. Cancel safe.
    pub(crate) async fn fill(&mut self) {
        if self.raw.is_empty() {
            match self.cursor.next(CHUNK.min(self.most)).await {
                Ok(entries) => self.raw.extend(entries),
                // The database is asked for its position again: if others apply the log as well, it
                // is further ahead.
                Err(SpoolFault::Trimmed { .. }) => return self.stopped = Some(ReadEnd::Behind),
                Err(fault) => return self.stopped = Some(ReadEnd::of(fault)),
            }
        }
        while self.wants_more()
            && let Some(entry) = self.raw.pop_front()
        {
            self.decode(entry);
        }
    }

    fn decode(&mut self, entry: Entry) {
        let writes = match self.decoder.unit(&entry.payload) {
            Ok(writes) => writes,
            Err(unreadable) => {
                self.stopped = Some(ReadEnd::unreadable(entry.position.0, unreadable));
                return;
            }
        };
        let item = Item {
            position: entry.position.0,
            written: entry.written,
            origin: entry.origin,
            payload: entry.payload,
            rows: writes.len().max(1),
            bytes: UNIT_OVERHEAD + writes.iter().map(Write::bytes).sum::<usize>(),
            writes: Some(writes),
        };
        self.held += item.held();
        self.items.push_back(item);
    }

    /// Returns the writes of the entry at this index among those that were read.
    pub(crate) fn writes(&mut self, place: usize) -> Result<&[Write], Unreadable> {
        let Some(item) = self.items.get_mut(place) else {
            return Ok(&[]);
        };
        if item.writes.is_none() {
            item.writes = Some(self.decoder.unit(&item.payload)?);
        }
        Ok(item.writes.as_deref().unwrap_or_default())
    }

    /// Takes the writes of the entry at this index for a unit. If the unit fails, the next call
    /// decodes them again.
    pub(crate) fn take_writes(&mut self, place: usize) -> Result<Vec<Write>, Unreadable> {
        self.writes(place)?;
        let item = self.items.get_mut(place);
        Ok(item.and_then(|item| item.writes.take()).unwrap_or_default())
    }

    /// Removes this many entries, which are applied.
    pub(crate) fn pop(&mut self, entries: usize) {
        for item in self.items.drain(..entries.min(self.items.len())) {
            self.held -= item.held();
        }
    }
}

impl ReadEnd {
    /// Returns the end at an entry that is not a unit.
    pub(crate) fn unreadable(position: u64, why: Unreadable) -> Self {
        Self::Never(format!("at position {position}, {why}").into())
    }

    /// Returns the end after an error of the log.
    pub(crate) fn of(fault: SpoolFault) -> Self {
        match fault {
            SpoolFault::Closed | SpoolFault::Poisoned { .. } => Self::Closed,
            SpoolFault::System { .. }
            | SpoolFault::DiskFull { .. }
            | SpoolFault::Unreached { .. } => Self::Later(fault),
            fault => Self::Never(fault.to_string().into()),
        }
    }
}
