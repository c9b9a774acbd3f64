//! Connections to a primary with replicas, which log for each batch the rows that it may change.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::Instant;
use windrow_core::{
    Canceller, Executor, Fault, FaultClass, Purpose, Report, Sink, Unit, Verdict, Write,
};

use crate::batch::{Rows, unlogged};
use crate::calls;
use crate::follow::WriteTrace;
use crate::promised::PromisedKeys;
use crate::shared::Shared;

/// A connection whose batches are replicated.
struct ReplicatingExecutor {
    inner: Box<dyn Executor>,
    shared: Arc<Shared>,
}

/// Opens a connection to the primary whose batches are replicated.
pub(crate) async fn connect(
    sink: &dyn Sink,
    purpose: Purpose,
    shared: &Arc<Shared>,
) -> Result<Box<dyn Executor>, Fault> {
    Ok(Box::new(ReplicatingExecutor {
        inner: sink.connect(purpose).await?,
        shared: Arc::clone(shared),
    }))
}

/// The index of a write: its unit in the batch, and its position in the unit.
type WriteIndex = (usize, usize);

/// The rows that a batch may change.
#[derive(Default)]
struct Traces {
    rows: Rows,
    /// Writes whose keys will be in their answers.
    promised: Vec<(WriteIndex, PromisedKeys)>,
    /// Calls that do not name their row.
    unnamed: Vec<WriteIndex>,
    /// True if the keys of some rows cannot be known.
    untold: bool,
}

impl Traces {
    async fn of(shared: &Shared, units: &[Unit]) -> Result<Self, Fault> {
        let mut traces = Self::default();
        for (number, unit) in units.iter().enumerate() {
            for (place, write) in unit.writes().iter().enumerate() {
                let trace = match write.call() {
                    Some(call) => calls::trace(&shared.tables, call).await?,
                    None => shared.tables.trace(write).await?,
                };
                traces.add((number, place), trace);
            }
        }
        Ok(traces)
    }

    fn add(&mut self, at: WriteIndex, trace: WriteTrace) {
        match trace {
            WriteTrace::Nothing => {}
            WriteTrace::Keys(keys) => self.rows.keys.extend(keys),
            WriteTrace::Unnamed => self.unnamed.push(at),
            WriteTrace::Unknown(note) => {
                self.untold = true;
                self.rows.note(note);
            }
            WriteTrace::Promised(promised) => {
                self.rows.keys.extend(promised.known().iter().cloned());
                self.rows.note(promised.note());
                self.promised.push((at, promised));
            }
        }
    }

    /// Returns the units with the writes that return more than the client asked for; `None` if
    /// there are none.
    fn widened(&self, units: &[Unit]) -> Option<Vec<Unit>> {
        let widened = |(at, promised): &'_ (WriteIndex, PromisedKeys)| match promised {
            PromisedKeys::Returned(returned) => Some((*at, returned.write.clone())),
            PromisedKeys::Generated(_) => None,
        };
        let mut widened = self.promised.iter().filter_map(widened).peekable();
        widened.peek()?;
        let units = units.iter().enumerate().map(|(number, unit)| {
            let mut work = unit.writes().to_vec();
            while let Some(((_, place), wider)) = widened.next_if(|((unit, _), _)| *unit == number)
            {
                if let Some(write) = work.get_mut(place) {
                    *write = wider;
                }
            }
            let mut own = Unit::of(work);
            own.hand_over(unit.source());
            own
        });
        Some(units.collect())
    }

    /// Removes the promised keys from the answers and returns them; `None` if some are missing.
    fn take(&self, report: &mut Report) -> Option<Vec<Write>> {
        let (mut keys, mut all) = (Vec::new(), !self.untold);
        for ((number, place), promised) in &self.promised {
            match report.verdicts.get_mut(*number) {
                Some(Verdict::Final(Ok(dones))) => {
                    let taken = dones.get_mut(*place).and_then(|done| promised.take(done));
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

    /// Returns the number of calls that have changed rows, or may have, without naming them.
    fn unnamed(&self, report: &Report) -> u64 {
        let changed = |(unit, place): &&WriteIndex| match report.verdicts.get(*unit) {
            Some(Verdict::Final(Ok(dones))) => dones.get(*place).is_some_and(|d| d.rows > 0),
            Some(Verdict::Final(Err(failed))) => failed.fault.class == FaultClass::Unknown,
            _ => false,
        };
        self.unnamed.iter().filter(changed).count() as u64
    }
}

#[async_trait]
impl Executor for ReplicatingExecutor {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let traces = match Traces::of(&self.shared, units).await {
            Ok(traces) => traces,
            Err(fault) => return Report::broken(units.len(), &Verdict::RolledBack(fault)),
        };
        let ticket = match traces.rows.is_empty() {
            true => None,
            false => match self.shared.begin(&traces.rows).await {
                Ok(ticket) => Some(ticket),
                Err(fault) => return unlogged(units.len(), fault),
            },
        };
        let widened = traces.widened(units);
        let units = widened.as_deref().unwrap_or(units);
        let mut report = self.inner.execute(units).await;
        self.shared.untold(traces.unnamed(&report));
        if let Some(ticket) = ticket {
            let keys = traces.take(&mut report);
            self.shared.end(ticket, &traces.rows, keys, &report).await;
        }
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
