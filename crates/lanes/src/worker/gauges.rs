//! The gauges of a lane, written only if they have changed.

use super::ledger::Ledger;
use crate::connections::Connections;
use crate::pace::Setting;

/// Gauges that each turn may change.
const GAUGES: usize = 7;

/// The gauges as they were last written.
#[derive(Debug, Default)]
pub(super) struct Gauges {
    values: [usize; GAUGES],
    /// The number of units dropped because their client had left, as counted by the queue.
    abandoned: usize,
}

impl Gauges {
    /// Brings the gauges up to date.
    pub(super) fn publish(&mut self, ledger: &Ledger, connections: &Connections, setting: Setting) {
        let (totals, apart) = (ledger.queue.totals(), ledger.queue.totals_apart());
        let gauges: [_; GAUGES] = [
            (&ledger.meters.queued_units, totals.units + apart.units),
            (&ledger.meters.queued_rows, totals.rows + apart.rows),
            (&ledger.meters.queued_bytes, totals.bytes + apart.bytes),
            (&ledger.meters.connections, connections.connected()),
            (&ledger.meters.flights, connections.flights().count()),
            (&ledger.meters.flights_limit, setting.flights),
            (&ledger.meters.batch_rows_limit, setting.rows),
        ];
        // Most gauges are unchanged, and writing a shared one costs more than comparing.
        for ((gauge, value), last) in gauges.into_iter().zip(&mut self.values) {
            if *last != value {
                *last = value;
                gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
            }
        }
        let abandoned = totals.abandoned + apart.abandoned;
        if abandoned > self.abandoned {
            ledger
                .meters
                .abandoned
                .inc_by((abandoned - self.abandoned) as u64);
            self.abandoned = abandoned;
        }
    }
}
