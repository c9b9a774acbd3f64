//! A build without MySQL has no MySQL frontend: none can be set up, so none is ever here.

use std::net::SocketAddr;

use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use super::reload::TakeUsers;
use crate::settings::MysqlSettings;

/// Nobody can make one.
pub(super) enum MysqlServer {}

impl MysqlServer {
    pub(super) async fn bind(settings: &MysqlSettings, _: &mut Registry) -> anyhow::Result<Self> {
        match *settings {}
    }

    pub(super) fn addr(&self) -> SocketAddr {
        match *self {}
    }

    pub(super) fn take_users(&self) -> TakeUsers {
        match *self {}
    }

    pub(super) async fn run(self, _: CancellationToken) {
        match self {}
    }
}
