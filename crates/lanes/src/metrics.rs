//! The metrics of lanes.
//!
//! Each has the label `lane` and those in the table. When a lane ends, its series are removed, and
//! its counts are added to those of the lane `(ended)`, so that sums never fall.
//!
//! | name | labels | what it counts |
//! | --- | --- | --- |
//! | `windrow_writes_total` | `op` | writes accepted |
//! | `windrow_outcomes_total` | `class`: `ok` or the class of the fault | units answered |
//! | `windrow_batches_total` | | batches that landed |
//! | `windrow_batch_rows` | | histogram of rows in a batch |
//! | `windrow_last_batch_rows` | | gauge of the rows in the batch that landed last |
//! | `windrow_rung_writes_total` | `rung` | writes by the rung of the ladder that gave their outcome |
//! | `windrow_round_trips_total` | | round trips to the database |
//! | `windrow_commits_total` | | transactions committed |
//! | `windrow_queue_seconds` | | histogram of time in the queue, once for each part of a submission that leaves in a batch |
//! | `windrow_database_seconds` | | histogram of time in the database, once for each batch |
//! | `windrow_row_database_seconds` | | histogram of time in the database for each row, once for each batch |
//! | `windrow_queued_units`, `_rows`, `_bytes` | | gauges of what waits |
//! | `windrow_lane_connections` | | gauge of connections for flights |
//! | `windrow_flights` | | gauge of flights under way |
//! | `windrow_flights_limit` | | gauge of W, the most flights at once, as found |
//! | `windrow_batch_rows_limit` | | gauge of the largest batch, as found |
//! | `windrow_retried_units_total` | | units rolled back for no fault of their own and run again |
//! | `windrow_alone_units_total` | | units run on a connection of their own, because they wait for a lock |
//! | `windrow_abandoned_units_total` | | units taken out of the queue because their client had left |
//! | `windrow_reconnects_total` | | connections opened in place of lost ones |
//! | `windrow_database_away` | | gauge, 1 while the database cannot be reached |

mod labels;
mod meters;
mod series;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;
use windrow_core::Name;

use crate::failures::{Failure, Failures};

use self::labels::Labels;
pub(crate) use self::meters::{Count, Meters};
pub(crate) use self::series::SeriesGuard;

type Histograms = Family<Labels, Histogram, fn() -> Histogram>;

/// The families of all lanes. Cheap to clone.
#[derive(Clone, Debug)]
pub struct LaneMetrics {
    writes: Family<Labels, Counter>,
    outcomes: Family<Labels, Counter>,
    batches: Family<Labels, Counter>,
    last_batch_rows: Family<Labels, Gauge>,
    batch_rows: Histograms,
    rungs: Family<Labels, Counter>,
    round_trips: Family<Labels, Counter>,
    commits: Family<Labels, Counter>,
    queue_seconds: Histograms,
    database_seconds: Histograms,
    row_seconds: Histograms,
    queued_units: Family<Labels, Gauge>,
    queued_rows: Family<Labels, Gauge>,
    queued_bytes: Family<Labels, Gauge>,
    connections: Family<Labels, Gauge>,
    flights: Family<Labels, Gauge>,
    flights_limit: Family<Labels, Gauge>,
    batch_rows_limit: Family<Labels, Gauge>,
    retried: Family<Labels, Counter>,
    alone: Family<Labels, Counter>,
    abandoned: Family<Labels, Counter>,
    reconnects: Family<Labels, Counter>,
    away: Family<Labels, Gauge>,
    /// The number of lanes of each name. Lanes of one name share their series.
    lanes: Arc<Mutex<HashMap<Name, usize>>>,
    failures: Failures,
}

fn seconds() -> Histogram {
    Histogram::new([
        50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 25e-3, 50e-3, 0.1, 0.25, 0.5,
        1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    ])
}

/// Returns a histogram from 1 us (a row of a large batch) to one second (a row that ran alone and
/// waited).
fn row_seconds() -> Histogram {
    Histogram::new([
        1e-6, 2.5e-6, 5e-6, 10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3,
        0.1, 1.0,
    ])
}

fn rows() -> Histogram {
    Histogram::new(exponential_buckets(1.0, 2.0, 17))
}

impl LaneMetrics {
    /// Registers the families. The registry must have no prefix: the names contain `windrow_`
    /// already.
    pub fn register(registry: &mut Registry) -> Self {
        let metrics = Self::new();
        metrics.register_counts(registry);
        metrics.register_states(registry);
        metrics
    }

    /// Returns the writes of all lanes that failed in a batch, by table and reason, the latest
    /// first. At most 200 tables are listed.
    pub fn failures(&self) -> Vec<Failure> {
        self.failures.list()
    }

    fn new() -> Self {
        Self {
            writes: Family::default(),
            outcomes: Family::default(),
            batches: Family::default(),
            last_batch_rows: Family::default(),
            batch_rows: Family::new_with_constructor(rows),
            rungs: Family::default(),
            round_trips: Family::default(),
            commits: Family::default(),
            queue_seconds: Family::new_with_constructor(seconds),
            database_seconds: Family::new_with_constructor(seconds),
            row_seconds: Family::new_with_constructor(row_seconds),
            queued_units: Family::default(),
            queued_rows: Family::default(),
            queued_bytes: Family::default(),
            connections: Family::default(),
            flights: Family::default(),
            flights_limit: Family::default(),
            batch_rows_limit: Family::default(),
            retried: Family::default(),
            alone: Family::default(),
            abandoned: Family::default(),
            reconnects: Family::default(),
            away: Family::default(),
            lanes: Arc::default(),
            failures: Failures::default(),
        }
    }

