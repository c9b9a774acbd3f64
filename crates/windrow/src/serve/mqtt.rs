//! Connects the MQTT frontend to the other parts.

use std::sync::Arc;

use anyhow::Context;
use tokio_util::sync::CancellationToken;
use windrow_core::{Bookkeeping, Database, Intake};
use windrow_mqtt::{MqttMetrics, MqttSubscriber, Services};

use super::shared::Shared;
use crate::settings::MqttSettings;

/// A client of an MQTT broker.
pub(super) struct MqttClient(MqttSubscriber);

impl MqttClient {
    /// Prepares the client, which connects when it runs.
    ///
    /// # Errors
    /// The database cannot keep dead letters.
    pub(super) fn new(
        mqtt: &MqttSettings,
        database: &Arc<dyn Database>,
        intake: &Intake,
        shared: &mut Shared<'_>,
    ) -> anyhow::Result<Self> {
        let tables = Self::tables(&**database)?;
        let services = Services {
            intake: intake.clone(),
            spool: shared.spool.clone(),
            tables,
            metrics: MqttMetrics::register(shared.registry),
        };
        Ok(Self(MqttSubscriber::new(&mqtt.config, services)))
    }

    /// Returns the tables of dead letters.
    ///
    /// # Errors
    /// The database cannot keep them.
    pub(super) fn tables(database: &dyn Database) -> anyhow::Result<Arc<dyn Bookkeeping>> {
        database.bookkeeping().with_context(|| {
            format!(
                "mqtt.url is set, but {} cannot keep messages that are no rows as dead letters",
                database.profile().name
            )
        })
    }

    /// Writes messages until `stop` is cancelled, then leaves the others to the broker.
    pub(super) async fn run(self, stop: CancellationToken) {
        self.0.run(stop).await;
    }
}
