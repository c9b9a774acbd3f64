//! The MySQL frontend, wired.

use std::net::SocketAddr;

use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;
use windrow_mysql_frontend::{MysqlFrontend, MysqlMetrics};

use super::listen::cannot_listen;
use super::reload::TakeUsers;
use crate::settings::MysqlSettings;

/// A MySQL frontend that listens.
pub(super) struct MysqlServer(MysqlFrontend);

impl MysqlServer {
    /// Opens the listening sockets.
    pub(super) async fn bind(
        settings: &MysqlSettings,
        registry: &mut Registry,
    ) -> anyhow::Result<Self> {
        let config = settings.config.clone();
        let listen = config.listen;
        let bound = MysqlFrontend::bind(config, MysqlMetrics::register(registry)).await;
        let of_listening = |error| cannot_listen(&error, "the MySQL frontend", listen, "--mysql");
        bound.map(Self).map_err(of_listening)
    }

    pub(super) fn addr(&self) -> SocketAddr {
        self.0.local_addr()
    }

    /// Takes over other users.
    pub(super) fn take_users(&self) -> TakeUsers {
        let keeper = self.0.user_keeper();
        Box::new(move |settings| {
            if let Some(mysql) = &settings.mysql {
                keeper.replace(mysql.config.users.clone());
            }
        })
    }

    /// Serves until `stop` is cancelled, then finishes what was begun.
    pub(super) async fn run(self, stop: CancellationToken) {
        self.0.run(stop).await;
    }
}
