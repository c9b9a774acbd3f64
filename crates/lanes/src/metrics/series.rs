//! The time series of one lane: created with it, and removed with the last lane of its name.

use windrow_core::{FaultClass, Name, Op, Rung};

use super::LaneMetrics;
use super::labels::Labels;
use super::meters::{Meters, OPS};

/// The label of the counts of all lanes that have ended.
const ENDED: &str = "(ended)";

/// Removes the series of a lane when the last lane of its name has ended.
#[derive(Debug)]
pub(crate) struct SeriesGuard {
    lane: Name,
    metrics: LaneMetrics,
}

impl Drop for SeriesGuard {
    fn drop(&mut self) {
        let metrics = &self.metrics;
        let mut lanes = metrics.lanes.lock();
        if let Some(count) = lanes.get_mut(&self.lane) {
            *count -= 1;
            if *count == 0 {
                lanes.remove(&self.lane);
                metrics.keep_counts(&self.lane);
                metrics.remove(&self.lane);
            }
        }
    }
}

impl LaneMetrics {
    /// Returns all series of one lane, which are exposed at once and until the guard is dropped.
    pub(crate) fn lane(&self, lane: &Name) -> (Meters, SeriesGuard) {
        let mut lanes = self.lanes.lock();
        *lanes.entry(lane.clone()).or_default() += 1;
        let guard = SeriesGuard {
            lane: lane.clone(),
            metrics: self.clone(),
        };
        (self.meters(lane), guard)
    }

    /// Adds the counts of a lane that ends to those of [`ENDED`], so that no sum over lanes falls.
    fn keep_counts(&self, lane: &Name) {
        let (from, to) = (self.meters(lane), self.meters(&Name::from(ENDED)));
        for (ended, sum) in from.counters().zip(to.counters()) {
            sum.inc_by(ended.get());
        }
        // Only the counters of ended lanes are exposed.
        self.remove_states(&Name::from(ENDED));
    }

    /// Returns the series of a lane. Looked up once, so that counting needs no look-up.
    fn meters(&self, lane: &Name) -> Meters {
        let labels = |more| Labels {
            lane: lane.clone(),
            more,
        };
        let plain = &labels(None);
        let class = |word| {
            self.outcomes
                .get_or_create_owned(&labels(Some(("class", word))))
        };
        let op = |op: Op| {
            self.writes
                .get_or_create_owned(&labels(Some(("op", op.as_str()))))
        };
        let rung = |rung: Rung| {
            self.rungs
                .get_or_create_owned(&labels(Some(("rung", rung.as_str()))))
        };
        Meters {
            writes: OPS.map(op),
            ok: class("ok"),
            faults: FaultClass::ALL.map(|fault| class(fault.as_str())),
            batches: self.batches.get_or_create_owned(plain),
            last_batch_rows: self.last_batch_rows.get_or_create_owned(plain),
            batch_rows: self.batch_rows.get_or_create_owned(plain),
            rungs: Rung::ALL.map(rung),
            round_trips: self.round_trips.get_or_create_owned(plain),
            commits: self.commits.get_or_create_owned(plain),
            queue_seconds: self.queue_seconds.get_or_create_owned(plain),
            database_seconds: self.database_seconds.get_or_create_owned(plain),
            row_seconds: self.row_seconds.get_or_create_owned(plain),
            queued_units: self.queued_units.get_or_create_owned(plain),
            queued_rows: self.queued_rows.get_or_create_owned(plain),
            queued_bytes: self.queued_bytes.get_or_create_owned(plain),
            connections: self.connections.get_or_create_owned(plain),
            flights: self.flights.get_or_create_owned(plain),
            flights_limit: self.flights_limit.get_or_create_owned(plain),
            batch_rows_limit: self.batch_rows_limit.get_or_create_owned(plain),
            retried: self.retried.get_or_create_owned(plain),
            alone: self.alone.get_or_create_owned(plain),
            abandoned: self.abandoned.get_or_create_owned(plain),
            reconnects: self.reconnects.get_or_create_owned(plain),
            away: self.away.get_or_create_owned(plain),
            failures: self.failures.clone(),
        }
    }

    /// Removes all series of a lane.
    fn remove(&self, lane: &Name) {
        let labels = |more| Labels {
            lane: lane.clone(),
            more,
        };
        for op in OPS {
            self.writes.remove(&labels(Some(("op", op.as_str()))));
        }
        for rung in Rung::ALL {
            self.rungs.remove(&labels(Some(("rung", rung.as_str()))));
        }
        let classes = FaultClass::ALL.map(FaultClass::as_str);
        for class in classes.into_iter().chain(["ok"]) {
            self.outcomes.remove(&labels(Some(("class", class))));
        }
        let plain = &labels(None);
        for family in [
            &self.batches,
            &self.round_trips,
            &self.commits,
            &self.retried,
            &self.alone,
            &self.abandoned,
            &self.reconnects,
        ] {
            family.remove(plain);
        }
        self.remove_states(lane);
    }

    /// Removes the gauges and histograms of a lane.
    fn remove_states(&self, lane: &Name) {
        let plain = &Labels {
            lane: lane.clone(),
            more: None,
        };
        for family in [
            &self.last_batch_rows,
            &self.queued_units,
            &self.queued_rows,
            &self.queued_bytes,
            &self.connections,
            &self.flights,
            &self.flights_limit,
            &self.batch_rows_limit,
            &self.away,
        ] {
            family.remove(plain);
        }
        for family in [
            &self.batch_rows,
            &self.queue_seconds,
            &self.database_seconds,
            &self.row_seconds,
        ] {
            family.remove(plain);
        }
    }
}
