//! Applies the log of a replica: one task for each.

use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windrow_core::{Fault, Op, Purpose, RowWrite, TableName, Value};
use windrow_spool::codec::Decoder;
use windrow_spool::{Cursor, Entry, Position, SpoolFault};

use crate::check::{Source, mend};
use crate::comparison::Ends;
use crate::entry::{self, Kind, Read};
use crate::held::HeldRows;
use crate::letter::reject;
use crate::notes::{CHUNK, tables, unclosed, unreadable};
use crate::replica::Replica;
use crate::rows::{Found, Writes, Written, read, write};
use crate::status::ReplicaState;
use crate::tickets::Ended;

/// Rows of one batch at most, and bytes of their values, as far as those before tell.
const MOST_ROWS: usize = 10_000;
const MOST_BYTES: usize = 8 << 20;

/// Pauses between attempts.
const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(5);

/// How long more is let come at most where nobody waits for what is there, and keys that are worth
/// a batch at once.
const GATHER: Duration = Duration::from_millis(5);
const ENOUGH: usize = 1_000;

/// How long the primary's earlier transactions may take before it is told that they are waited for.
const LONG_SETTLING: Duration = Duration::from_secs(5);

/// How often what was applied is given up in the log.
const TRIM: Duration = Duration::from_secs(1);

/// An entry that is read and not applied.
struct Open {
    ticket: Option<u64>,
    written: SystemTime,
    keys: usize,
    /// Its keys, while its batch is under way.
    waiting: Option<Read>,
}

/// A key to be applied: the entry that it is of, and how often it was refused.
type Due = (RowWrite, u64, u32);

/// Applies the log of one replica.
pub(crate) struct Applier {
    replica: Arc<Replica>,
    source: Source,
    /// Clients wait until the replica has their rows.
    awaited: bool,
    stop: CancellationToken,
    decoder: Decoder,
    cursor: Box<dyn Cursor>,
    open: BTreeMap<u64, Open>,
    due: Vec<Due>,
    /// Tables that are to be compared, and the notes that say so.
    unknown: Vec<(TableName, u64)>,
    held: HeldRows,
    /// Bytes of a row, by those that were read last.
    row_bytes: usize,
    prepared: bool,
    begun: bool,
    trimmed: Instant,
}

impl Applier {
    pub(crate) fn new(
        replica: Arc<Replica>,
        (source, awaited): (Source, bool),
        stop: CancellationToken,
    ) -> Result<Self, SpoolFault> {
        let first = *replica.applied.borrow();
        Ok(Self {
            cursor: replica.log.cursor(Position(first))?,
            replica,
            source,
            awaited,
            stop,
            decoder: Decoder::new(),
            open: BTreeMap::new(),
            due: Vec::new(),
            unknown: Vec::new(),
            held: HeldRows::default(),
            row_bytes: 256,
            prepared: false,
            begun: false,
            trimmed: Instant::now(),
        })
    }

