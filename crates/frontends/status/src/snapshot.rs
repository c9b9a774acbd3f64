//! The state of the process at one moment, as JSON.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::figures::Figures;
use crate::history::Point;
use crate::samples::samples;

/// The functions from which the page reads its data. They are called every few seconds while a
/// client watches the page, and must not block.
#[derive(Clone)]
pub struct Sources {
    /// Returns the state of each lane, as in `GET /v1/lanes`.
    pub lanes: Arc<dyn Fn() -> Value + Send + Sync>,
    /// Returns all metrics as OpenMetrics text.
    pub metrics_text: Arc<dyn Fn() -> String + Send + Sync>,
    /// Returns the advice for a reason for which statements are not joined.
    pub advice: fn(&str) -> &'static str,
    /// The name and version of the program.
    pub version: &'static str,
    /// The product name of the database, such as `PostgreSQL`.
    pub database: &'static str,
}

impl fmt::Debug for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sources")
            .field("version", &self.version)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

/// The state of the process as JSON, and its point in the history.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) shown: Map<String, Value>,
    pub(crate) point: Point,
}

impl Snapshot {
    /// Reads the sources. `started` is the start of the process, in seconds since 1970.
    pub(crate) fn take(sources: &Sources, started: f64) -> Self {
        let text = (sources.metrics_text)();
        let figures = Figures::of(&samples(&text));
        let point = Point {
            at: now(),
            accepted: figures.accepted,
            failed: figures.failed,
        };
        let mut shown = match (sources.lanes)() {
            Value::Object(shown) => shown,
            _ => Map::new(),
        };
        let about = json!({
            "version": sources.version,
            "database": sources.database,
            "started": started,
        });
        shown.insert("about".into(), about);
        shown.insert("now".into(), point.at.into());
        shown.insert("advice".into(), figures.advice(sources.advice));
        shown.insert("figures".into(), figures.into_json());
        Self { shown, point }
    }
}

/// Returns the seconds since 1970, to the millisecond.
pub(crate) fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.unwrap_or_default().as_secs_f64();
    (seconds * 1000.0).round() / 1000.0
}
