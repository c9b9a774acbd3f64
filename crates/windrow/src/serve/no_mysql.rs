//! A build without MySQL has no MySQL frontend: none can be set up, so none is ever here.

use std::net::SocketAddr;

use tokio_util::sync::CancellationToken;
use windrow_core::Standing;
use windrow_lanes::LaneStatus;

use super::reload::TakeUsers;
use super::shared::Shared;
use crate::settings::{MysqlSettings, Settings};

/// Nobody can make one.
pub(super) enum MysqlServer {}

/// The frontend's lanes.
#[derive(Clone)]
pub(super) enum MysqlLanes {}

impl MysqlServer {
    pub(super) async fn bind(
        mysql: &MysqlSettings,
        _: &Settings,
        _: &mut Shared<'_>,
    ) -> anyhow::Result<Self> {
        match *mysql {}
    }

    pub(super) fn lanes(&self) -> MysqlLanes {
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

impl MysqlLanes {
    pub(super) fn status(&self) -> Vec<LaneStatus> {
        match *self {}
    }

    pub(super) fn standings(&self) -> Vec<Standing> {
        match *self {}
    }
}
