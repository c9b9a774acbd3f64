//! Connects the MySQL frontend to the other parts.

mod connection_limit;
mod session_lanes;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windrow_http::Ack;
use windrow_mysql_frontend::{MysqlFrontend, MysqlMetrics, MysqlSpool, Services};

use self::session_lanes::MysqlLaneKind;
use super::client_lanes::{ClientLanes, LaneSizes};
use super::lane_view::LaneView;
use super::listen::cannot_listen;
use super::reload::TakeUsers;
use super::shared::Shared;
use crate::settings::{MysqlSettings, Settings};

/// A MySQL frontend that listens, and its lanes.
pub(super) struct MysqlServer {
    frontend: MysqlFrontend,
    session_lanes: Arc<ClientLanes<MysqlLaneKind>>,
}

impl MysqlServer {
    /// Opens the listening sockets.
    pub(super) async fn bind(
        mysql: &MysqlSettings,
        settings: &Settings,
        shared: &mut Shared<'_>,
    ) -> anyhow::Result<Self> {
        let mut config = mysql.config.clone();
        if mysql.finds_most {
            let limit = config.connect_timeout;
            config.max_server_connections = connection_limit::find(&config.target, limit).await;
        }
        let listen = config.listen;
        let sizes = LaneSizes {
            limits: settings.limits.clone(),
            budget: shared.budget.clone(),
            metrics: shared.lane_metrics.clone(),
            most: mysql.max_lanes,
        };
        let kind = MysqlLaneKind {
            target: config.target.clone(),
            server: Arc::clone(shared.database),
            options: settings.sink.clone(),
        };
        let session_lanes = Arc::new(ClientLanes::new(kind, sizes));
        let spool = shared.spool.clone();
        let services = Services {
            lanes: session_lanes.clone(),
            spool: spool.map(|spooling| MysqlSpool {
                spooling,
                by_default: settings.ack == Ack::Spool,
            }),
            keys: shared.keys.clone(),
            tracer: shared.tracer.clone(),
            metrics: MysqlMetrics::register(shared.registry),
        };
        let bound = MysqlFrontend::bind(config, services).await;
        let frontend = bound
            .map_err(|error| cannot_listen(&error, "the MySQL frontend", listen, "--mysql"))?;
        Ok(Self {
            frontend,
            session_lanes,
        })
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.frontend.local_addr()
    }

    /// Returns the frontend's lanes.
    pub(super) fn lanes(&self) -> Arc<dyn LaneView> {
        self.session_lanes.clone()
    }

    /// Returns a function that replaces the users.
    pub(super) fn take_users(&self) -> TakeUsers {
        let keeper = self.frontend.user_keeper();
        Box::new(move |settings| {
            if let Some(mysql) = &settings.mysql {
                keeper.replace(mysql.config.users.clone());
            }
        })
    }

    /// Serves until `stop` is cancelled, then finishes what has begun.
    pub(super) async fn run(self, stop: CancellationToken) {
        tokio::select! {
            () = self.frontend.run(stop) => {}
            () = self.session_lanes.tend() => {}
        }
        self.session_lanes.shutdown().await;
    }
}