    fn register_counts(&self, registry: &mut Registry) {
        let counters = [
            ("writes", "Writes accepted", &self.writes),
            ("outcomes", "Units answered, by class", &self.outcomes),
            ("batches", "Batches that landed", &self.batches),
            ("rung_writes", "Writes by rung of the ladder", &self.rungs),
            (
                "round_trips",
                "Round trips to the database",
                &self.round_trips,
            ),
            ("commits", "Transactions committed", &self.commits),
            (
                "retried_units",
                "Units run again after a rollback",
                &self.retried,
            ),
            (
                "alone_units",
                "Units run on a connection of their own",
                &self.alone,
            ),
            (
                "abandoned_units",
                "Units whose client left before they did",
                &self.abandoned,
            ),
            (
                "reconnects",
                "Connections opened in place of lost ones",
                &self.reconnects,
            ),
        ];
        for (name, help, family) in counters {
            registry.register(format!("windrow_{name}"), help, family.clone());
        }
    }

    fn register_states(&self, registry: &mut Registry) {
        let gauges = [
            (
                "last_batch_rows",
                "Rows of the batch that landed last",
                &self.last_batch_rows,
            ),
            ("queued_units", "Units that wait", &self.queued_units),
            ("queued_rows", "Rows that wait", &self.queued_rows),
            ("queued_bytes", "Bytes that wait", &self.queued_bytes),
            (
                "lane_connections",
                "Connections for flights",
                &self.connections,
            ),
            ("flights", "Flights under way", &self.flights),
            (
                "flights_limit",
                "The most flights at once, as found",
                &self.flights_limit,
            ),
            (
                "batch_rows_limit",
                "The largest batch, as found",
                &self.batch_rows_limit,
            ),
            (
                "database_away",
                "1 while the database cannot be reached",
                &self.away,
            ),
        ];
        for (name, help, family) in gauges {
            registry.register(format!("windrow_{name}"), help, family.clone());
        }
        let histograms = [
            ("batch_rows", "Rows in a batch", &self.batch_rows),
            ("queue_seconds", "Time in the queue", &self.queue_seconds),
            (
                "database_seconds",
                "Time in the database",
                &self.database_seconds,
            ),
            (
                "row_database_seconds",
                "Time in the database for each row of a batch",
                &self.row_seconds,
            ),
        ];
        for (name, help, family) in histograms {
            registry.register(format!("windrow_{name}"), help, family.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use windrow_core::FaultClass;

    use super::meters::OPS;
    use super::*;

    #[test]
    fn counts_land_under_their_own_labels() {
        let mut registry = Registry::default();
        let (meters, _guard) = LaneMetrics::register(&mut registry).lane(&"main".into());
        let mut count = Count::default();
        OPS.into_iter().for_each(|op| count.write(op));
        for class in FaultClass::ALL {
            count.fault(class, 1 + class as usize);
        }
        meters.add(&mut count);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for op in OPS {
            let line = format!(
                "windrow_writes_total{{lane=\"main\",op=\"{}\"}} 1\n",
                op.as_str()
            );
            assert!(text.contains(&line), "{line} is missing in {text}");
        }
        for class in FaultClass::ALL {
            let (word, n) = (class.as_str(), 1 + class as usize);
            let line = format!("windrow_outcomes_total{{lane=\"main\",class=\"{word}\"}} {n}\n");
            assert!(text.contains(&line), "{line} is missing in {text}");
        }
        for line in [
            "class=\"ok\"} 0",
            "windrow_batch_rows_bucket{le=\"1.0\",lane=\"main\"} 0",
        ] {
            assert!(text.contains(line), "{line} is missing in {text}");
        }
    }

    #[test]
    fn a_lane_that_ends_leaves_no_series_behind() {
        let mut registry = Registry::default();
        let metrics = LaneMetrics::register(&mut registry);
        let lines = |lane: &str| {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
            text.matches(&format!("lane=\"{lane}\"")).count()
        };
        let (_, other) = metrics.lane(&"other".into());
        let first = metrics.lane(&"main".into());
        let all = lines("main");
        assert!(all > 60 && all == lines("other"), "{all}");
        // The next lane of the name has begun before the first one has ended.
        let second = metrics.lane(&"main".into());
        drop(first);
        assert_eq!(lines("main"), all);
        drop(second);
        assert_eq!((lines("main"), lines("other")), (0, all));
        drop(other);
    }

    #[test]
    fn sums_over_lanes_do_not_fall_when_a_lane_ends() {
        let mut registry = Registry::default();
        let metrics = LaneMetrics::register(&mut registry);
        let sum = |name: &str| -> u64 {
            let mut text = String::new();
            prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
            let lines = text.lines().filter(|line| line.starts_with(name));
            let last = lines.map(|line| line.rsplit(' ').next().unwrap());
            last.map(|value| value.parse::<u64>().unwrap()).sum()
        };
        for turn in 1..=3 {
            let (meters, guard) = metrics.lane(&"main".into());
            let mut guard = Some(guard);
            let mut count = Count::default();
            OPS.into_iter().for_each(|op| count.write(op));
            count.fault(FaultClass::Unique, 2);
            meters.add(&mut count);
            meters.rungs.iter().for_each(|rung| _ = rung.inc());
            for counter in [&meters.batches, &meters.commits, &meters.reconnects] {
                counter.inc_by(5);
            }
            for _ in 0..2 {
                assert_eq!(sum("windrow_writes_total"), turn * OPS.len() as u64);
                assert_eq!(sum("windrow_outcomes_total"), turn * 2);
                assert_eq!(sum("windrow_rung_writes_total"), turn * 4);
                for name in ["batches", "commits", "reconnects"] {
                    assert_eq!(sum(&format!("windrow_{name}_total")), turn * 5, "{name}");
                }
                // The same sums once the lane has ended.
                drop(guard.take());
            }
        }
    }
}
