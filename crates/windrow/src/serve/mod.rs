//! The server: connects a sink, its lane and the frontends, and runs them until it is stopped.

#[cfg(any(feature = "mysql", feature = "postgres"))]
#[cfg_attr(
    not(feature = "postgres"),
    expect(dead_code, reason = "some is used by the PostgreSQL frontend alone")
)]
mod client_lanes;
mod databases;
mod drain_only;
mod idempotency;
mod lane_view;
mod listen;
#[cfg(feature = "mqtt")]
mod mqtt;
#[cfg(not(feature = "mqtt"))]
#[path = "no_mqtt.rs"]
mod mqtt;
#[cfg(feature = "mysql")]
mod mysql;
#[cfg(not(feature = "mysql"))]
#[path = "no_mysql.rs"]
mod mysql;
mod opened;
#[cfg(feature = "postgres")]
mod pg;
#[cfg(not(feature = "postgres"))]
#[path = "no_pg.rs"]
mod pg;
mod probe;
mod ready;
mod reload;
mod replicas;
mod shared;
mod spool;
mod vitals;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};
use windrow_arango_api::ArangoApi;
use windrow_core::{Budget, Database, Fault, FaultClass, Intake, LaneStatus, Promise};
use windrow_http::extension::Extension;
use windrow_http::{Http, HttpConfig, HttpMetrics, Readiness, Services};
use windrow_influx_api::InfluxApi;
use windrow_lanes::{Lane, LaneMetrics, LaneWatch};
use windrow_status::{Sources, StatusPage};

use self::idempotency::RunningKeys;
use self::lane_view::LaneView;
use self::listen::cannot_listen;
use self::mqtt::MqttClient;
use self::mysql::MysqlServer;
use self::pg::PgServer;
use self::ready::Ready;
use self::replicas::{ReplicaWatch, RunningReplicas};
use self::shared::Shared;
use self::spool::{Around, RunningSpool, SpoolWatch};
use self::vitals::Vitals;
use crate::lanes::{LANE_CAPACITY, ReadLane};
use crate::settings::Settings;
use crate::traces::RunningTraces;

pub use self::databases::refusals;
pub use self::drain_only::{DrainOnly, Drained};
pub use self::opened::topic_to_read;
pub use self::reload::{Reload, Reread};

/// A server that listens.
pub struct Server {
    http: Option<Http>,
    pg: Option<PgServer>,
    mysql: Option<MysqlServer>,
    mqtt: Option<MqttClient>,
    lane: Lane,
    reads: Option<ReadLane>,
    /// The tasks that ping the database and measure, which end when these handles are dropped.
    probe: [AbortOnDropHandle<()>; 2],
    spool: Option<RunningSpool>,
    keys: Option<RunningKeys>,
    replicas: Option<RunningReplicas>,
    traces: Option<RunningTraces>,
    /// Cancelled to end the server from inside: by the console.
    asked_to_end: CancellationToken,
    stop_wait: Duration,
    database: &'static str,
    reload: Reload,
}

/// The result of a server's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finished {
    /// The number of entries in the spool that are not in the database; `None` without a spool.
    pub left: Option<u64>,
}

