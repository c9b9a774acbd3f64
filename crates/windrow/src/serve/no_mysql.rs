//! A build without MySQL has no MySQL frontend: none can be configured, so none ever exists.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::lane_view::LaneView;
use super::reload::TakeUsers;
use super::shared::Shared;
use crate::settings::{MysqlSettings, Settings};

/// No value of this type exists.
pub(super) enum MysqlServer {}

impl MysqlServer {
    pub(super) async fn bind(
        mysql: &MysqlSettings,
        _: &Settings,
        _: &mut Shared<'_>,
    ) -> anyhow::Result<Self> {
        match *mysql {}
    }

    pub(super) fn lanes(&self) -> Arc<dyn LaneView> {
        match *self {}
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
