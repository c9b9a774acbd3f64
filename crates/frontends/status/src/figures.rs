//! Computes the sums and histograms that the page shows from the text of the metrics.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::samples::Sample;

/// The values that the page takes from the metrics.
#[derive(Debug)]
pub(crate) struct Figures {
    /// Writes that lanes and spool have accepted since the start of the process.
    pub(crate) accepted: f64,
    /// Units that were answered with an error.
    pub(crate) failed: f64,
    json: Value,
}

/// The histograms shown for each lane.
const OF_LANES: [&str; 4] = [
    "batch_rows",
    "queue_seconds",
    "database_seconds",
    "row_database_seconds",
];

impl Figures {
    pub(crate) fn of(samples: &[Sample<'_>]) -> Self {
        let sum = |name: &str| -> f64 { named(samples, name).map(|sample| sample.value).sum() };
        let writes = sum("windrow_writes_total");
        let accepted = writes + sum("windrow_spool_appended_entries");
        let mut faults = by(samples, "windrow_outcomes_total", "class");
        faults.remove("ok");
        let failed = faults.values().sum();
        let mut histograms = Map::new();
        for name in OF_LANES {
            let found = histogram(samples, &format!("windrow_{name}"), |_| true);
            histograms.insert(name.into(), found);
        }
        let requests = histogram(samples, "windrow_http_request_seconds", writes_rows);
        histograms.insert("http_request_seconds".into(), requests);
        let json = json!({
            "accepted": accepted,
            "faults": faults,
            "rungs": by(samples, "windrow_rung_writes_total", "rung"),
            "histograms": histograms,
            "lanes": lanes(samples),
            "memory": {
                "held": sum("windrow_memory_held_bytes"),
                "budget": sum("windrow_memory_budget_bytes"),
            },
            "http_connections": sum("windrow_http_connections"),
            "lane_connections": sum("windrow_lane_connections"),
            "pg": pg(samples),
            "mysql": mysql(samples),
            "dead_letters": named(samples, "windrow_dead_letters").next().map(|one| one.value),
        });
        Self {
            accepted,
            failed,
            json,
        }
    }

    /// Returns the advice for each reason for which statements were not joined.
    pub(crate) fn advice(&self, advice: fn(&str) -> &'static str) -> Value {
        let frontends = ["/pg/bypass", "/mysql/bypass"].into_iter();
        let reasons = frontends.filter_map(|path| self.json.pointer(path)?.as_object());
        let all = reasons.flat_map(Map::keys);
        let pairs = all.map(|reason| (reason.clone(), advice(reason).into()));
        pairs.collect::<Map<_, _>>().into()
    }

    pub(crate) fn into_json(self) -> Value {
        self.json
    }
}

fn named<'s, 't>(samples: &'s [Sample<'t>], name: &str) -> impl Iterator<Item = &'s Sample<'t>> {
    samples.iter().filter(move |sample| sample.name == name)
}

