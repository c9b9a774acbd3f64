//! A build without PostgreSQL has no PostgreSQL frontend: none can be configured, so none ever
//! exists.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
pub(super) use windrow_core::advice;

use super::lane_view::LaneView;
use super::reload::TakeRoles;
use super::shared::Shared;
use crate::settings::{PgSettings, Settings};

/// No value of this type exists.
pub(super) enum PgServer {}

impl PgServer {
    pub(super) async fn bind(
        pg: &PgSettings,
        _: &Settings,
        _: &mut Shared<'_>,
    ) -> anyhow::Result<Self> {
        match *pg {}
    }

    pub(super) fn addr(&self) -> SocketAddr {
        match *self {}
    }

    pub(super) fn lanes(&self) -> Arc<dyn LaneView> {
        match *self {}
    }

    pub(super) fn take_roles(&self) -> TakeRoles {
        match *self {}
    }

    pub(super) async fn run(self, _: CancellationToken) {
        match self {}
    }
}
