//! Counters of the frontend.
//!
//! | metric | labels | meaning |
//! | --- | --- | --- |
//! | `windrow_http_requests_total` | `route`, `method`, `status` (`2xx` ..) | requests answered |
//! | `windrow_http_request_seconds` | `route`, `method` | from the head of a request to the head of its answer |
//! | `windrow_http_received_bytes_total` | | bytes read from clients, heads included |
//! | `windrow_http_connections` | | connections open at this moment |
//! | `windrow_http_rows_total` | `ack` (`commit`, `spool`) | rows and operations handed to the lane, or to the spool |

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::ack::Ack;
use crate::endpoint::{Endpoint, ExtraEndpoint};

/// The counters of one frontend. Cheap to clone.
#[derive(Clone, Debug)]
pub struct HttpMetrics {
    endpoints: Box<[EndpointMetrics]>,
    pub(crate) received: Counter,
    pub(crate) connections: Gauge,
    committed: Counter,
    spooled: Counter,
}

/// The counters of one endpoint, resolved once, so that a request needs no look-up by label.
#[derive(Clone, Debug)]
struct EndpointMetrics {
    /// The counters in the order of [`STATUSES`].
    statuses: [Counter; 3],
    seconds: Histogram,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: &'static str,
    method: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    method: &'static str,
    status: &'static str,
}

/// The classes of statuses that are used.
const STATUSES: [&str; 3] = ["2xx", "4xx", "5xx"];

/// The bounds in seconds: a single write on a fast disk takes a few tenths of a millisecond.
const BUCKETS: [f64; 16] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AckLabels {
    ack: &'static str,
}

type Requests = Family<RequestLabels, Counter>;
type Seconds = Family<RouteLabels, Histogram, fn() -> Histogram>;

fn histogram() -> Histogram {
    Histogram::new(BUCKETS)
}

impl HttpMetrics {
    /// Registers all metrics of the frontend, and returns the handle that counts. `extra`: the
    /// endpoints of its extensions, in their order.
    pub fn register<'a>(
        registry: &mut Registry,
        extra: impl IntoIterator<Item = &'a ExtraEndpoint>,
    ) -> Self {
        let requests = Requests::default();
        let seconds = Seconds::new_with_constructor(histogram);
        let own = Endpoint::ALL.iter().map(|e| (e.template(), e.method()));
        let endpoints = own
            .chain(extra.into_iter().map(|e| (e.template, e.method)))
            .map(|(route, method)| EndpointMetrics::new(route, method, &requests, &seconds))
            .collect();
        let rows = Family::<AckLabels, Counter>::default();
        let rows_of = |ack| rows.get_or_create_owned(&AckLabels { ack });
        let metrics = Self {
            endpoints,
            received: Counter::default(),
            connections: Gauge::default(),
            committed: rows_of("commit"),
            spooled: rows_of("spool"),
        };
        registry.register("windrow_http_requests", "Requests answered", requests);
        registry.register_with_unit(
            "windrow_http_request",
            "Time from the head of a request to the head of its answer",
            Unit::Seconds,
            seconds,
        );
        registry.register_with_unit(
            "windrow_http_received",
            "Bytes read from clients",
            Unit::Bytes,
            metrics.received.clone(),
        );
        registry.register(
            "windrow_http_connections",
            "Connections open at this moment",
            metrics.connections.clone(),
        );
        registry.register(
            "windrow_http_rows",
            "Rows and operations handed to the lane, or to the spool",
            rows,
        );
        metrics
    }

    /// Counts submitted writes.
    pub(crate) fn handed_over(&self, ack: Ack, writes: u64) {
        match ack {
            Ack::Commit => self.committed.inc_by(writes),
            Ack::Spool => self.spooled.inc_by(writes),
        };
    }

    /// Counts an answer. `endpoint`: an index into the frontend's own endpoints, followed by those
    /// of the extensions.
    pub(crate) fn answered(&self, endpoint: usize, status: http::StatusCode, took: Duration) {
        let Some(metrics) = self.endpoints.get(endpoint) else {
            return;
        };
        metrics.seconds.observe(took.as_secs_f64());
        let [good, client, server] = &metrics.statuses;
        let counter = match status.as_u16() {
            0..=399 => good,
            400..=499 => client,
            _ => server,
        };
        counter.inc();
    }
}

impl EndpointMetrics {
    fn new(
        route: &'static str,
        method: &'static str,
        requests: &Requests,
        seconds: &Seconds,
    ) -> Self {
        Self {
            statuses: STATUSES.map(|status| {
                requests.get_or_create_owned(&RequestLabels {
                    route,
                    method,
                    status,
                })
            }),
            seconds: seconds.get_or_create_owned(&RouteLabels { route, method }),
        }
    }
}
