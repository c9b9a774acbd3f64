//! Applies the log of a replica: one task for each replica.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windrow_bookkeeping::prepare;
use windrow_core::{Backoff, Fault, Inventory, Op, TableName, Value, Write};
use windrow_spool::{Position, SpoolFault};

use crate::check::{Source, mend};
use crate::comparison::Ends;
use crate::copy::NOBODY;
use crate::entry::Kind;
use crate::letter::reject;
use crate::notes::unclosed;
use crate::overtaken::Recovery;
use crate::reading::{Due, Reading};
use crate::replica::Replica;
use crate::rows::{KeyReading, WriteResult, Writes, read, write};
use crate::status::ReplicaState;

/// The most rows of one batch, and the most bytes of their values, estimated from earlier rows.
const MOST_ROWS: usize = 10_000;
const MOST_BYTES: usize = 8 << 20;

/// The first and the longest delay between attempts.
const FIRST_DELAY: Duration = Duration::from_millis(20);
const LONGEST_DELAY: Duration = Duration::from_secs(5);

/// The longest wait for more keys while no client waits for the present ones, and the number of
/// keys for which a batch begins at once.
const GATHER: Duration = Duration::from_millis(5);
const ENOUGH: usize = 1_000;

/// The time after which the log says that the applier waits for a database's earlier transactions.
const LONG_SETTLING: Duration = Duration::from_secs(5);

/// The interval at which applied entries are removed from the log, and the time for which they stay
/// if other gateways read the log as well.
const TRIM: Duration = Duration::from_secs(1);
const STAY: Duration = Duration::from_secs(10);

/// Applies the log of one replica.
pub(crate) struct Applier {
    replica: Arc<Replica>,
    source: Source,
    /// True while clients wait for the replica to have their rows.
    awaited: bool,
    stop: CancellationToken,
    reading: Reading,
    /// The average bytes of a row, of those that were read last.
    row_bytes: usize,
    prepared: bool,
    /// True while rows are being written to the replica.
    writing: bool,
    /// The position at which the entries of an earlier process begin.
    inherited: Option<u64>,
    /// Tables of which that process has not logged all rows.
    untold: Vec<TableName>,
    overtaken: Recovery,
    trimmed: Instant,
    /// The position up to which entries can be removed later, and the time since which that is
    /// known.
    spent: (Instant, u64),
}

impl Applier {
    pub(crate) fn new(
        replica: Arc<Replica>,
        (source, awaited): (Source, bool),
        stop: CancellationToken,
    ) -> Result<Self, SpoolFault> {
        let first = *replica.applied.borrow();
        Ok(Self {
            reading: Reading::new(Arc::clone(&replica))?,
            // If gateways share a log, the members show later which of them have ended.
            inherited: replica.log.is_alone().then_some(first),
            replica,
            source,
            awaited,
            stop,
            row_bytes: 256,
            prepared: false,
            writing: false,
            untold: Vec::new(),
            overtaken: Recovery::default(),
            trimmed: Instant::now(),
            spent: (Instant::now(), first),
        })
    }

    /// Applies until `stop` is cancelled. If the future is dropped, keys under way are applied
    /// again later.
    pub(crate) async fn run(mut self) {
        let stop = self.stop.clone();
        let mut backoff = Backoff::new(FIRST_DELAY, LONGEST_DELAY);
        loop {
            let began = Instant::now();
            let fault = tokio::select! {
                () = stop.cancelled() => break,
                Err(fault) = self.session() => fault,
            };
            if began.elapsed() > LONGEST_DELAY {
                backoff.reset();
            }
            tracing::warn!(replica = %self.replica.name, %fault, "nothing can be written to the replica for now; it is tried again");
            self.replica
                .is(ReplicaState::Waiting(fault.to_string().into()));
            tokio::select! {
                () = stop.cancelled() => break,
                () = tokio::time::sleep(backoff.delay()) => {}
            }
        }
        self.trim().await;
    }

