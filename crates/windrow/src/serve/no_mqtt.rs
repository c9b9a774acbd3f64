//! A build without MQTT.

use std::convert::Infallible;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;
use windrow_core::{Database, Intake};

use super::shared::Shared;
use crate::settings::MqttSettings;

/// No value of this type exists.
pub(super) struct MqttClient(Infallible);

impl MqttClient {
    pub(super) fn new(
        mqtt: &MqttSettings,
        _: &Arc<dyn Database>,
        _: &Intake,
        _: &mut Shared<'_>,
    ) -> anyhow::Result<Self> {
        match *mqtt {}
    }

    pub(super) fn tables(_: &dyn Database) -> anyhow::Result<()> {
        anyhow::bail!("this program was built without MQTT (the feature mqtt)")
    }

    pub(super) async fn run(self, _: CancellationToken) {
        match self.0 {}
    }
}
