//! One look at the program, as JSON.

use std::fmt;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

use crate::figures::Figures;
use crate::history::Point;
use crate::samples::samples;

/// What the page reads. Both are asked every few seconds while somebody looks, and wait for nobody.
#[derive(Clone)]
pub struct Sources {
    /// What each lane is doing, as `GET /v1/lanes` tells it.
    pub lanes: Arc<dyn Fn() -> Value + Send + Sync>,
    /// All metrics in OpenMetrics text.
    pub metrics_text: Arc<dyn Fn() -> String + Send + Sync>,
    /// The program and its version.
    pub version: &'static str,
    /// The database's name, as its makers write it.
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

/// One look: an object of JSON, and its point of the history.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) shown: Map<String, Value>,
    pub(crate) point: Point,
}

impl Snapshot {
    /// `started`: when the page was made, in seconds since 1970.
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
        shown.insert("figures".into(), figures.into_json());
        Self { shown, point }
    }
}

/// Seconds since 1970, to the millisecond.
pub(crate) fn now() -> f64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = since.unwrap_or_default().as_secs_f64();
    (seconds * 1000.0).round() / 1000.0
}