impl Server {
    /// Opens the database and the listening sockets. The database may be unreachable; clients get
    /// errors until it answers. `reread` reads the settings again, for those that may change while
    /// the server runs.
    ///
    /// # Errors
    /// The URL is invalid, the database refuses this role permanently, or an address cannot be
    /// listened on.
    pub async fn bind(settings: &Settings, reread: Arc<Reread>) -> anyhow::Result<Self> {
        let sink = databases::open(settings).await?;
        check(&*sink, settings).await?;
        let database = sink.profile().name;
        let mut registry = Registry::default();
        let gives_back = sink.profile().limitation(Promise::Returned).is_none();
        let documents = ArangoApi::new(gives_back);
        let endpoints = windrow_status::ENDPOINTS
            .iter()
            .chain(documents.endpoints())
            .chain(InfluxApi.endpoints());
        let http_metrics = HttpMetrics::register(&mut registry, endpoints);
        let lane_metrics = LaneMetrics::register(&mut registry);
        let budget = Budget::new(settings.memory);
        crate::metrics::register(&mut registry, &budget);
        let traces = RunningTraces::asked_for(settings.traces.as_ref(), &mut registry)?;
        let tracer = traces.as_ref().map(RunningTraces::tracer);
        let asked = settings.replicas.as_ref();
        let running =
            RunningReplicas::asked_for(asked, &sink, &settings.sink, &mut registry).await?;
        let sink = running.as_ref().map_or(sink, RunningReplicas::database);
        let around = Around {
            database: &sink,
            budget: &budget,
            registry: &mut registry,
        };
        let spool = RunningSpool::asked_for(settings.spool.as_ref(), around).await?;
        let (intake, arrivals) = Intake::channel(budget.clone(), LANE_CAPACITY);
        let keys = RunningKeys::start(&*sink, &intake, settings)?;
        let asked_to_end = CancellationToken::new();
        let reload = Reload::new(settings, reread);
        let mut shared = Shared {
            database: &sink,
            budget: &budget,
            lane_metrics: &lane_metrics,
            registry: &mut registry,
            reload: reload.clone(),
            stop: asked_to_end.clone(),
            spool: spool.as_ref().map(RunningSpool::spooling),
            keys: keys.as_ref().map(RunningKeys::keys),
            primary: running.as_ref().map(RunningReplicas::primary),
            tracer: tracer.clone(),
        };
        let pg = match &settings.pg {
            Some(pg) => Some(PgServer::bind(pg, settings, &mut shared).await?),
            None => None,
        };
        let mysql = match &settings.mysql {
            Some(mysql) => Some(MysqlServer::bind(mysql, settings, &mut shared).await?),
            None => None,
        };
        let mqtt = settings.mqtt.as_ref();
        let mqtt = mqtt.map(|mqtt| MqttClient::new(mqtt, &sink, &intake, &mut shared));
        let mqtt = mqtt.transpose()?;
        let failed = lane_metrics.clone();
        let reads = ReadLane::start(&*sink, &settings.limits, &budget, &lane_metrics);
        let lane = Lane::start(
            sink.clone(),
            settings.limits.clone(),
            arrivals,
            lane_metrics,
            "default".into(),
        );
        let probe = probe::start(Arc::clone(&sink), lane.watch(), intake.clone());
        let watch = spool.as_ref().map(RunningSpool::watch);
        let books = match &spool {
            Some(spool) => spool.books(),
            None => sink.bookkeeping(),
        };
        let replicas = running.as_ref().map(RunningReplicas::watch);
        let vitals = Vitals::register(settings, &mut registry);
        let registry = Arc::new(registry);
        let owner = Arc::clone(&sink);
        let values = settings.http.as_ref().is_some_and(|http| http.show_values);
        let beside = (watch.clone(), replicas.clone(), failed, values);
        let own = [Some(lane.watch()), reads.as_ref().map(ReadLane::watch)];
        let of_pg = pg.as_ref().map(PgServer::lanes);
        let clients = of_pg
            .into_iter()
            .chain(mysql.as_ref().map(MysqlServer::lanes));
        let lanes = lanes(own, &sink, clients.collect(), beside);
        let metrics_text: Arc<dyn Fn() -> String + Send + Sync> =
            Arc::new(move || crate::metrics::encode(&registry));
        let page = StatusPage::new(Sources {
            lanes: Arc::clone(&lanes),
            metrics_text: Arc::clone(&metrics_text),
            advice: pg::advice,
            version: concat!("Windrow ", env!("CARGO_PKG_VERSION")),
            database,
        });
        let entrance = (lane.watch(), intake.clone());
        let inventory = sink.inventory();
        let ready = Ready::new(sink, entrance, (watch, replicas), settings.ack);
        let ready: Arc<dyn Readiness> = Arc::new(ready);
        let probe = [probe, probe::measure(vitals, Arc::clone(&ready), books)];
        let services = Services {
            intake,
            reads: reads.as_ref().map(|reads| reads.intake().clone()),
            spool: spool.as_ref().map(RunningSpool::spooling),
            keys: keys.as_ref().map(RunningKeys::keys),
            tracer,
            ack: settings.ack,
            inventory,
            owns: Arc::new(move |table| owner.owns(table)),
            lanes,
            ready,
            metrics_text,
            metrics: http_metrics,
        };
        let http = match &settings.http {
            Some(config) => {
                let extensions: Vec<Arc<dyn Extension>> =
                    vec![Arc::new(page), Arc::new(documents), Arc::new(InfluxApi)];
                Some(bind_http(config, services, extensions).await?)
            }
            None => None,
        };
        reload.listening(
            http.as_ref().map(Http::admission),
            pg.as_ref().map(PgServer::take_roles),
            mysql.as_ref().map(MysqlServer::take_users),
        );
        Ok(Self {
            reload,
            http,
            pg,
            mysql,
            mqtt,
            lane,
            reads,
            probe,
            spool,
            keys,
            replicas: running,
            traces,
            asked_to_end,
            stop_wait: settings.stop_wait,
            database,
        })
    }

