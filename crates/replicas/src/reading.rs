//! The entries that were read from a log and not applied yet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use windrow_core::{Fault, TableName, Write};
use windrow_spool::codec::Decoder;
use windrow_spool::{Cursor, Entry, Origin, Position, SpoolFault};

use crate::entry::{self, Kind, LogEntry, Read};
use crate::held::HeldRows;
use crate::members::{Copying, Members};
use crate::notes::{CHUNK, tables, unreadable};
use crate::replica::Replica;
use crate::tickets::BatchEnd;

/// An entry that was read and not applied.
struct Open {
    ticket: Option<u64>,
    written: SystemTime,
    keys: usize,
    /// The keys of the entry, while its batch is under way.
    waiting: Option<Read>,
}

/// A key to be applied, with its entry, and the number of times that it was refused.
pub(crate) type Due = (Write, u64, u32);

/// Reads the log of one replica.
pub(crate) struct Reading {
    replica: Arc<Replica>,
    decoder: Decoder,
    cursor: Box<dyn Cursor>,
    pub(crate) members: Members,
    /// The position before which all entries were read before, if the cursor has gone back.
    seen: u64,
    open: BTreeMap<u64, Open>,
    pub(crate) due: Vec<Due>,
    /// Tables to be compared, each with its note's entry.
    pub(crate) unknown: Vec<(TableName, u64)>,
    pub(crate) held: HeldRows,
    /// True if another gateway has taken over this one's entries.
    pub(crate) overtaken: bool,
}

impl Reading {
    pub(crate) fn new(replica: Arc<Replica>) -> Result<Self, SpoolFault> {
        let first = *replica.applied.borrow();
        Ok(Self {
            decoder: Decoder::new(),
            cursor: replica.log.cursor(first)?,
            members: Members::new(replica.log.gateway, replica.log.is_alone()),
            replica,
            seen: first,
            open: BTreeMap::new(),
            due: Vec::new(),
            unknown: Vec::new(),
            held: HeldRows::default(),
            overtaken: false,
        })
    }

    /// Returns the position that is read next.
    pub(crate) fn position(&self) -> u64 {
        self.cursor.position().0
    }

    /// True if there are probably more entries to read.
    pub(crate) fn has_more(&self) -> bool {
        self.cursor.position() < self.replica.log.log.end()
    }

    /// True if anything can be applied.
    pub(crate) fn has_due(&mut self) -> bool {
        if self.due.is_empty() && !self.replica.is_copying() {
            let reached = self.members.applied(self.reached());
            self.due = self.held.due(reached);
        }
        !self.due.is_empty() || !self.unknown.is_empty()
    }

