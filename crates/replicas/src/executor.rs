//! A connection to a primary that has replicas: the way of a batch.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::{BoxFuture, try_join_all};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use tokio::time::Instant;
use windrow_core::{
    Canceller, Executor, Fault, FaultClass, Inventory, Report, RowDone, RowWrite, Tally, Unit,
    Verdict,
};

use crate::entry::Kind;
use crate::follow::{Told, Traced};
use crate::replica::Replica;
use crate::shared::Shared;
use crate::tickets::Ended;

/// The pause between questions to a primary that is away.
const PAUSE: Duration = Duration::from_millis(200);

/// A connection.
pub(crate) struct ReplicatingExecutor {
    inner: Box<dyn Executor<RowWrite>>,
    shared: Arc<Shared>,
}

/// What a batch means for replicas.
#[derive(Default)]
struct Traces {
    keys: Vec<RowWrite>,
    notes: Vec<RowWrite>,
    /// Writes that give back more than they were asked for: their unit, their place in it.
    told: Vec<(usize, usize, Box<Told>)>,
    /// Some rows are told by nothing.
    untold: bool,
}

impl Traces {
    async fn of(shared: &Shared, units: &[Unit<RowWrite>]) -> Result<Self, Fault> {
        let mut traces = Self::default();
        for (number, unit) in units.iter().enumerate() {
            for (place, write) in unit.work().iter().enumerate() {
                match shared.tables.trace(write).await? {
                    Traced::Nothing => {}
                    Traced::Keys(keys) => traces.keys.extend(keys),
                    Traced::Unknown(note) => {
                        traces.untold = true;
                        traces.note(note);
                    }
                    Traced::Told(told) => {
                        traces.keys.extend(told.known.iter().cloned());
                        traces.note(told.note());
                        traces.told.push((number, place, told));
                    }
                }
            }
        }
        Ok(traces)
    }

    fn note(&mut self, note: RowWrite) {
        let mut notes = self.notes.iter();
        if !notes.any(|known| known.shape.table == note.shape.table) {
            self.notes.push(note);
        }
    }

    fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.notes.is_empty()
    }

    /// The units with the writes that give back more; `None` where there are none.
    fn units(&self, units: &[Unit<RowWrite>]) -> Option<Vec<Unit<RowWrite>>> {
        if self.told.is_empty() {
            return None;
        }
        let mut told = self.told.iter().peekable();
        let widened = units.iter().enumerate().map(|(number, unit)| {
            let mut work = unit.work().to_vec();
            while let Some((_, place, told)) = told.next_if(|(unit, ..)| *unit == number) {
                if let Some(write) = work.get_mut(*place) {
                    *write = told.write.clone();
                }
            }
            let mut own = Unit::of(work);
            own.hand_over(unit.source());
            own
        });
        Some(widened.collect())
    }

    /// Takes the keys out of the answers. `None`: not all of them are there.
    fn take(&self, report: &mut Report<RowDone>) -> Option<Vec<RowWrite>> {
        let (mut keys, mut all) = (Vec::new(), !self.untold);
        for (number, place, told) in &self.told {
            match report.verdicts.get_mut(*number) {
                Some(Verdict::Final(Ok(dones))) => {
                    let taken = dones.get_mut(*place).and_then(|done| told.take(done));
                    all &= taken.is_some();
                    keys.extend(taken.unwrap_or_default());
                }
                Some(Verdict::Final(Err(failed))) => {
                    all &= failed.fault.class != FaultClass::Unknown;
                }
                _ => {}
            }
        }
        all.then_some(keys)
    }
}

impl ReplicatingExecutor {
    pub(crate) fn new(inner: Box<dyn Executor<RowWrite>>, shared: Arc<Shared>) -> Self {
        Self { inner, shared }
    }
}

impl Shared {
    /// Makes durable for each replica which rows may be written. Gives the number of the batch.
    async fn begin(&self, traces: &Traces) -> Result<u64, Fault> {
        let ticket = self.ticket();
        let appends = self.replicas.iter().map(|replica| async move {
            replica.tickets.begin(ticket);
            for (kind, keys) in [(Kind::Note, &traces.notes), (Kind::Keys, &traces.keys)] {
                if !keys.is_empty() {
                    let entries = replica.append(ticket, kind, keys).await?;
                    replica.tickets.appended(ticket, entries);
                }
            }
            Ok::<(), Fault>(())
        });
        let begun = try_join_all(appends).await.map(|_| ticket);
        if begun.is_err() {
            for replica in &self.replicas {
                drop(replica.tickets.end(ticket, Ended::Told));
            }
        }
        begun
    }