    /// Returns the address of HTTP, unless it is switched off.
    pub fn http_addr(&self) -> Option<SocketAddr> {
        self.http.as_ref().map(Http::local_addr)
    }

    /// Returns the address of the PostgreSQL frontend, if it is configured.
    pub fn pg_addr(&self) -> Option<SocketAddr> {
        self.pg.as_ref().map(PgServer::addr)
    }

    /// Returns the address of the MySQL frontend, if it is configured.
    pub fn mysql_addr(&self) -> Option<SocketAddr> {
        self.mysql.as_ref().map(MysqlServer::addr)
    }

    /// Returns a handle that reads the configuration again.
    pub fn reload(&self) -> Reload {
        self.reload.clone()
    }

    /// Returns the database's name, as its makers write it.
    pub fn database(&self) -> &'static str {
        self.database
    }

    /// Describes the content of the spool when it was opened; `None` without one.
    pub async fn spool(&self) -> Option<String> {
        let watch = self.spool.as_ref().map(RunningSpool::watch)?;
        Some(watch.greeting().await)
    }

    /// Serves until `stop` is cancelled or the console ends the server. Then finishes what was
    /// accepted and ends, within [`Settings::stop_wait`] in any case. `None` if that time was not
    /// enough, so that not all that was accepted is answered. Dropping the future ends the server
    /// at once.
    pub async fn run(self, stop: CancellationToken) -> Option<Finished> {
        let (end, wait) = (stop.child_token(), self.stop_wait);
        let overtime = async {
            end.cancelled().await;
            tokio::time::sleep(wait).await;
        };
        tokio::select! {
            finished = self.serve(end.clone()) => Some(finished),
            () = overtime => None,
        }
    }

    async fn serve(self, end: CancellationToken) -> Finished {
        let (http_end, pg_end) = (end.clone(), end.clone());
        let (mysql_end, mqtt_end) = (end.clone(), end.clone());
        let http = async move {
            match self.http {
                Some(http) => http.run(http_end).await,
                None => http_end.cancelled().await,
            }
        };
        let pg = async move {
            match self.pg {
                Some(pg) => pg.run(pg_end).await,
                None => pg_end.cancelled().await,
            }
        };
        let mysql = async move {
            match self.mysql {
                Some(mysql) => mysql.run(mysql_end).await,
                None => mysql_end.cancelled().await,
            }
        };
        let mqtt = async move {
            match self.mqtt {
                Some(mqtt) => mqtt.run(mqtt_end).await,
                None => mqtt_end.cancelled().await,
            }
        };
        let waits = self.spool.as_ref().map(RunningSpool::ending);
        let asked = async {
            tokio::select! {
                () = self.asked_to_end.cancelled() => end.cancel(),
                () = end.cancelled() => {}
            }
            // Clients may wait for the spool longer than the end may take.
            if let Some(waits) = waits {
                waits.cancel();
            }
            if let Some(replicas) = &self.replicas {
                replicas.ending();
            }
        };
        tokio::join!(http, pg, mysql, mqtt, asked);
        info!("requests are finished; closing the database");
        // No more writes arrive, so everything that the spool was given is made durable now.
        let left = match self.spool {
            Some(spool) => Some(spool.stop().await),
            None => None,
        };
        if let Some(keys) = self.keys {
            keys.stop().await;
        }
        drop(self.probe);
        if let Some(reads) = self.reads {
            reads.shutdown().await;
        }
        self.lane.shutdown().await;
        if let Some(replicas) = self.replicas {
            replicas.stop().await;
        }
        if let Some(traces) = self.traces {
            traces.stop().await;
        }
        Finished { left }
    }
}