    async fn session(&mut self) -> Result<Infallible, Fault> {
        let target = &self.replica.target.database;
        let mut ends = Ends::new(&self.source.database, target);
        ends.open().await?;
        if !self.prepared
            && let Some(own) = target.bookkeeping()
        {
            prepare(&*own).await?;
        }
        self.prepared = true;
        if self.writing {
            replica_settled(&self.replica).await?;
            self.writing = false;
        }
        loop {
            if self.reading.overtaken {
                self.recover(&mut ends).await?;
            }
            self.take_over().await?;
            self.inherit(&mut ends).await?;
            self.gather().await?;
            if self.reading.is_interrupted() {
                continue;
            }
            self.replica.is(ReplicaState::Applying);
            if !self.awaited && self.reading.due.len() < ENOUGH {
                // Many small batches cost the three databases more than one large batch.
                tokio::time::sleep(GATHER).await;
                self.gather().await?;
            }
            while let Some((table, position)) = self.reading.unknown.first().cloned() {
                self.compare(&mut ends, &table).await?;
                self.reading.unknown.remove(0);
                self.reading.settle(position, 1);
            }
            while !self.reading.due.is_empty() {
                self.step(&mut ends).await?;
            }
            self.progress().await;
        }
    }

    /// Recovers after other gateways considered this one lost: they may have applied keys before
    /// their batches had ended.
    async fn recover(&mut self, ends: &mut Ends) -> Result<(), Fault> {
        self.reading.forget()?;
        self.inherited = None;
        self.untold.clear();
        let replica = Arc::clone(&self.replica);
        while let Some(table) = self.overtaken.next(&replica, &self.source).await? {
            self.compare(ends, &table).await?;
            self.overtaken.compared();
        }
        self.reading.overtaken = false;
        Ok(())
    }

    /// Takes over the entries of gateways that count as lost.
    async fn take_over(&mut self) -> Result<(), Fault> {
        while let Some((gateway, from)) = self.reading.members.silent() {
            tracing::warn!(replica = %self.replica.name, "another gateway has said nothing for some seconds: what it has noted for the replica is applied here");
            let applied = &self.replica.applied;
            let before = || {
                applied.send_modify(|applied| *applied = (*applied).min(from));
            };
            let upto = match self.replica.log.take_over(gateway, before).await {
                Ok(upto) => upto,
                // If the others do not learn of it, the entries are applied twice, which does no
                // harm.
                Err(fault) => {
                    tracing::warn!(replica = %self.replica.name, %fault, "it cannot be noted for other gateways that one is lost");
                    self.replica.log.log.end().0
                }
            };
            let earlier = self.inherited.map_or(from, |earlier| earlier.min(from));
            self.inherited = Some(earlier);
            self.reading.take_over((gateway, from), upto)?;
        }
        Ok(())
    }

    /// Handles the keys of a process that has ended: its transactions may still be under way, and
    /// it may have written rows without logging their keys.
    async fn inherit(&mut self, ends: &mut Ends) -> Result<(), Fault> {
        if let Some(from) = self.inherited {
            settled(&self.replica, "primary", &*self.source.inventory).await?;
            replica_settled(&self.replica).await?;
            let tables = unclosed(&self.replica, from, self.reading.left()).await?;
            self.untold.extend(tables);
            self.inherited = None;
        }
        while let Some(table) = self.untold.last().cloned() {
            self.compare(ends, &table).await?;
            self.untold.pop();
        }
        Ok(())
    }

    async fn compare(&mut self, ends: &mut Ends, table: &TableName) -> Result<(), Fault> {
        tracing::info!(replica = %self.replica.name, %table, "rows may have been written whose keys are not known: the table is compared");
        self.writing = true;
        let checked = mend(ends, &self.source, &self.replica.target, table).await?;
        self.writing = false;
        if let Some((checked, left)) = checked {
            if !self.replica.log.is_alone() && !left.is_empty() {
                self.replica.append(NOBODY, Kind::Keys, &left).await?;
            }
            tracing::info!(replica = %self.replica.name, %table, mended = checked.mended, "the table is compared");
        }
        Ok(())
    }

    /// Waits until there is something to apply, and takes as much as fits into one batch.
    async fn gather(&mut self) -> Result<(), Fault> {
        loop {
            self.reading.release();
            let (some, more) = (self.reading.has_due(), self.reading.has_more());
            let is_enough = some && (!more || self.reading.due.len() >= MOST_ROWS);
            if is_enough || self.reading.is_interrupted() {
                return Ok(());
            }
            if !some && !more {
                self.progress().await;
                if self.reading.first_open().is_none() {
                    self.replica.is(ReplicaState::Level);
                }
            }
            let is_idle = !some && self.trimmed.elapsed() <= TRIM;
            self.reading.next(is_idle.then_some(TRIM)).await?;
        }
    }

