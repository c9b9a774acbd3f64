//! Opens the databases of a gateway by its settings. [`super::Server::bind`] and `check-config` use
//! the same functions, so that both refuse the same settings. Connects to nothing.

use std::sync::Arc;

use anyhow::Context;
use windrow_core::Database;
use windrow_database::Options;

use super::idempotency::RunningKeys;
use super::mqtt::MqttClient;
use super::spool::books;
use crate::databases;
use crate::settings::{OneReplica, Settings};

/// Opens the database that rows are written to.
///
/// # Errors
/// The URL is invalid, or the database cannot do what the settings require.
pub(super) async fn open(settings: &Settings) -> anyhow::Result<Arc<dyn Database>> {
    let opened = databases::open(settings.url.reveal(), &settings.sink).await;
    let shown = &settings.database;
    let opened =
        opened.with_context(|| format!("database.url: the database {shown} cannot be opened"))?;
    RunningKeys::tables(&*opened, settings)?;
    if settings.mqtt.is_some() {
        MqttClient::tables(&*opened)?;
    }
    if let Some(spool) = &settings.spool {
        books(&*opened, &spool.place)?;
    }
    Ok(opened)
}

/// Opens the database of a replica. `options` are those of the database that rows are written to.
///
/// # Errors
/// The URL is invalid.
pub(super) async fn open_replica(
    one: &OneReplica,
    options: &Options,
) -> anyhow::Result<Arc<dyn Database>> {
    let options = Options {
        given_numbers: true,
        ..options.clone()
    };
    let opened = databases::open(one.url.reveal(), &options).await;
    opened.with_context(|| {
        let (name, shown) = (&one.name, &one.database);
        format!("the replica {name} ({shown}) cannot be opened")
    })
}

/// Returns all errors for which a start with these settings would fail before it connects to a
/// database. Creates no file.
pub async fn refusals(settings: &Settings) -> Vec<anyhow::Error> {
    let mut all = Vec::new();
    match databases::file(settings.url.reveal()) {
        // Opening an embedded database would create it. It can do everything that settings require.
        Ok(Some(_)) => {}
        _ => all.extend(open(settings).await.err()),
    }
    for one in settings.replicas.iter().flat_map(|all| &all.replicas) {
        if !matches!(databases::file(one.url.reveal()), Ok(Some(_))) {
            all.extend(open_replica(one, &settings.sink).await.err());
        }
    }
    all
}