/// Checks the database at the start. A wrong password does not become right by waiting, so it is
/// better reported now than at the first write.
async fn check(sink: &dyn Database, settings: &Settings) -> anyhow::Result<()> {
    match sink.takes_writes().await {
        Ok(()) => Ok(()),
        Err(fault) if is_read_only(&fault) => {
            warn!(database = settings.database, %fault, "until this is changed, writes fail and /readyz says no");
            Ok(())
        }
        Err(fault) if fault.class == FaultClass::Unavailable => {
            warn!(database = settings.database, %fault, "the database is away; until it is there, writes that it has to commit wait and fail");
            Ok(())
        }
        Err(fault) => {
            Err(fault).with_context(|| format!("the database {} refuses", settings.database))
        }
    }
}

/// Returns true if the database is read-only by its settings, which may change while Windrow runs.
fn is_read_only(fault: &Fault) -> bool {
    fault.code == "25006"
}

async fn bind_http(
    config: &HttpConfig,
    services: Services,
    extensions: Vec<Arc<dyn Extension>>,
) -> anyhow::Result<Http> {
    let bound = Http::bind(config.clone(), services, extensions).await;
    bound.map_err(|error| cannot_listen(&error, "HTTP", config.listen, "--http"))
}

/// Returns the state of all lanes, HTTP first, with the standings of each table, the spool, the
/// replicas, and the failures. `values` is true to include the database's own messages.
fn lanes(
    own: [Option<LaneWatch>; 2],
    sink: &Arc<dyn Database>,
    clients: Vec<Arc<dyn LaneView>>,
    (spool, replicas, metrics, values): (
        Option<SpoolWatch>,
        Option<ReplicaWatch>,
        LaneMetrics,
        bool,
    ),
) -> Arc<dyn Fn() -> serde_json::Value + Send + Sync> {
    let sink = Arc::clone(sink);
    Arc::new(move || {
        let others = clients.iter().flat_map(|lanes| lanes.status());
        let own = own.iter().flatten().map(LaneWatch::status);
        let lanes: Vec<LaneStatus> = own.chain(others).collect();
        let mut tables = sink.standings();
        let others = clients.iter().flat_map(|lanes| lanes.standings());
        let new: Vec<_> = others.filter(|one| !tables.contains(one)).collect();
        tables.extend(new);
        let failures = crate::metrics::failures_json(&metrics.failures(), values);
        let beside = [
            ("spool", spool.as_ref().map(SpoolWatch::json)),
            ("replicas", replicas.as_ref().map(ReplicaWatch::json)),
            ("failures", Some(failures)),
        ];
        crate::metrics::lanes_json(&lanes, &tables, beside)
    })
}