    /// Applies until it is told to stop. Dropping the future does no harm: what was under way is
    /// applied again.
    pub(crate) async fn run(mut self) {
        let stop = self.stop.clone();
        let mut pause = SHORT;
        loop {
            let began = Instant::now();
            let fault = tokio::select! {
                () = stop.cancelled() => break,
                Err(fault) = self.session() => fault,
            };
            pause = if began.elapsed() > LONG {
                SHORT
            } else {
                (pause * 2).min(LONG)
            };
            tracing::warn!(replica = %self.replica.name, %fault, "nothing can be written to the replica for now; it is tried again");
            self.replica
                .is(ReplicaState::Waiting(fault.to_string().into()));
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(pause) => {}
            }
        }
        self.trim().await;
    }

    async fn session(&mut self) -> Result<Infallible, Fault> {
        let target = &self.replica.target.database;
        let mut ends = Ends {
            primary: self.source.database.connect(Purpose::Batches).await?,
            replica: target.connect(Purpose::Batches).await?,
        };
        if !self.prepared
            && let Some(own) = target.bookkeeping()
        {
            own.prepare().await?;
        }
        self.prepared = true;
        if !self.begun {
            self.begin(&mut ends).await?;
        }
        loop {
            self.gather().await?;
            self.replica.is(ReplicaState::Applying);
            if !self.awaited && self.due.len() < ENOUGH {
                // A batch for each few rows costs three databases more than one for many.
                tokio::time::sleep(GATHER).await;
                self.gather().await?;
            }
            while let Some((table, position)) = self.unknown.first().cloned() {
                self.compare(&mut ends, &table).await?;
                self.unknown.remove(0);
                self.settle(position, 1);
            }
            while !self.due.is_empty() {
                self.step(&mut ends).await?;
            }
            self.progress().await;
        }
    }

    /// What an earlier process has left: its transactions may still be under way, and it may have
    /// written rows whose keys it did not come to tell.
    async fn begin(&mut self, ends: &mut Ends) -> Result<(), Fault> {
        let inventory = Arc::clone(&self.source.inventory);
        let mut settled = inventory.settled();
        tokio::select! {
            ended = &mut settled => ended?,
            () = tokio::time::sleep(LONG_SETTLING) => {
                tracing::warn!(replica = %self.replica.name, "the primary still executes what was under way at the start; nothing is applied until that has ended, because an earlier Windrow may have sent it");
                settled.await?;
            }
        }
        for table in unclosed(&self.replica, self.cursor.position()).await? {
            self.compare(ends, &table).await?;
        }
        self.begun = true;
        Ok(())
    }

    async fn compare(&mut self, ends: &mut Ends, table: &TableName) -> Result<(), Fault> {
        tracing::info!(replica = %self.replica.name, %table, "rows may have been written that nobody has told of: the table is compared");
        let checked = mend(ends, &self.source, &self.replica.target, table).await?;
        if let Some(checked) = checked {
            tracing::info!(replica = %self.replica.name, %table, mended = checked.mended, "the table is compared");
        }
        Ok(())
    }

    /// Waits until there is something to be applied, and takes as much as there is for one batch.
    async fn gather(&mut self) -> Result<(), Fault> {
        loop {
            self.release();
            if self.due.is_empty() && !self.replica.copying.load(Ordering::Acquire) {
                self.due = self.held.due(self.reached());
            }
            let more = self.cursor.position() < self.replica.log.end();
            let some = !self.due.is_empty() || !self.unknown.is_empty();
            if some && (!more || self.due.len() >= MOST_ROWS) {
                return Ok(());
            }
            if !some && !more {
                self.progress().await;
                if self.open.is_empty() {
                    self.replica.is(ReplicaState::Level);
                }
            }
            let untrimmed = self.trimmed.elapsed() > TRIM;
            tokio::select! {
                entries = self.cursor.next(CHUNK) => {
                    for entry in entries? {
                        self.take(&entry)?;
                    }
                }
                () = self.replica.tickets.news.notified() => {}
                () = tokio::time::sleep(TRIM), if !some && !untrimmed => self.trim().await,
            }
        }
    }

    /// Everything before this position is applied, but for rows that were refused for now. Told
    /// where nothing is due.
    fn reached(&self) -> u64 {
        let mut open = self.open.iter();
        let waiting = open.find(|(_, open)| open.waiting.is_some());
        waiting.map_or(self.cursor.position().0, |(position, _)| *position)
    }

    fn take(&mut self, entry: &Entry) -> Result<(), Fault> {
        let position = entry.position.0;
        let read = match entry::read(&mut self.decoder, &entry.payload) {
            Ok(read) => read,
            Err(why) => {
                self.cursor = self.replica.log.cursor(entry.position)?;
                return Err(unreadable(entry.position, &why));
            }
        };
        let own = entry.origin.gateway == self.replica.gateway;
        let ticket = own.then_some(read.ticket);
        let ended = ticket.map_or(Ok(None), |ticket| self.replica.tickets.ended(ticket));
        let open = Open {
            ticket,
            written: entry.written,
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
        Ok(())
    }

    /// Entries whose batch has ended meanwhile.
    fn release(&mut self) {
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

    fn ready(&mut self, position: u64, read: Read, ended: Option<Ended>) {
        let untold = ended == Some(Ended::Untold);
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

    /// So many keys of an entry are done with.
    fn settle(&mut self, position: u64, keys: usize) {
        let Some(open) = self.open.get_mut(&position) else {
            return;
        };
        open.keys = open.keys.saturating_sub(keys);
        let rows = i64::try_from(keys).unwrap_or(i64::MAX);
        self.replica.rows.fetch_sub(rows, Ordering::Relaxed);
        if open.keys == 0
            && let Some(Open {
                ticket: Some(ticket),
                ..
            }) = self.open.remove(&position)
        {
            self.replica.tickets.applied(ticket);
        }
    }

    /// Applies some of what is due as one batch.
    async fn step(&mut self, ends: &mut Ends) -> Result<(), Fault> {
        let most = (MOST_BYTES / self.row_bytes.max(1)).clamp(16, MOST_ROWS);
        let rows = self.replica.target.database.profile().batch_rows;
        let taken = self
            .due
            .len()
            .min(most)
            .min(rows)
            .min(self.source.database.profile().batch_rows);
        let (keys, of) = collapse(self.due.get(..taken).unwrap_or_default());
        let found = read(&mut ends.primary, &keys).await?;
        self.weigh(&found);
        let mut writes = Writes::new(&self.replica.target);
        let (mut gone, mut there) = (Vec::new(), Vec::new());
        let mut outcomes: Vec<Option<(RowWrite, Written)>> = vec![None; keys.len()];
        for (place, (key, found)) in keys.iter().zip(&found).enumerate() {
            match writes.of(key, found).await? {
                Some(write) if write.shape.op == Op::Delete => gone.push((place, write)),
                Some(write) => there.push((place, write)),
                None => tracing::debug!(?key, "no row has this key"),
            }
        }
        // What is gone makes room first; parents stand before their children, as they were logged.
        gone.reverse();
        by_table(&mut there);
        for part in [gone, there] {
            let (places, writes): (Vec<usize>, Vec<RowWrite>) = part.into_iter().unzip();
            let written = write(&mut ends.replica, &writes).await?;
            for ((place, write), written) in places.into_iter().zip(writes).zip(written) {
                if let Some(outcome) = outcomes.get_mut(place) {
                    *outcome = Some((write, written));
                }
            }
        }
        self.replica.meters.batches.inc();
        let due: Vec<Due> = self.due.drain(..taken).collect();
        self.land(ends, due, &of, &outcomes).await
    }

    /// What became of each.
    async fn land(
        &mut self,
        ends: &mut Ends,
        due: Vec<Due>,
        of: &[usize],
        outcomes: &[Option<(RowWrite, Written)>],
    ) -> Result<(), Fault> {
        let (mut again, mut done) = (None, 0_u64);
        let mut retried = due.iter().zip(of).filter(|((_, _, tries), _)| *tries > 0);
        let helped = retried.any(|(_, place)| {
            let outcome = outcomes.get(*place).and_then(Option::as_ref);
            matches!(outcome, Some((_, Written::Done)))
        });
        let end = self.replica.log.end().0;
        for ((key, position, tries), place) in due.into_iter().zip(of) {
            match outcomes.get(*place).and_then(Option::as_ref) {
                None | Some((_, Written::Done)) => {
                    done += 1;
                    self.settle(position, 1);
                }
                Some((_, Written::Again(fault))) => {
                    again = Some(fault.clone());
                    self.due.push((key, position, tries));
                }
                Some((write, Written::Refused(fault))) => {
                    // While others of those that were refused are taken, it may be their child.
                    let tries = tries.saturating_sub(helped.into());
                    let held = self.held.put((key, position), fault.clone(), end, tries);
                    if let Some(held) = held {
                        match reject(&self.replica, &mut ends.replica, &held, write).await {
                            Ok(()) => self.settle(position, 1),
                            Err(fault) => {
                                again = Some(fault);
                                self.due.push((held.key, position, tries));
                            }
                        }
                    }
                }
            }
        }
        let written = |outcome: &&Option<_>| matches!(outcome, Some((_, Written::Done)));
        let written = outcomes.iter().filter(written).count();
        self.replica.meters.rows.inc_by(written as u64);
        match again {
            Some(fault) if done == 0 => Err(fault),
            _ => Ok(()),
        }
    }

    fn weigh(&mut self, found: &[Found]) {
        let bytes = |found: &Found| match found {
            Found::Row(_, row) => row.iter().map(Value::bytes).sum(),
            _ => size_of::<Found>(),
        };
        let all: usize = found.iter().map(bytes).sum();
        self.row_bytes = (all / found.len().max(1)).max(1);
    }

    /// Tells how far it is.
    async fn progress(&mut self) {
        let first = self.open.first_key_value();
        let applied = first.map_or(self.cursor.position().0, |(position, _)| *position);
        self.replica.oldest(first.map(|(_, open)| open.written));
        self.replica.applied.send_replace(applied);
        if self.due.is_empty() {
            self.replica.reached.send_replace(self.reached());
        }
        if self.trimmed.elapsed() > TRIM {
            self.trim().await;
        }
    }

    /// Gives up what is applied.
    async fn trim(&mut self) {
        self.trimmed = Instant::now();
        let applied = Position(*self.replica.applied.borrow());
        if let Err(fault) = self.replica.log.trim(applied).await {
            tracing::warn!(replica = %self.replica.name, %fault, "what was applied cannot be removed from the log");
        }
        self.replica.meters.measure(&self.replica.status());
    }
}

/// Each key once, and which of them each stands for.
fn collapse(due: &[Due]) -> (Vec<RowWrite>, Vec<usize>) {
    let mut seen: HashMap<(u64, &[Value]), usize> = HashMap::with_capacity(due.len());
    let (mut keys, mut of) = (Vec::new(), Vec::with_capacity(due.len()));
    for (key, _, _) in due {
        let place = *seen.entry((key.shape.id(), &*key.row)).or_insert_with(|| {
            keys.push(key.clone());
            keys.len() - 1
        });
        of.push(place);
    }
    (keys, of)
}

/// Puts the writes of one table next to each other, tables in the order in which they came.
fn by_table(writes: &mut [(usize, RowWrite)]) {
    let mut order: HashMap<TableName, usize> = HashMap::new();
    for (_, write) in writes.iter() {
        let next = order.len();
        order.entry(write.shape.table.clone()).or_insert(next);
    }
    writes.sort_by_key(|(_, write)| order.get(&write.shape.table).copied());
}
