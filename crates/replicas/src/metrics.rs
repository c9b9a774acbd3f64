//! The metrics of replicas. Each but the last has the label `replica`.
//!
//! | name | what it counts |
//! | --- | --- |
//! | `windrow_replica_lag_entries` | gauge of entries of its log that are not applied |
//! | `windrow_replica_lag_rows` | gauge of keys in them |
//! | `windrow_replica_lag_seconds` | gauge of the age of the oldest of them |
//! | `windrow_replica_connected` | gauge, 1 while it can be written to |
//! | `windrow_replica_rejected_total` | rows that it refused |
//! | `windrow_replica_rows_total` | rows written to it, and deleted there |
//! | `windrow_replica_batches_total` | batches written to it |
//! | `windrow_replica_untold_total` | statements of SQL clients that changed rows whose keys no replica gets |

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::status::{ReplicaState, ReplicaStatus};

type Labels = Vec<(&'static str, String)>;

/// The families of all replicas. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ReplicaMetrics {
    entries: Family<Labels, Gauge>,
    rows_behind: Family<Labels, Gauge>,
    seconds: Family<Labels, Gauge<f64, AtomicU64>>,
    connected: Family<Labels, Gauge>,
    rejected: Family<Labels, Counter>,
    rows: Family<Labels, Counter>,
    batches: Family<Labels, Counter>,
    pub(crate) untold: Counter,
}

/// The meters of one replica.
#[derive(Clone, Debug, Default)]
pub struct Meters {
    entries: Gauge,
    rows_behind: Gauge,
    seconds: Gauge<f64, AtomicU64>,
    connected: Gauge,
    pub(crate) rejected: Counter,
    pub(crate) rows: Counter,
    pub(crate) batches: Counter,
}

impl ReplicaMetrics {
    /// Registers the families. The registry must have no prefix: the names contain `windrow_`
    /// already.
    pub fn register(registry: &mut Registry) -> Self {
        let all = Self::default();
        let gauges = [
            (
                "lag_entries",
                "Entries of its log that are not applied",
                &all.entries,
            ),
            (
                "lag_rows",
                "Rows that are still to be looked at for it",
                &all.rows_behind,
            ),
            ("connected", "1 while it can be written to", &all.connected),
        ];
        for (name, help, family) in gauges {
            registry.register(format!("windrow_replica_{name}"), help, family.clone());
        }
        let help = "Age of the oldest entry of its log that is not applied";
        registry.register("windrow_replica_lag_seconds", help, all.seconds.clone());
        let counters = [
            ("rejected", "Rows that it refused", &all.rejected),
            ("rows", "Rows written to it, and deleted there", &all.rows),
            ("batches", "Batches written to it", &all.batches),
        ];
        for (name, help, family) in counters {
            registry.register(format!("windrow_replica_{name}"), help, family.clone());
        }
        let help = "Statements of SQL clients that changed rows whose keys replicas do not get";
        registry.register("windrow_replica_untold", help, all.untold.clone());
        all
    }

    /// Returns the meters of one replica, by its name.
    pub fn replica(&self, name: &str) -> Meters {
        let labels = vec![("replica", name.to_owned())];
        Meters {
            entries: self.entries.get_or_create_owned(&labels),
            rows_behind: self.rows_behind.get_or_create_owned(&labels),
            seconds: self.seconds.get_or_create_owned(&labels),
            connected: self.connected.get_or_create_owned(&labels),
            rejected: self.rejected.get_or_create_owned(&labels),
            rows: self.rows.get_or_create_owned(&labels),
            batches: self.batches.get_or_create_owned(&labels),
        }
    }
}

impl Meters {
    /// Updates the gauges.
    pub(crate) fn measure(&self, status: &ReplicaStatus) {
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.entries.set(whole(status.entries));
        self.rows_behind.set(whole(status.rows));
        self.seconds.set(status.age.as_secs_f64());
        let connected = matches!(status.state, ReplicaState::Applying | ReplicaState::Level);
        self.connected.set(connected.into());
    }
}