    /// True if something must be done before more is applied.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.overtaken || self.members.silent().is_some()
    }

    /// Returns the first entry that is not applied, and the time of its writing.
    pub(crate) fn first_open(&self) -> Option<(u64, SystemTime)> {
        let first = self.open.first_key_value();
        first.map(|(position, open)| (*position, open.written))
    }

    /// Returns a test of an entry: true if it was left by a process that has ended, and is not read
    /// yet.
    pub(crate) fn left(&self) -> impl Fn(Origin, u64) -> bool + Send + use<'_> {
        let (members, open) = (&self.members, &self.open);
        move |origin, position| members.is_left(origin, position) && !open.contains_key(&position)
    }

    /// Returns the position before which all is applied that this gateway applies, except rows that
    /// were refused for now. Only valid if nothing is due.
    pub(crate) fn reached(&self) -> u64 {
        let mut open = self.open.iter();
        let waiting = open.find(|(_, open)| open.waiting.is_some());
        waiting.map_or(self.position(), |(position, _)| *position)
    }

    /// Waits for more entries, for the end of a batch, or for this time.
    pub(crate) async fn next(&mut self, wait: Option<Duration>) -> Result<(), Fault> {
        let read = tokio::select! {
            read = self.cursor.next(CHUNK) => read,
            () = self.replica.tickets.news.notified() => return Ok(()),
            () = tokio::time::sleep(wait.unwrap_or_default()), if wait.is_some() => return Ok(()),
        };
        match read {
            Ok(entries) => {
                for entry in entries {
                    self.take(&entry)?;
                }
                self.tell();
            }
            Err(SpoolFault::Trimmed { first, .. }) if !self.replica.log.is_alone() => {
                self.skip(first)?;
            }
            Err(fault) => return Err(fault.into()),
        }
        Ok(())
    }

    /// Skips entries that others have applied and removed: none of them is this gateway's, unless
    /// it counts as lost.
    fn skip(&mut self, first: Position) -> Result<(), Fault> {
        self.overtaken |= self.replica.log.own_end() > self.position();
        self.cursor = self.replica.log.cursor(first.0)?;
        self.seen = self.seen.max(first.0);
        Ok(())
    }

    fn take(&mut self, entry: &Entry) -> Result<(), Fault> {
        let (position, origin) = (entry.position.0, entry.origin);
        let entered = match entry::read(&mut self.decoder, &entry.payload) {
            Ok(entered) => entered,
            Err(why) => {
                self.cursor = self.replica.log.cursor(position)?;
                return Err(unreadable(entry.position, &why));
            }
        };
        let is_new = position >= self.seen;
        self.seen = self.seen.max(position + 1);
        match entered {
            LogEntry::Rows(read) => self.rows((origin, position), entry.written, read, is_new),
            LogEntry::Sign(sign) if is_new => self.members.sign(origin, position, sign),
            LogEntry::Lost(gateway) if is_new => {
                self.overtaken |= self.members.lost(origin, gateway, position);
            }
            LogEntry::Sign(_) | LogEntry::Lost(_) => {}
        }
        Ok(())
    }

    fn rows(
        &mut self,
        (origin, position): (Origin, u64),
        written: SystemTime,
        read: Read,
        is_new: bool,
    ) {
        if is_new {
            self.members.rows(origin, position);
        }
        let own = origin.gateway == self.replica.log.gateway;
        let is_applied_here = match own {
            true => is_new,
            false => self.left()(origin, position),
        };
        if !is_applied_here {
            return;
        }
        let ticket = own.then_some(read.ticket);
        let ended = ticket.map_or(Ok(None), |ticket| self.replica.tickets.ended(ticket));
        let open = Open {
            ticket,
            written,
            keys: read.keys.len().max(1),
            waiting: None,
        };
        self.open.insert(position, open);
        match ended {
            Ok(ended) => self.ready(position, read, ended),
            Err(_) => {
                if let Some(open) = self.open.get_mut(&position) {
                    open.waiting = Some(read);
                }
            }
        }
    }

    /// Publishes what was learned about other gateways.
    fn tell(&self) {
        if self.replica.log.is_alone() {
            return;
        }
        let behind = self.members.behind();
        self.replica.others.store(behind, Ordering::Relaxed);
        let copying = self.members.copying();
        self.replica.copying.send_if_modified(|now| {
            let is_new = *now != Copying::Done && *now != copying;
            if is_new {
                *now = copying;
            }
            is_new
        });
    }

    /// Goes back to the entries that another gateway has left before a position.
    pub(crate) fn take_over(
        &mut self,
        (gateway, from): (u64, u64),
        upto: u64,
    ) -> Result<(), SpoolFault> {
        self.members.taken(self.replica.log.gateway, gateway, upto);
        if from < self.position() {
            self.cursor = self.replica.log.cursor(from)?;
        }
        Ok(())
    }

    /// Drops all entries that were read and not applied, because another gateway applies them.
    pub(crate) fn forget(&mut self) -> Result<(), SpoolFault> {
        let keys = self.open.values().map(|open| open.keys).sum();
        self.replica.done(self.open.len(), keys);
        self.open.clear();
        self.due.clear();
        self.unknown.clear();
        self.held = HeldRows::default();
        if self.position() < self.seen {
            self.cursor = self.replica.log.cursor(self.seen)?;
        }
        Ok(())
    }

    /// Moves the keys of batches that have ended to the due ones.
    pub(crate) fn release(&mut self) {
        let ended = |open: &Open| {
            let ticket = open.ticket.filter(|_| open.waiting.is_some())?;
            self.replica.tickets.ended(ticket).ok()
        };
        let all = self.open.iter();
        let ended: Vec<_> = all
            .filter_map(|(at, open)| Some((*at, ended(open)?)))
            .collect();
        for (position, how) in ended {
            let open = self.open.get_mut(&position);
            if let Some(read) = open.and_then(|open| open.waiting.take()) {
                self.ready(position, read, how);
            }
        }
    }

    fn ready(&mut self, position: u64, read: Read, ended: Option<BatchEnd>) {
        let untold = ended == Some(BatchEnd::KeysUnknown);
        match read.kind {
            Kind::Note if untold => {
                let found = tables(&read);
                self.unknown
                    .extend(found.into_iter().map(|table| (table, position)));
            }
            Kind::Note => self.settle(position, read.keys.len().max(1)),
            Kind::Keys | Kind::Closing if read.keys.is_empty() => self.settle(position, 1),
            Kind::Keys | Kind::Closing => {
                let due = read.keys.into_iter().map(|key| (key, position, 0));
                self.due.extend(due);
            }
        }
    }

    /// Counts keys of an entry that are done.
    pub(crate) fn settle(&mut self, position: u64, keys: usize) {
        let Some(open) = self.open.get_mut(&position) else {
            return;
        };
        open.keys = open.keys.saturating_sub(keys);
        let is_done = open.keys == 0;
        self.replica.done(is_done.into(), keys);
        if is_done
            && let Some(Open {
                ticket: Some(ticket),
                ..
            }) = self.open.remove(&position)
        {
            self.replica.tickets.applied(ticket);
        }
    }
}
