//! The server: a sink, its lane, the frontends, wired and run until told to stop.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use async_trait::async_trait;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use windrow_core::{Budget, Fault, FaultClass, Intake, Sink};
use windrow_http::{Http, HttpMetrics, Readiness, Services};
use windrow_lanes::{Lane, LaneMetrics};

use crate::settings::Settings;
use crate::writer::LANE_CAPACITY;

/// A server that listens.
pub struct Server {
    http: Http,
    lane: Lane,
    database: &'static str,
}

impl Server {
    /// Opens the database and the listening sockets. The database may be away; clients are told so until it is there.
    ///
    /// # Errors
    /// A URL that makes no sense, a database that refuses this role for good, an address that cannot be listened on.
    pub async fn bind(settings: &Settings) -> anyhow::Result<Self> {
        let sink = windrow_sinks::open(&settings.url, &settings.sink)
            .await
            .with_context(|| format!("the database {} cannot be opened", settings.database))?;
        check(&*sink, settings).await?;
        let database = sink.profile().name;
        let mut registry = Registry::default();
        let http_metrics = HttpMetrics::register(&mut registry);
        let lane_metrics = LaneMetrics::register(&mut registry);
        let budget = Budget::new(settings.memory);
        crate::metrics::register(&mut registry, &budget);
        let (intake, arrivals) = Intake::channel(budget, LANE_CAPACITY);
        let lane = Lane::start(
            Arc::clone(&sink),
            settings.limits.clone(),
            arrivals,
            lane_metrics,
            "default".into(),
        );
        let services = services(intake, sink, &lane, registry, http_metrics);
        let http = Http::bind(settings.http.clone(), services)
            .await
            .with_context(|| format!("HTTP cannot listen on {}", settings.http.listen))?;
        Ok(Self {
            http,
            lane,
            database,
        })
    }

    /// Where HTTP listens.
    pub fn http_addr(&self) -> SocketAddr {
        self.http.local_addr()
    }

    /// The database's name, as its makers write it.
    pub fn database(&self) -> &'static str {
        self.database
    }

    /// Serves until `stop` is cancelled; then finishes what was accepted and ends. To end at once, drop the future.
    pub async fn run(self, stop: CancellationToken) {
        self.http.run(stop).await;
        info!("requests are finished; closing the database");
        self.lane.shutdown().await;
    }
}

/// A wrong password will not become right by waiting: better told at the start than at the first write.
async fn check(sink: &dyn Sink, settings: &Settings) -> anyhow::Result<()> {
    match sink.ping().await {
        Ok(()) => Ok(()),
        Err(fault) if fault.class == FaultClass::Unavailable => {
            warn!(database = settings.database, %fault, "the database is away; writes wait and fail until it is there");
            Ok(())
        }
        Err(fault) => {
            Err(fault).with_context(|| format!("the database {} refuses", settings.database))
        }
    }
}

fn services(
    intake: Intake,
    sink: Arc<dyn Sink>,
    lane: &Lane,
    registry: Registry,
    metrics: HttpMetrics,
) -> Services {
    let registry = Arc::new(registry);
    let watch = lane.watch();
    Services {
        intake,
        ready: Arc::new(Ready(sink)),
        metrics_text: Arc::new(move || crate::metrics::encode(&registry)),
        lanes: Arc::new(move || crate::metrics::lanes_json(&[watch.status()])),
        metrics,
    }
}

/// Whether the database answers.
struct Ready(Arc<dyn Sink>);

#[async_trait]
impl Readiness for Ready {
    async fn ready(&self) -> Result<(), Fault> {
        self.0.ping().await
    }
}
