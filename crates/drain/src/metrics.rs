//! The metrics of a spool on its way into a database.
//!
//! Each has the label `partition` and those in the table.
//!
//! | name | labels | what it counts |
//! | --- | --- | --- |
//! | `windrow_spool_entries` | | gauge of entries that are not applied |
//! | `windrow_spool_bytes` | | gauge of bytes that count against `spool.max_bytes` |
//! | `windrow_spool_oldest_seconds` | | gauge of the age of the oldest entry that is not applied |
//! | `windrow_spool_waiting` | | gauge, 1 while nothing can be applied and it is tried again |
//! | `windrow_spool_stopped` | | gauge, 1 where nothing is applied before the next start |
//! | `windrow_spool_appended_entries` | | gauge of entries ever appended: the position of the end |
//! | `windrow_spool_applied_entries_total` | | entries applied, with those that became dead letters |
//! | `windrow_spool_rejected_entries_total` | | entries that became dead letters |
//! | `windrow_spool_transactions_total` | `outcome`: `applied`, `refused`, `overtaken`, `unknown`, `again` | transactions tried |
//! | `windrow_spool_transaction_entries` | | histogram of entries in a transaction that was committed |
//! | `windrow_spool_database_seconds` | | histogram of time in the database, once for each transaction tried |

use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::status::PartitionStatus;

type Labels = Vec<(&'static str, String)>;
type Seconds = Gauge<f64, AtomicU64>;
type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// The families of all partitions. Cheap to clone.
#[derive(Clone, Debug)]
pub struct DrainMetrics {
    entries: Family<Labels, Gauge>,
    bytes: Family<Labels, Gauge>,
    oldest: Family<Labels, Seconds>,
    waiting: Family<Labels, Gauge>,
    stopped: Family<Labels, Gauge>,
    appended: Family<Labels, Gauge>,
    applied: Family<Labels, Counter>,
    rejected: Family<Labels, Counter>,
    tried: Family<Labels, Counter>,
    committed: Histograms,
    seconds: Histograms,
}

impl DrainMetrics {
    /// Registers the families. The registry must have no prefix: the names contain `windrow_`
    /// already.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self {
            entries: Family::default(),
            bytes: Family::default(),
            oldest: Family::default(),
            waiting: Family::default(),
            stopped: Family::default(),
            appended: Family::default(),
            applied: Family::default(),
            rejected: Family::default(),
            tried: Family::default(),
            committed: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(1.0, 2.0, 17))
            }),
            seconds: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(100e-6, 2.5, 14))
            }),
        };
        metrics.register_gauges(registry);
        metrics.register_counts(registry);
        metrics
    }

    fn register_gauges(&self, registry: &mut Registry) {
        let gauges = [
            ("entries", "Entries that are not applied", &self.entries),
            ("bytes", "Bytes that count against the limit", &self.bytes),
            (
                "waiting",
                "1 while nothing can be applied and it is tried again",
                &self.waiting,
            ),
            (
                "stopped",
                "1 where nothing is applied before the next start",
                &self.stopped,
            ),
            ("appended_entries", "Entries ever appended", &self.appended),
        ];
        for (name, help, family) in gauges {
            registry.register(format!("windrow_spool_{name}"), help, family.clone());
        }
        registry.register(
            "windrow_spool_oldest_seconds",
            "Age of the oldest entry that is not applied",
            self.oldest.clone(),
        );
    }

    fn register_counts(&self, registry: &mut Registry) {
        let counters = [
            ("applied_entries", "Entries applied", &self.applied),
            (
                "rejected_entries",
                "Entries that became dead letters",
                &self.rejected,
            ),
            (
                "transactions",
                "Transactions tried, by outcome",
                &self.tried,
            ),
        ];
        for (name, help, family) in counters {
            registry.register(format!("windrow_spool_{name}"), help, family.clone());
        }
        let histograms = [
            (
                "transaction_entries",
                "Entries in a transaction",
                &self.committed,
            ),
            ("database_seconds", "Time in the database", &self.seconds),
        ];
        for (name, help, family) in histograms {
            registry.register(format!("windrow_spool_{name}"), help, family.clone());
        }
    }

    /// Returns the series of one partition, which are exposed from the start.
    pub(crate) fn partition(&self, partition: u32) -> Meters {
        let labels = |more: Option<&str>| {
            let outcome = more.map(|word| ("outcome", word.to_owned()));
            let partition = [("partition", partition.to_string())];
            partition.into_iter().chain(outcome).collect::<Labels>()
        };
        let plain = &labels(None);
        let tried = |word| self.tried.get_or_create_owned(&labels(Some(word)));
        Meters {
            entries: self.entries.get_or_create_owned(plain),
            bytes: self.bytes.get_or_create_owned(plain),
            oldest: self.oldest.get_or_create_owned(plain),
            waiting: self.waiting.get_or_create_owned(plain),
            stopped: self.stopped.get_or_create_owned(plain),
            appended: self.appended.get_or_create_owned(plain),
            applied: self.applied.get_or_create_owned(plain),
            rejected: self.rejected.get_or_create_owned(plain),
            tried: TransactionCounters {
                applied: tried("applied"),
                refused: tried("refused"),
                overtaken: tried("overtaken"),
                unknown: tried("unknown"),
                again: tried("again"),
            },
            committed: self.committed.get_or_create_owned(plain),
            seconds: self.seconds.get_or_create_owned(plain),
        }
    }
}

/// The counters and gauges of one partition.
#[derive(Debug)]
pub(crate) struct Meters {
    entries: Gauge,
    bytes: Gauge,
    oldest: Seconds,
    pub(crate) waiting: Gauge,
    pub(crate) stopped: Gauge,
    appended: Gauge,
    pub(crate) applied: Counter,
    pub(crate) rejected: Counter,
    pub(crate) tried: TransactionCounters,
    pub(crate) committed: Histogram,
    pub(crate) seconds: Histogram,
}

/// Transactions that were tried, by their outcome.
#[derive(Debug)]
pub(crate) struct TransactionCounters {
    pub(crate) applied: Counter,
    pub(crate) refused: Counter,
    pub(crate) overtaken: Counter,
    pub(crate) unknown: Counter,
    pub(crate) again: Counter,
}

impl Meters {
    /// Updates the gauges.
    pub(crate) fn measure(&self, status: &PartitionStatus) {
        let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.entries.set(whole(status.entries));
        self.bytes.set(whole(status.bytes));
        self.appended.set(whole(status.end));
        let age = status.age.unwrap_or_default();
        self.oldest.set(age.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_series_are_there_from_the_start() {
        let mut registry = Registry::default();
        let meters = DrainMetrics::register(&mut registry).partition(0);
        meters.tried.unknown.inc();
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "windrow_spool_entries{partition=\"0\"} 0\n",
            "windrow_spool_oldest_seconds{partition=\"0\"} 0.0\n",
            "windrow_spool_rejected_entries_total{partition=\"0\"} 0\n",
            "windrow_spool_transactions_total{partition=\"0\",outcome=\"unknown\"} 1\n",
            "windrow_spool_transactions_total{partition=\"0\",outcome=\"again\"} 0\n",
            "windrow_spool_transaction_entries_count{partition=\"0\"} 0\n",
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
    }
}
