//! Figures of the gateway's own health that do not follow from requests: readiness, dead letters,
//! free disk space and the end of certificates. The probe measures the first three, and a scrape
//! reads all of them.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use windrow_bookkeeping::count_dead_letters;
use windrow_core::{Bookkeeping, Fault};

use crate::databases;
use crate::disk::free_bytes;
use crate::settings::{Certificate, Place, Settings};

/// The most dead letters that are counted, because a database reads each of them.
const MAX_COUNTED: usize = 100_000;

/// The listeners, in the order of [`Settings::certificates`].
const LISTENERS: [&str; 3] = ["http", "pg", "mysql"];

/// The name and the help text of each metric.
const READY: (&str, &str) = ("windrow_ready", "1 while GET /readyz answers 200");
const DEAD_LETTERS: (&str, &str) = (
    "windrow_dead_letters",
    "Dead letters that wait in the database, 100,000 at most",
);
const SPOOL_LIMIT: (&str, &str) = (
    "windrow_spool_limit_bytes",
    "The limit of the spool (spool.max_bytes)",
);
const DISK_FREE: (&str, &str) = (
    "windrow_disk_free_bytes",
    "Free space of the disk on which Windrow keeps something",
);
const CERTIFICATE: (&str, &str) = (
    "windrow_certificate_expiry_timestamp_seconds",
    "The end of the certificate's validity, in seconds since 1970",
);

/// The gateway's vital figures. Clones share them.
#[derive(Clone)]
pub(super) struct Vitals(Arc<Inner>);

struct Inner {
    /// Folders and files whose disks are measured, each with its name.
    places: Vec<(&'static str, PathBuf)>,
    spool_limit: Option<u64>,
    certificates: [Option<Certificate>; 3],
    measured: Mutex<Measured>,
}

/// The figures that the probe measures; `None` until they are known.
#[derive(Clone, Default)]
struct Measured {
    is_ready: Option<bool>,
    dead_letters: Option<u64>,
    free: Vec<(&'static str, u64)>,
}

impl Vitals {
    /// Registers the figures of a gateway with these settings.
    pub(super) fn register(settings: &Settings, registry: &mut Registry) -> Self {
        let mut places = Vec::new();
        if let Ok(Some(file)) = databases::file(settings.url.reveal()) {
            places.push(("database", file));
        }
        let spool = settings.spool.as_ref();
        let of_files = spool.and_then(|spool| match &spool.place {
            Place::Directory(directory) => Some((directory.clone(), spool.options.max_bytes)),
            Place::Topic { .. } => None,
        });
        let spool_limit = of_files.as_ref().map(|(_, limit)| *limit);
        places.extend(of_files.map(|(directory, _)| ("spool", directory)));
        let replicas = settings.replicas.as_ref();
        if let Some(Place::Directory(directory)) = replicas.map(|all| &all.place) {
            places.push(("replicas", directory.clone()));
        }
        let vitals = Self(Arc::new(Inner {
            places,
            spool_limit,
            certificates: settings.certificates.clone(),
            measured: Mutex::default(),
        }));
        registry.register_collector(Box::new(vitals.clone()));
        vitals
    }

    /// Notes if the gateway is ready.
    pub(super) fn note_ready(&self, is_ready: bool) {
        self.0.measured.lock().is_ready = Some(is_ready);
    }

    /// Measures the free space of the disks. A network disk that hangs does not block other tasks.
    pub(super) async fn measure_disks(&self) {
        let inner = Arc::clone(&self.0);
        let look = move || {
            let all = inner.places.iter();
            all.filter_map(|(name, path)| Some((*name, free_bytes(path)?)))
                .collect()
        };
        if let Ok(free) = tokio::task::spawn_blocking(look).await {
            self.0.measured.lock().free = free;
        }
    }

    /// Counts the dead letters that wait in a database.
    ///
    /// # Errors
    /// The error of the database. The last count stays.
    pub(super) async fn count_letters(&self, tables: &dyn Bookkeeping) -> Result<(), Fault> {
        let count = count_dead_letters(tables, MAX_COUNTED).await?;
        self.0.measured.lock().dead_letters = Some(count);
        Ok(())
    }
}

impl fmt::Debug for Vitals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Vitals")
    }
}

/// Encodes a gauge without labels, if its figure is known.
fn plain(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    figure: Option<i64>,
) -> fmt::Result {
    let Some(figure) = figure else { return Ok(()) };
    let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    ConstGauge::new(figure).encode(metric)
}

/// Encodes a gauge with a series for each value of a label.
fn family(
    encoder: &mut DescriptorEncoder<'_>,
    (name, help): (&str, &str),
    label: &str,
    series: &[(&'static str, i64)],
) -> fmt::Result {
    if series.is_empty() {
        return Ok(());
    }
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (value, figure) in series {
        let labels = [(label, *value)];
        ConstGauge::new(*figure).encode(metric.encode_family(&labels)?)?;
    }
    Ok(())
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Collector for Vitals {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let measured = self.0.measured.lock().clone();
        let ends = LISTENERS.into_iter().zip(&self.0.certificates);
        let ends = ends.filter_map(|(of, shown)| Some((of, shown.as_ref()?.not_after()?)));
        let ends: Vec<_> = ends.collect();
        let free = measured.free.into_iter();
        let free: Vec<_> = free.map(|(of, bytes)| (of, whole(bytes))).collect();
        let to = &mut encoder;
        let ready = measured.is_ready.map(i64::from);
        plain(to, READY, ready)?;
        plain(to, DEAD_LETTERS, measured.dead_letters.map(whole))?;
        plain(to, SPOOL_LIMIT, self.0.spool_limit.map(whole))?;
        family(to, DISK_FREE, "of", &free)?;
        family(to, CERTIFICATE, "listener", &ends)
    }
}
