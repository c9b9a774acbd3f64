//! A connection to a primary that has replicas: the way of a batch.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::time::Instant;
use windrow_core::{Canceller, Executor, Fault, FaultClass, Report, Unit, Verdict, Write};

use crate::batch::{Rows, unlogged};
use crate::follow::{ReturnedKeys, WriteTrace};
use crate::shared::Shared;

/// A connection.
pub(crate) struct ReplicatingExecutor {
    inner: Box<dyn Executor>,
    shared: Arc<Shared>,
}

/// The rows that a batch may change.
#[derive(Default)]
struct Traces {
    rows: Rows,
    /// Writes that give back more than they were asked for: their unit, their place in it.
    returned: Vec<(usize, usize, Box<ReturnedKeys>)>,
    /// True if the keys of some rows cannot be known.
    untold: bool,
}

impl Traces {
    async fn of(shared: &Shared, units: &[Unit]) -> Result<Self, Fault> {
        let mut traces = Self::default();
        for (number, unit) in units.iter().enumerate() {
            for (place, write) in unit.writes().iter().enumerate() {
                match shared.tables.trace(write).await? {
                    WriteTrace::Nothing => {}
                    WriteTrace::Keys(keys) => traces.rows.keys.extend(keys),
                    WriteTrace::Unknown(note) => {
                        traces.untold = true;
                        traces.rows.note(note);
                    }
                    WriteTrace::Returned(returned) => {
                        traces.rows.keys.extend(returned.known.iter().cloned());
                        traces.rows.note(returned.note());
                        traces.returned.push((number, place, returned));
                    }
                }
            }
        }
        Ok(traces)
    }

    /// The units with the writes that give back more; `None` where there are none.
    fn units(&self, units: &[Unit]) -> Option<Vec<Unit>> {
        if self.returned.is_empty() {
            return None;
        }
        let mut returned = self.returned.iter().peekable();
        let widened = units.iter().enumerate().map(|(number, unit)| {
            let mut work = unit.writes().to_vec();
            while let Some((_, place, returned)) = returned.next_if(|(unit, ..)| *unit == number) {
                if let Some(write) = work.get_mut(*place) {
                    *write = returned.write.clone();
                }
            }
            let mut own = Unit::of(work);
            own.hand_over(unit.source());
            own
        });
        Some(widened.collect())
    }

    /// Takes the keys out of the answers. `None`: not all of them are there.
    fn take(&self, report: &mut Report) -> Option<Vec<Write>> {
        let (mut keys, mut all) = (Vec::new(), !self.untold);
        for (number, place, returned) in &self.returned {
            match report.verdicts.get_mut(*number) {
                Some(Verdict::Final(Ok(dones))) => {
                    let taken = dones.get_mut(*place).and_then(|done| returned.take(done));
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
    pub(crate) fn new(inner: Box<dyn Executor>, shared: Arc<Shared>) -> Self {
        Self { inner, shared }
    }
}

#[async_trait]
impl Executor for ReplicatingExecutor {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let traces = match Traces::of(&self.shared, units).await {
            Ok(traces) => traces,
            Err(fault) => return Report::broken(units.len(), &Verdict::RolledBack(fault)),
        };
        if traces.rows.is_empty() {
            return self.inner.execute(units).await;
        }
        let ticket = match self.shared.begin(&traces.rows).await {
            Ok(ticket) => ticket,
            Err(fault) => return unlogged(units.len(), fault),
        };
        let widened = traces.units(units);
        let mut report = self
            .inner
            .execute(widened.as_deref().unwrap_or(units))
            .await;
        let keys = traces.take(&mut report);
        self.shared.end(ticket, &traces.rows, keys, &report).await;
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