    /// Applies some of the due keys as one batch.
    async fn step(&mut self, ends: &mut Ends) -> Result<(), Fault> {
        let most = (MOST_BYTES / self.row_bytes.max(1)).clamp(16, MOST_ROWS);
        let rows = self.replica.target.database.profile().batch_rows;
        let taken = self
            .reading
            .due
            .len()
            .min(most)
            .min(rows)
            .min(self.source.database.profile().batch_rows);
        let (keys, of) = collapse(self.reading.due.get(..taken).unwrap_or_default());
        let found = read(&mut ends.primary, &keys).await?;
        self.weigh(&found);
        let mut writes = Writes::new(&self.replica.target);
        let (mut gone, mut there) = (Vec::new(), Vec::new());
        let mut outcomes: Vec<Option<(Write, WriteResult)>> = vec![None; keys.len()];
        for (place, (key, found)) in keys.iter().zip(&found).enumerate() {
            match writes.of(key, found).await? {
                Some(write) if write.shape.op == Op::Delete => gone.push((place, write)),
                Some(write) => there.push((place, write)),
                None => tracing::debug!(?key, "no row has this key"),
            }
        }
        // Deletes come first, to avoid conflicts with new rows. Parents are written before their
        // children, in the order of the log.
        gone.reverse();
        by_table(&mut there);
        self.writing = true;
        for part in [gone, there] {
            let (places, writes): (Vec<usize>, Vec<Write>) = part.into_iter().unzip();
            let written = write(&mut ends.replica, &writes).await?;
            for ((place, write), written) in places.into_iter().zip(writes).zip(written) {
                if let Some(outcome) = outcomes.get_mut(place) {
                    *outcome = Some((write, written));
                }
            }
        }
        self.writing = false;
        self.replica.meters.batches.inc();
        if !self.replica.log.is_alone() {
            self.look_again(ends, &keys, &found, &outcomes).await?;
        }
        let due: Vec<Due> = self.reading.due.drain(..taken).collect();
        self.land(ends, due, &of, &outcomes).await
    }

    /// Reads the keys at the primary again, and logs those whose rows have changed since. Other
    /// gateways write to the replica as well: one may have read and written a newer row before this
    /// one has written an older one.
    async fn look_again(
        &mut self,
        ends: &mut Ends,
        keys: &[Write],
        found: &[KeyReading],
        outcomes: &[Option<(Write, WriteResult)>],
    ) -> Result<(), Fault> {
        let now = read(&mut ends.primary, keys).await?;
        let all = keys.iter().zip(found.iter().zip(&now)).zip(outcomes);
        let changed = all.filter_map(|((key, (before, now)), outcome)| {
            let is_written = matches!(outcome, Some((_, WriteResult::Done)));
            (is_written && before != now).then(|| key.clone())
        });
        let changed: Vec<Write> = changed.collect();
        if !changed.is_empty() {
            self.replica.append(NOBODY, Kind::Keys, &changed).await?;
        }
        Ok(())
    }

    /// Handles the outcome of each key.
    async fn land(
        &mut self,
        ends: &mut Ends,
        due: Vec<Due>,
        of: &[usize],
        outcomes: &[Option<(Write, WriteResult)>],
    ) -> Result<(), Fault> {
        let (mut again, mut done) = (None, 0_u64);
        let mut retried = due.iter().zip(of).filter(|((_, _, tries), _)| *tries > 0);
        let helped = retried.any(|(_, place)| {
            let outcome = outcomes.get(*place).and_then(Option::as_ref);
            matches!(outcome, Some((_, WriteResult::Done)))
        });
        let end = self.replica.log.log.end().0;
        for ((key, position, tries), place) in due.into_iter().zip(of) {
            match outcomes.get(*place).and_then(Option::as_ref) {
                None | Some((_, WriteResult::Done)) => {
                    done += 1;
                    self.reading.settle(position, 1);
                }
                Some((_, WriteResult::Again(fault))) => {
                    again = Some(fault.clone());
                    self.reading.due.push((key, position, tries));
                }
                Some((write, WriteResult::Refused(fault))) => {
                    // While other refused rows are accepted now, this one may be their child.
                    let tries = tries.saturating_sub(helped.into());
                    let held = self
                        .reading
                        .held
                        .put((key, position), fault.clone(), end, tries);
                    if let Some(held) = held {
                        match reject(&self.replica, &mut ends.replica, &held, write).await {
                            Ok(()) => self.reading.settle(position, 1),
                            Err(fault) => {
                                again = Some(fault);
                                self.reading.due.push((held.key, position, tries));
                            }
                        }
                    }
                }
            }
        }
        let written = |outcome: &&Option<_>| matches!(outcome, Some((_, WriteResult::Done)));
        let written = outcomes.iter().filter(written).count();
        self.replica.meters.rows.inc_by(written as u64);
        match again {
            Some(fault) if done == 0 => Err(fault),
            _ => Ok(()),
        }
    }