    /// The batch has ended: its keys may be applied. Waits for as many replicas as is asked for.
    async fn end(&self, ticket: u64, traces: &Traces, report: &mut Report<RowDone>) {
        let keys = traces.take(report);
        let is_done = |v: &Verdict<RowDone>| matches!(v, Verdict::Final(Ok(_)));
        let done = report.verdicts.iter().any(is_done);
        let unknown = |v: &Verdict<RowDone>| matches!(v, Verdict::Final(Err(failed)) if failed.fault.class == FaultClass::Unknown);
        // The server may still be about to commit what nobody waits for any more.
        let uncertain = !report.usable || report.verdicts.iter().any(unknown);
        let mut waits: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
        let mut counted = 0;
        for replica in &self.replicas {
            let how = close(replica, ticket, traces, keys.as_deref()).await;
            let own = Arc::clone(replica);
            let wait: BoxFuture<'static, ()> = match uncertain {
                false => {
                    let applied = replica.tickets.end(ticket, how);
                    Box::pin(async move { drop(applied.await) })
                }
                true => {
                    let inventory = Arc::clone(&self.source.inventory);
                    let ended = tokio::spawn(async move {
                        settled(&*inventory).await;
                        drop(own.tickets.end(ticket, how).await);
                    });
                    Box::pin(async move { drop(ended.await) })
                }
            };
            if !replica.copying.load(std::sync::atomic::Ordering::Acquire) {
                counted += 1;
                waits.push(wait);
            }
        }
        if !done {
            return;
        }
        for left in (0..self.wanted(counted)).rev() {
            tokio::select! {
                _ = waits.next() => {}
                () = self.ending.cancelled() => {
                    tracing::info!(replicas = left + 1, "the end is not held up: rows are committed at the primary that not all replicas have; they get them after the next start");
                    return;
                }
            }
        }
    }
}

/// Makes durable which rows were written of those that notes are about.
async fn close(
    replica: &Replica,
    ticket: u64,
    traces: &Traces,
    keys: Option<&[RowWrite]>,
) -> Ended {
    if traces.notes.is_empty() {
        return Ended::Told;
    }
    let Some(keys) = keys else {
        return Ended::Untold;
    };
    match replica.append(ticket, Kind::Closing, keys).await {
        Ok(entries) => {
            replica.tickets.appended(ticket, entries);
            Ended::Told
        }
        Err(fault) => {
            tracing::error!(replica = %replica.name, %fault, "keys of rows that were written cannot be noted; their tables are compared");
            Ended::Untold
        }
    }
}

/// Waits until whatever is under way at the primary has ended.
async fn settled(inventory: &dyn Inventory) {
    while inventory.settled().await.is_err() {
        tokio::time::sleep(PAUSE).await;
    }
}

#[async_trait]
impl Executor<RowWrite> for ReplicatingExecutor {
    async fn execute(&mut self, units: &[Unit<RowWrite>]) -> Report<RowDone> {
        let traces = match Traces::of(&self.shared, units).await {
            Ok(traces) => traces,
            Err(fault) => return Report::broken(units.len(), &Verdict::RolledBack(fault)),
        };
        if traces.is_empty() {
            return self.inner.execute(units).await;
        }
        let ticket = match self.shared.begin(&traces).await {
            Ok(ticket) => ticket,
            Err(fault) => {
                return Report {
                    verdicts: vec![Verdict::Final(Err(fault.into())); units.len()],
                    tally: Tally::default(),
                    usable: true,
                };
            }
        };
        let widened = traces.units(units);
        let mut report = self
            .inner
            .execute(widened.as_deref().unwrap_or(units))
            .await;
        self.shared.end(ticket, &traces, &mut report).await;
        report
    }

    fn arrived(&mut self, at: Instant) {
        self.inner.arrived(at);
    }

    fn canceller(&self) -> Option<Arc<dyn Canceller>> {
        self.inner.canceller()
    }

    async fn close(self: Box<Self>) {
        self.inner.close().await;
    }
}