/// Sums a metric for each value of a label.
fn by(samples: &[Sample<'_>], name: &str, label: &str) -> BTreeMap<String, f64> {
    let mut sums = BTreeMap::new();
    for sample in named(samples, name) {
        *sums.entry(sample.label(label).to_owned()).or_default() += sample.value;
    }
    sums
}

/// Returns true for samples of HTTP routes that write rows.
fn writes_rows(sample: &Sample<'_>) -> bool {
    sample.label("method") != "GET" && sample.label("route") != "other"
}

/// Merges all series of a name into one histogram: upper bounds, counts below each, sum and count.
fn histogram(samples: &[Sample<'_>], name: &str, counts: impl Fn(&Sample<'_>) -> bool) -> Value {
    let mut bounds: Vec<(f64, f64)> = Vec::new();
    for sample in named(samples, &format!("{name}_bucket")).filter(|sample| counts(sample)) {
        // The last bucket, +Inf, is the count.
        let Some(bound) = sample
            .label("le")
            .parse()
            .ok()
            .filter(|le: &f64| le.is_finite())
        else {
            continue;
        };
        match bounds.iter_mut().find(|(le, _)| *le == bound) {
            Some((_, count)) => *count += sample.value,
            None => bounds.push((bound, sample.value)),
        }
    }
    let total = |what: &str| -> f64 {
        let all = named(samples, what).filter(|sample| counts(sample));
        all.map(|sample| sample.value).sum()
    };
    let (le, n): (Vec<f64>, Vec<f64>) = bounds.into_iter().unzip();
    json!({
        "le": le,
        "n": n,
        "sum": total(&format!("{name}_sum")),
        "count": total(&format!("{name}_count")),
    })
}

/// Returns the figures of each lane from which the page computes the cost of a row.
fn lanes(samples: &[Sample<'_>]) -> Value {
    let of = |name| by(samples, name, "lane");
    let rows = of("windrow_batch_rows_sum");
    let seconds = of("windrow_database_seconds_sum");
    let batches = of("windrow_batches_total");
    let lane = |(name, rows): (String, f64)| {
        let other = |sums: &BTreeMap<String, f64>| sums.get(&name).copied().unwrap_or(0.0);
        let figures =
            json!({ "rows": rows, "seconds": other(&seconds), "batches": other(&batches) });
        (name, figures)
    };
    rows.into_iter().map(lane).collect::<Map<_, _>>().into()
}

/// Returns the figures of the PostgreSQL frontend; null if it is switched off.
fn pg(samples: &[Sample<'_>]) -> Value {
    if named(samples, "windrow_pg_clients").next().is_none() {
        return Value::Null;
    }
    let sum = |name: &str| -> f64 { named(samples, name).map(|sample| sample.value).sum() };
    let ways = by(samples, "windrow_pg_statements_total", "way");
    let servers = by(samples, "windrow_pg_server_connections", "state");
    let of = |sums: &BTreeMap<String, f64>, name: &str| sums.get(name).copied().unwrap_or(0.0);
    json!({
        "clients": sum("windrow_pg_clients"),
        "joined": of(&ways, "joined"),
        "joinable": of(&ways, "joinable"),
        "relayed": of(&ways, "relayed"),
        "used": of(&servers, "used"),
        "idle": of(&servers, "idle"),
        "waiting": sum("windrow_pg_server_waiting"),
        "bypass": by(samples, "windrow_pg_bypass_total", "reason"),
    })
}

/// Returns the figures of the MySQL frontend; null if it is switched off.
fn mysql(samples: &[Sample<'_>]) -> Value {
    if named(samples, "windrow_mysql_clients").next().is_none() {
        return Value::Null;
    }
    let sum = |name: &str| -> f64 { named(samples, name).map(|sample| sample.value).sum() };
    let ways = by(samples, "windrow_mysql_statements_total", "way");
    let of = |name: &str| ways.get(name).copied().unwrap_or(0.0);
    json!({
        "clients": sum("windrow_mysql_clients"),
        "joined": of("joined"),
        "relayed": of("relayed"),
        "servers": sum("windrow_mysql_server_connections"),
        "bypass": by(samples, "windrow_mysql_bypass_total", "reason"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::samples;

    const TEXT: &str = "\
windrow_writes_total{lane=\"a\",op=\"insert\"} 5
windrow_writes_total{lane=\"b\",op=\"update\"} 2
windrow_spool_appended_entries{partition=\"0\"} 10
windrow_outcomes_total{lane=\"a\",class=\"ok\"} 5
windrow_outcomes_total{lane=\"a\",class=\"constraint\"} 1
windrow_outcomes_total{lane=\"b\",class=\"constraint\"} 2
windrow_batch_rows_sum{lane=\"a\"} 5
windrow_batch_rows_count{lane=\"a\"} 2
windrow_batch_rows_bucket{le=\"1.0\",lane=\"a\"} 1
windrow_batch_rows_bucket{le=\"2.0\",lane=\"a\"} 2
windrow_batch_rows_bucket{le=\"+Inf\",lane=\"a\"} 2
windrow_batch_rows_bucket{le=\"1.0\",lane=\"b\"} 1
windrow_dead_letters 4
windrow_mysql_clients 1
windrow_mysql_bypass_total{reason=\"a hint\"} 2
windrow_http_request_seconds_count{route=\"/metrics\",method=\"GET\"} 7
windrow_http_request_seconds_count{route=\"/v1/batch\",method=\"POST\"} 3
";

    #[test]
    fn series_are_summed() {
        let figures = Figures::of(&samples(TEXT));
        assert_eq!((figures.accepted, figures.failed), (17.0, 3.0));
        let advice = figures.advice(|_| "do so");
        assert_eq!(advice, json!({ "a hint": "do so" }));
        let json = figures.into_json();
        assert_eq!(json["faults"], json!({ "constraint": 3.0 }));
        assert_eq!(
            json["histograms"]["batch_rows"],
            json!({ "le": [1.0, 2.0], "n": [2.0, 2.0], "sum": 5.0, "count": 2.0 })
        );
        assert_eq!(json["histograms"]["http_request_seconds"]["count"], 3.0);
        assert_eq!(json["lanes"]["a"]["rows"], 5.0);
        assert_eq!(json["pg"], Value::Null);
        assert_eq!(json["mysql"]["bypass"]["a hint"], 2.0);
        assert_eq!(json["dead_letters"], 4.0);
    }
}