    fn weigh(&mut self, found: &[KeyReading]) {
        let bytes = |found: &KeyReading| match found {
            KeyReading::Row(_, row) => row.iter().map(Value::bytes).sum(),
            _ => size_of::<KeyReading>(),
        };
        let all: usize = found.iter().map(bytes).sum();
        self.row_bytes = (all / found.len().max(1)).max(1);
    }

    /// Publishes the position that was reached.
    async fn progress(&mut self) {
        let first = self.reading.first_open();
        let applied = first.map_or(self.reading.position(), |(position, _)| position);
        self.replica.oldest(first.map(|(_, written)| written));
        self.replica.applied.send_replace(applied);
        if self.reading.due.is_empty() {
            let reached = self.reading.reached();
            self.replica.reached.send_replace(reached);
        }
        if self.trimmed.elapsed() > TRIM {
            self.trim().await;
        }
    }

    /// Removes applied entries from the log.
    async fn trim(&mut self) {
        self.trimmed = Instant::now();
        let applied = *self.replica.applied.borrow();
        let spent = self.reading.members.spent(applied);
        let stays = match self.replica.log.is_alone() {
            true => Duration::ZERO,
            false => STAY,
        };
        if stays.is_zero() {
            self.spent.1 = spent;
        }
        if self.spent.0.elapsed() >= stays {
            let upto = Position(self.spent.1.min(spent));
            self.spent = (Instant::now(), spent);
            if let Err(fault) = self.replica.log.log.trim(upto).await {
                tracing::warn!(replica = %self.replica.name, %fault, "what was applied cannot be removed from the log");
            }
        }
        self.replica.meters.measure(&self.replica.status());
    }
}

/// Waits for statements under way at the replica: a write on a connection that was lost may still
/// be executed, and would replace a newer row by an older one.
async fn replica_settled(replica: &Replica) -> Result<(), Fault> {
    match replica.target.database.inventory() {
        Some(inventory) => settled(replica, "replica", &*inventory).await,
        None => Ok(()),
    }
}

/// Waits for statements under way at one end.
async fn settled(replica: &Replica, end: &str, inventory: &dyn Inventory) -> Result<(), Fault> {
    let mut settled = inventory.settled();
    tokio::select! {
        ended = &mut settled => return ended,
        () = tokio::time::sleep(LONG_SETTLING) => {}
    }
    tracing::warn!(replica = %replica.name, "the {end} still executes what was under way; nothing is applied until that has ended, because a Windrow that has ended may have sent it");
    settled.await
}

/// Returns each key once, and the due keys that it stands for.
fn collapse(due: &[Due]) -> (Vec<Write>, Vec<usize>) {
    let mut seen: HashMap<(u64, &[Value]), usize> = HashMap::with_capacity(due.len());
    let (mut keys, mut of) = (Vec::new(), Vec::with_capacity(due.len()));
    for (key, _, _) in due {
        let place = *seen.entry((key.shape.id(), key.row())).or_insert_with(|| {
            keys.push(key.clone());
            keys.len() - 1
        });
        of.push(place);
    }
    (keys, of)
}

/// Groups the writes by table, with the tables in the order of their first write.
fn by_table(writes: &mut [(usize, Write)]) {
    let mut order: HashMap<TableName, usize> = HashMap::new();
    for (_, write) in writes.iter() {
        let next = order.len();
        order.entry(write.shape.table.clone()).or_insert(next);
    }
    writes.sort_by_key(|(_, write)| order.get(&write.shape.table).copied());
}
