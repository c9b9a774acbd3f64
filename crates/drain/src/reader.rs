//! Entries of a log, read and decoded ahead of what is applied.

use std::collections::VecDeque;
use std::time::SystemTime;

use bytes::Bytes;
use windrow_core::Write;
use windrow_core::unit::UNIT_OVERHEAD;
use windrow_spool::codec::{Decoder, Unreadable};
use windrow_spool::{Cursor, Entry, Log, Origin, Position, SpoolFault};

/// Bytes that are read at once.
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
    /// Rows that it writes.
    pub(crate) rows: usize,
    /// Bytes that its writes take.
    pub(crate) bytes: usize,
}

impl Item {
    /// A name that no other entry has.
    pub(crate) fn name(&self) -> Box<str> {
        name_of(self.origin)
    }

    /// Returns the bytes that the item takes in memory.
    fn held(&self) -> usize {
        self.bytes + self.payload.len()
    }
}

/// A name that no other entry has: who wrote it, and as which of theirs.
pub(crate) fn name_of(origin: Origin) -> Box<str> {
    format!("{:016x}-{:x}", origin.gateway, origin.sequence).into()
}

/// Why nothing more is read.
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
    /// Read and not decoded.
    raw: VecDeque<Entry>,
    /// Decoded, in order.
    items: VecDeque<Item>,
    /// Bytes that the items take in memory.
    held: usize,
    most: usize,
    /// Why nothing comes behind them.
    stopped: Option<ReadEnd>,
}

impl Reader {
    /// `most`: bytes that it holds at most; one entry may be larger.
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

    /// The position that comes next.
    pub(crate) fn position(&self) -> u64 {
        let ready = self.items.front().map(|item| item.position);
        let raw = || self.raw.front().map(|entry| entry.position.0);
        ready
            .or_else(raw)
            .unwrap_or_else(|| self.cursor.position().0)
    }

    /// The position of the entry at this place among those that are there.
    pub(crate) fn place(&self, place: usize) -> u64 {
        let item = self.items.get(place);
        item.map_or_else(|| self.position(), |item| item.position)
    }

    /// Returns the entries that are read, in order.
    pub(crate) fn items(&self) -> &VecDeque<Item> {
        &self.items
    }

    /// Why nothing comes behind what is there.
    pub(crate) fn stopped(&self) -> Option<&ReadEnd> {
        self.stopped.as_ref()
    }

    /// True while more is to be read ahead.
    pub(crate) fn wants_more(&self) -> bool {
        self.stopped.is_none() && self.held < self.most
    }

    /// True where at least so many positions of a log that ends there are not read.
    pub(crate) fn lags(&self, end: Position, least: u64) -> bool {
        let read = self.raw.front().map(|entry| entry.position);
        let read = read.unwrap_or_else(|| self.cursor.position());
        self.wants_more() && end.0.saturating_sub(read.0) >= least
    }

    /// Reads and decodes more, and waits where nothing is there. Cancel safe.
    pub(crate) async fn fill(&mut self) {
        if self.raw.is_empty() {
            match self.cursor.next(CHUNK.min(self.most)).await {
                Ok(entries) => self.raw.extend(entries),
                // The database is asked again how far it is: where others apply the log as well,
                // it is further on.
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

    /// The writes of the entry at this place among those that are there.
    pub(crate) fn writes(&mut self, place: usize) -> Result<&[Write], Unreadable> {
        let Some(item) = self.items.get_mut(place) else {
            return Ok(&[]);
        };
        if item.writes.is_none() {
            item.writes = Some(self.decoder.unit(&item.payload)?);
        }
        Ok(item.writes.as_deref().unwrap_or_default())
    }

    /// Takes the writes of the entry at this place for a unit. If the unit fails, the next call
    /// decodes them again.
    pub(crate) fn take_writes(&mut self, place: usize) -> Result<Vec<Write>, Unreadable> {
        self.writes(place)?;
        let item = self.items.get_mut(place);
        Ok(item.and_then(|item| item.writes.take()).unwrap_or_default())
    }

    /// Removes so many entries, which are applied.
    pub(crate) fn pop(&mut self, entries: usize) {
        for item in self.items.drain(..entries.min(self.items.len())) {
            self.held -= item.held();
        }
    }
}

impl ReadEnd {
    /// An entry that is no unit.
    pub(crate) fn unreadable(position: u64, why: Unreadable) -> Self {
        Self::Never(format!("at position {position}, {why}").into())
    }

    /// Why the log gives nothing.
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
