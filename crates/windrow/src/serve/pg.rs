//! Connects the PostgreSQL frontend, its lanes and its console to the other parts.

mod connection_limit;
mod replicated;
mod session_lanes;
mod slotted;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use tokio_util::sync::CancellationToken;
use windrow_core::{Name, Spooling};
use windrow_http::Ack;
use windrow_pg::{
    ConnectionSlots, Console, DatabaseConfig, Identity, IdleConnections, Pg, PgMetrics, Services,
    SqlKeys, SqlSpool,
};
use windrow_pgwire::Target;

pub(super) use windrow_pg::advice;

use self::replicated::Replicated;
use self::session_lanes::{PgLaneKind, SessionLanes};
use super::client_lanes::LaneSizes;
use super::lane_view::LaneView;
use super::listen::cannot_listen;
use super::reload::{Reload, TakeRoles};
use super::shared::Shared;
use crate::settings::{PgSettings, Settings};

/// A PostgreSQL frontend that listens, and its lanes.
pub(super) struct PgServer {
    pg: Pg,
    session_lanes: Arc<SessionLanes>,
    /// The lanes, as the connection slots know them.
    _resting: Vec<Arc<dyn IdleConnections>>,
}

impl PgServer {
    /// Opens the listening sockets.
    pub(super) async fn bind(
        pg: &PgSettings,
        settings: &Settings,
        shared: &mut Shared<'_>,
    ) -> anyhow::Result<Self> {
        let mut config = pg.config.clone();
        for at in 0..config.databases.len() {
            let Some(database) = config.databases.get(at) else {
                continue;
            };
            let most = match pg.max_server_connections {
                Some(most) => {
                    connection_limit::check(database, most, config.connect_timeout).await;
                    most
                }
                None => {
                    connection_limit::of(database, &config.databases, config.connect_timeout).await
                }
            };
            let connection_slots =
                ConnectionSlots::shared(&*database.name, most, config.server_wait);
            if let Some(database) = config.databases.get_mut(at) {
                database.connection_slots = Some(connection_slots);
            }
        }
        let identity = own_identity(settings, &config.databases);
        let replicated = shared.primary.clone().zip(identity.as_ref());
        if let Some((_, identity)) = &replicated {
            let databases = config.databases.iter_mut();
            for database in databases.filter(|one| *one.name == *identity.database) {
                database.followed = true;
            }
        }
        let kind = PgLaneKind {
            databases: config.databases.clone(),
            options: settings.sink.clone(),
            replicated: replicated
                .map(|(primary, identity)| Replicated::new(primary, &identity.database)),
        };
        let sizes = LaneSizes {
            limits: settings.limits.clone(),
            budget: shared.budget.clone(),
            metrics: shared.lane_metrics.clone(),
            most: pg.max_lanes,
        };
        let session_lanes = Arc::new(SessionLanes::new(kind, sizes));
        let spool = shared.spool.clone().zip(identity.clone());
        let keys = shared.keys.clone().zip(identity);
        let services = Services {
            spool: spool.map(|(spooling, identity)| sql_spool(spooling, identity, settings)),
            keys: keys.map(|(keys, identity)| SqlKeys { keys, identity }),
            lanes: session_lanes.clone(),
            tracer: shared.tracer.clone(),
            budget: shared.budget.clone(),
            metrics: PgMetrics::register(shared.registry),
            console: console(&session_lanes, shared.reload.clone(), shared.stop.clone()),
        };
        let listen = config.listen;
        let pg = Pg::bind(config, services).await;
        let pg =
            pg.map_err(|error| cannot_listen(&error, "the PostgreSQL frontend", listen, "--pg"))?;
        Ok(Self {
            pg,
            _resting: session_lanes::register(&session_lanes),
            session_lanes,
        })
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.pg.local_addr()
    }

    /// Returns the frontend's lanes.
    pub(super) fn lanes(&self) -> Arc<dyn LaneView> {
        self.session_lanes.clone()
    }

    /// Returns a function that replaces the roles.
    pub(super) fn take_roles(&self) -> TakeRoles {
        let keeper = self.pg.role_keeper();
        Box::new(move |settings| {
            let replaced = keeper.replace(roles_of(settings)?);
            replaced.map_err(anyhow::Error::msg)
        })
    }

    /// Serves until `stop` is cancelled, then finishes what was accepted.
    pub(super) async fn run(self, stop: CancellationToken) {
        tokio::select! {
            () = self.pg.run(stop) => {}
            () = self.session_lanes.tend() => {}
        }
        self.session_lanes.shutdown().await;
    }
}

/// Returns the database and the role of row writes, as clients name them. `None` if clients cannot
/// name that database.
fn own_identity(settings: &Settings, databases: &[DatabaseConfig]) -> Option<Identity> {
    let target = Target::parse(settings.url.reveal()).ok()?;
    let is = |database: &&DatabaseConfig| {
        let theirs = &database.target;
        theirs.is_at(&target) && theirs.database() == target.database()
    };
    let database = databases.iter().find(is)?;
    Some(Identity {
        database: Name::from(&*database.name),
        role: Name::from(target.role()),
    })
}

/// Returns the spool for the clients of the database that it is applied to.
fn sql_spool(spooling: Arc<dyn Spooling>, identity: Identity, settings: &Settings) -> SqlSpool {
    SqlSpool {
        spooling,
        identity,
        by_default: settings.ack == Ack::Spool,
        read_your_writes: settings
            .http
            .as_ref()
            .is_none_or(|http| http.read_your_writes),
    }
}

fn console(session_lanes: &Arc<SessionLanes>, reload: Reload, stop: CancellationToken) -> Console {
    let (session_lanes, counted) = (session_lanes.clone(), session_lanes.clone());
    Console {
        counts: Arc::new(move || counted.counts()),
        lanes: Arc::new(move || {
            let lanes = session_lanes.by_key().into_iter();
            lanes.map(|(key, status)| (key.identity, status)).collect()
        }),
        reload: Arc::new(move || {
            let read = reload.but_roles().and_then(roles_of);
            read.map_err(|error| format!("{error:#}"))
        }),
        shutdown: stop,
    }
}

fn roles_of(settings: Settings) -> anyhow::Result<windrow_pg::Roles> {
    let pg = settings.pg.context("pg.listen is not set any more")?;
    Ok(pg.config.roles)
}
