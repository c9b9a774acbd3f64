//! The units that wait in a lane, the answers that are owed for them, and the counters of both.

use std::time::Duration;

use tokio::time::Instant;
use windrow_core::trace::TracedBatch;
use windrow_core::{Fault, Report, Tally, Trace, Verdict};

use crate::batch::Manifest;
use crate::metrics::{Count, Meters};
use crate::queue::Queue;
use crate::ticket::Tickets;

/// The queue of a lane, with the tickets of its units.
pub(super) struct Ledger {
    pub(super) queue: Queue,
    pub(super) tickets: Tickets,
    pub(super) count: Count,
    pub(super) meters: Meters,
}

impl Ledger {
    pub(super) fn new(meters: Meters) -> Self {
        Self {
            queue: Queue::new(),
            tickets: Tickets::new(),
            count: Count::default(),
            meters,
        }
    }

    /// Fails all queued units except those that `stays` keeps, given their ticket and arrival.
    /// Returns the arrival of the oldest one kept.
    pub(super) fn fail_queued(
        &mut self,
        fault: &Fault,
        stays: impl Fn(&Tickets, usize, Instant) -> bool,
    ) -> Option<Instant> {
        let before = self.queue.units();
        let oldest = self.queue.fail(fault, &mut self.tickets, stays);
        let failed = before - self.queue.units();
        self.count.fault(fault.class, failed);
        oldest
    }

    /// Drops a unit whose client has left; returns true then.
    pub(super) fn forgo_abandoned(&mut self, ticket: usize) -> bool {
        let is_abandoned = self.tickets.is_abandoned(ticket);
        if is_abandoned {
            self.tickets.forgo(ticket, 1);
            self.meters.abandoned.inc();
        }
        is_abandoned
    }

    /// Counts a batch that has landed.
    pub(super) fn count_batch(&self, rows: usize, tally: &Tally) {
        let meters = &self.meters;
        meters.batches.inc();
        meters.batch_rows.observe(rows as f64);
        meters
            .last_batch_rows
            .set(i64::try_from(rows).unwrap_or(i64::MAX));
        let in_database = tally.in_database.as_secs_f64();
        meters.database_seconds.observe(in_database);
        meters.row_seconds.observe(in_database / rows.max(1) as f64);
        meters.round_trips.inc_by(u64::from(tally.round_trips));
        meters.commits.inc_by(u64::from(tally.commits));
        for (counter, writes) in meters.rungs.iter().zip(tally.rungs) {
            counter.inc_by(writes);
        }
    }

    /// Reports a batch that has landed to the traces of its requests. Call it before the clients
    /// are answered: a request ends with its answer.
    pub(super) fn trace(
        &self,
        (lane, database): (&str, &str),
        manifest: &Manifest,
        report: &Report,
        now: Instant,
    ) {
        let departed = manifest.departed.unwrap_or(now);
        let spans = manifest.spans.iter();
        let requests: Vec<(Trace, Duration)> = spans
            .filter_map(|span| {
                let trace = self.tickets.trace(span.ticket)?;
                let queued = departed.saturating_duration_since(span.arrived);
                Some((trace.clone(), queued))
            })
            .collect();
        let is = |verdict: &Verdict| match verdict {
            Verdict::Final(Ok(_)) => [0, 0],
            Verdict::Final(Err(_)) => [1, 0],
            Verdict::RolledBack(_) | Verdict::WaitsForLock(_) | Verdict::NotTried => [0, 1],
        };
        let verdicts = report.verdicts.iter().map(is);
        let [failed, again] = verdicts.fold([0, 0], |[a, b], [c, d]| [a + c, b + d]);
        let batch = TracedBatch {
            lane,
            database,
            took: now.saturating_duration_since(departed),
            rows: manifest.rows,
            units: report.verdicts.len(),
            failed,
            again,
            tally: &report.tally,
        };
        batch.landed(&requests);
    }
}
