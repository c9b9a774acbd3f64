//! Metrics of the process, and the text of all metrics.

use std::time::UNIX_EPOCH;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::{Registry, Unit};
use serde_json::{Value, json};
use windrow_core::{Budget, LaneStatus, Standing};
use windrow_lanes::Failure;

/// Registers the version, as `windrow_build_info`, the memory budget
/// (`windrow_memory_held_bytes` and `windrow_memory_budget_bytes`), and the room for answers beside
/// it (`windrow_answers_held_bytes` and `windrow_answers_room_bytes`).
pub(crate) fn register(registry: &mut Registry, budget: &Budget) {
    // A gauge, because Prometheus' own text format has no info type.
    let build = Family::<Vec<(&str, &str)>, Gauge>::default();
    let version = vec![("version", env!("CARGO_PKG_VERSION"))];
    build.get_or_create_owned(&version).set(1);
    registry.register("windrow_build_info", "The version of the program", build);
    registry.register_collector(Box::new(Memory(budget.clone())));
}

/// Returns all metrics in Prometheus' text format.
pub(crate) fn encode(registry: &Registry) -> String {
    let mut text = String::new();
    if let Err(error) = prometheus_client::encoding::text::encode(&mut text, registry) {
        tracing::error!(%error, "metrics cannot be written");
    }
    text
}

#[derive(Debug)]
struct Memory(Budget);

impl Collector for Memory {
    fn encode(&self, mut encoder: DescriptorEncoder) -> Result<(), std::fmt::Error> {
        for (name, help, bytes) in [
            (
                "windrow_memory_held",
                "Memory of all that is accepted and not yet answered",
                self.0.held(),
            ),
            (
                "windrow_memory_budget",
                "The memory budget (limits.memory)",
                self.0.total(),
            ),
            (
                "windrow_answers_held",
                "Room that long answers take: those that are expected, and those that wait for their clients to read them",
                self.0.answers().held(),
            ),
            (
                "windrow_answers_room",
                "The room for answers (a quarter of limits.memory)",
                self.0.answers().total(),
            ),
        ] {
            let gauge = ConstGauge::new(i64::try_from(bytes).unwrap_or(i64::MAX));
            let metric =
                encoder.encode_descriptor(name, help, Some(&Unit::Bytes), gauge.metric_type())?;
            gauge.encode(metric)?;
        }
        Ok(())
    }
}

/// Returns the lanes, and with what the writes of each table are joined, as `GET /v1/lanes` shows
/// them. `beside` holds other values by their names.
pub(crate) fn lanes_json(
    lanes: &[LaneStatus],
    standings: &[Standing],
    beside: impl IntoIterator<Item = (&'static str, Option<Value>)>,
) -> Value {
    let own = [
        ("lanes", Some(lanes.iter().map(lane_json).collect())),
        (
            "tables",
            Some(standings.iter().map(standing_json).collect()),
        ),
    ];
    let all = own.into_iter().chain(beside);
    all.filter_map(|(name, shown)| Some((name, shown?)))
        .collect()
}

fn standing_json(standing: &Standing) -> Value {
    let writes: Vec<&str> = standing.ops.iter().map(|op| op.as_str()).collect();
    let mut table = serde_json::Map::new();
    table.insert("table".into(), standing.table.to_string().into());
    table.insert("writes".into(), writes.into());
    table.insert("level".into(), standing.level.as_str().into());
    if let Some(why) = &standing.why {
        let said = [
            ("reason", why.phrase),
            ("object", &*why.object),
            ("advice", why.what_to_do()),
        ];
        for (name, text) in said.into_iter().filter(|(_, text)| !text.is_empty()) {
            table.insert(name.into(), text.into());
        }
    }
    if let Some(kept) = &standing.kept {
        table.insert("kept_in_transactions".into(), kept.is_ok().into());
        if let Err(doubt) = kept {
            table.insert("transaction_reason".into(), doubt.phrase.into());
            table.insert("transaction_advice".into(), doubt.advice.into());
        }
    }
    table.into()
}

/// Returns the failures by table and reason. `values` is true to include the database's own
/// messages, which may contain values of the rows.
pub(crate) fn failures_json(failures: &[Failure], values: bool) -> Value {
    let failures = failures.iter();
    failures
        .map(|failure| failure_json(failure, values))
        .collect()
}

fn failure_json(failure: &Failure, values: bool) -> Value {
    let last = &failure.last;
    let since = failure.at.duration_since(UNIX_EPOCH);
    let mut shown = json!({
        "table": failure.table.to_string(),
        "class": failure.class.as_str(),
        "count": failure.count,
        "at": since.unwrap_or_default().as_secs(),
        "code": last.code,
        "constraint": last.constraint(),
        "column": last.column(),
    });
    if let (true, Some(shown)) = (values, shown.as_object_mut()) {
        shown.insert("message".into(), (&*last.message).into());
        shown.insert("detail".into(), last.detail().into());
    }
    shown
}

fn lane_json(lane: &LaneStatus) -> Value {
    json!({
        "name": &*lane.name,
        "database": lane.database,
        "away": lane.away.as_ref().map(|(since, why)| json!({ "seconds": since.as_secs_f64(), "why": why })),
        "queued": { "units": lane.queued_units, "rows": lane.queued_rows, "bytes": lane.queued_bytes },
        "flights": lane.flights,
        "found": { "flights": lane.flights_limit, "batch_rows": lane.batch_rows_limit },
        "last_batch_rows": lane.last_batch_rows,
        "totals": {
            "writes": lane.writes,
            "succeeded": lane.succeeded,
            "failed": lane.failed,
            "batches": lane.batches,
            "retried": lane.retried,
            "alone": lane.alone,
            "abandoned": lane.abandoned,
            "reconnects": lane.reconnects,
        },
    })
}
