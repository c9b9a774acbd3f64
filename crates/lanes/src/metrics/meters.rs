//! The counters of one lane.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use windrow_core::{FaultClass, Op, Rung, UnitOutcome};

use crate::failures::Failures;

pub(super) const OPS: [Op; 4] = [Op::Insert, Op::Update, Op::Delete, Op::Get];

/// The series of one lane. Cheap to clone: all clones count in the same series.
#[derive(Clone, Debug)]
pub(crate) struct Meters {
    pub(super) writes: [Counter; 4],
    pub(super) ok: Counter,
    pub(super) faults: [Counter; FaultClass::ALL.len()],
    pub(crate) batches: Counter,
    pub(crate) last_batch_rows: Gauge,
    pub(crate) batch_rows: Histogram,
    pub(crate) rungs: [Counter; Rung::ALL.len()],
    pub(crate) round_trips: Counter,
    pub(crate) commits: Counter,
    pub(crate) queue_seconds: Histogram,
    pub(crate) database_seconds: Histogram,
    pub(crate) row_seconds: Histogram,
    pub(crate) queued_units: Gauge,
    pub(crate) queued_rows: Gauge,
    pub(crate) queued_bytes: Gauge,
    pub(crate) connections: Gauge,
    pub(crate) flights: Gauge,
    pub(crate) flights_limit: Gauge,
    pub(crate) batch_rows_limit: Gauge,
    pub(crate) retried: Counter,
    pub(crate) alone: Counter,
    pub(crate) abandoned: Counter,
    pub(crate) reconnects: Counter,
    pub(crate) away: Gauge,
    pub(crate) failures: Failures,
}

/// Outcomes and writes that the lane's worker has counted, to be added to the shared counters
/// together.
#[derive(Debug, Default)]
pub(crate) struct Count {
    ops: [u64; 4],
    ok: u64,
    faults: [u64; FaultClass::ALL.len()],
}

impl Count {
    pub(crate) fn write(&mut self, op: Op) {
        if let Some(count) = self.ops.get_mut(op as usize) {
            *count += 1;
        }
    }

    pub(crate) fn outcome(&mut self, outcome: &UnitOutcome) {
        match outcome {
            Ok(_) => self.ok += 1,
            Err(fault) => self.fault(fault.fault.class, 1),
        }
    }

    /// Counts units as successes that had been counted as [`FaultClass::Unique`]: they were
    /// executed before.
    pub(crate) fn replayed(&mut self, units: u64) {
        if let Some(unique) = self.faults.get_mut(FaultClass::Unique as usize) {
            let replayed = units.min(*unique);
            *unique -= replayed;
            self.ok += replayed;
        }
    }

    pub(crate) fn fault(&mut self, class: FaultClass, units: usize) {
        if let Some(count) = self.faults.get_mut(class as usize) {
            *count += units as u64;
        }
    }
}

impl Meters {
    /// Adds a count to the counters, and sets it to zero.
    pub(crate) fn add(&self, count: &mut Count) {
        let counted = std::mem::take(count);
        let counters = self.writes.iter().chain(&self.faults).chain([&self.ok]);
        let counts = counted
            .ops
            .iter()
            .chain(&counted.faults)
            .chain([&counted.ok]);
        for (counter, count) in counters.zip(counts) {
            if *count > 0 {
                counter.inc_by(*count);
            }
        }
    }

    /// Returns all counters, always in the same order.
    pub(super) fn counters(&self) -> impl Iterator<Item = &Counter> {
        let plain = [
            &self.ok,
            &self.batches,
            &self.round_trips,
            &self.commits,
            &self.retried,
            &self.alone,
            &self.abandoned,
            &self.reconnects,
        ];
        let labelled = self.writes.iter().chain(&self.faults).chain(&self.rungs);
        labelled.chain(plain)
    }

    /// Returns the number of accepted writes.
    pub(crate) fn written(&self) -> u64 {
        self.writes.iter().map(|counter| counter.get()).sum()
    }

    /// Returns the number of units answered with success, and with a fault.
    pub(crate) fn answered(&self) -> (u64, u64) {
        (
            self.ok.get(),
            self.faults.iter().map(|counter| counter.get()).sum(),
        )
    }
}
