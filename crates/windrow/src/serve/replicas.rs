//! Connects the replicas to the other parts: the primary, which notes its writes, and the tasks
//! that apply them to the replicas.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::{error, info};
use windrow_core::{Database, Fault, FaultClass};
use windrow_database::Options;
use windrow_replicas::{KeyLog, Primary, Replica, ReplicaMetrics, ReplicaState, ReplicaStatus};

use super::databases::open_replica;
use super::opened::topic;
use crate::settings::{Place, ReplicaSettings};

/// The longest time that clients wait for replicas once the server is ending.
const LAST_WAIT: Duration = Duration::from_secs(5);

/// Replicas with the tasks that write to them.
pub(super) struct RunningReplicas {
    primary: Arc<Primary>,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl RunningReplicas {
    /// Opens the configured replicas with their logs, and begins to apply these. `None` if none is
    /// configured.
    pub(super) async fn asked_for(
        settings: Option<&ReplicaSettings>,
        database: &Arc<dyn Database>,
        options: &Options,
        registry: &mut Registry,
    ) -> anyhow::Result<Option<Self>> {
        let Some(settings) = settings else {
            return Ok(None);
        };
        let metrics = ReplicaMetrics::register(registry);
        let mut replicas = Vec::new();
        for one in &settings.replicas {
            let name = &one.name;
            let opened = open_replica(one, options).await?;
            let log = log(settings, name).await;
            let log =
                log.with_context(|| format!("the log of the replica {name} cannot be opened"))?;
            let ends = (opened, one.names.clone());
            let replica = Replica::new(name, ends, log, metrics.replica(name)).await;
            replicas.push(Arc::new(replica.context("a replica cannot be opened")?));
            info!(replica = name, database = one.database, "replica");
        }
        let primary = Arc::new(Primary::new(
            database,
            replicas,
            settings.wait_for,
            &metrics,
        )?);
        let stop = CancellationToken::new();
        let (applied, ended) = (Arc::clone(&primary), stop.clone());
        let task = tokio::spawn(async move {
            if let Err(fault) = applied.run(ended).await {
                error!(%fault, "replicas get nothing before the next start");
            }
        });
        Ok(Some(Self {
            primary,
            stop,
            task,
        }))
    }

    /// Returns the primary as a database that notes its writes for the replicas.
    pub(super) fn database(&self) -> Arc<dyn Database> {
        Arc::clone(&self.primary) as Arc<dyn Database>
    }

    /// Returns the primary, for writes that do not go through [`RunningReplicas::database`].
    pub(super) fn primary(&self) -> Arc<Primary> {
        Arc::clone(&self.primary)
    }

    /// Returns a handle that watches the replicas.
    pub(super) fn watch(&self) -> ReplicaWatch {
        ReplicaWatch(Arc::clone(&self.primary))
    }

    /// Limits the time that clients wait for replicas, because the server is ending.
    pub(super) fn ending(&self) {
        let primary = Arc::clone(&self.primary);
        tokio::spawn(async move {
            tokio::time::sleep(LAST_WAIT).await;
            primary.end_waiting();
        });
    }

    /// Ends applying. The next start applies the rest.
    pub(super) async fn stop(self) {
        self.stop.cancel();
        if let Err(error) = self.task.await {
            error!(%error, "writing to replicas did not end well");
        }
    }
}

/// Opens the log of a replica.
async fn log(settings: &ReplicaSettings, name: &str) -> anyhow::Result<KeyLog> {
    match &settings.place {
        Place::Directory(directory) => {
            Ok(KeyLog::in_files(&directory.join(name), settings.max_bytes).await?)
        }
        Place::Topic { url, allowed } => {
            let options = windrow_spool::Options {
                gateway: Some(rand::random()),
                ..windrow_spool::Options::default()
            };
            let place = (url.reveal(), &*format!("-{name}"));
            let opened = topic("replicas", place, Some(allowed), options).await?;
            Ok(KeyLog::shared(opened.spool, &opened.options)?)
        }
    }
}

/// The state of the replicas. Cheap to clone.
#[derive(Clone)]
pub(super) struct ReplicaWatch(Arc<Primary>);

impl ReplicaWatch {
    /// Checks that writes are noted for the replicas, which get them now or later.
    ///
    /// # Errors
    /// A log accepts nothing more before the next start, or is unreachable, so that nothing can be
    /// written.
    pub(super) fn healthy(&self) -> Result<(), Fault> {
        for replica in self.0.status() {
            let (what, why) = match (&replica.failed, &replica.log_away) {
                (Some(why), _) => ("takes nothing more before the next start", why),
                (None, Some(why)) => ("takes nothing at this moment", why),
                (None, None) => continue,
            };
            let message = format!("the log of the replica {} {what}: {why}", replica.name);
            return Err(Fault::new(FaultClass::Unavailable, "58030", message));
        }
        Ok(())
    }

    /// Returns the state of each replica, as `GET /v1/lanes` shows it.
    pub(super) fn json(&self) -> Value {
        let untold = self.0.untold();
        let replicas = self.0.status();
        replicas
            .iter()
            .map(|one| replica_json(one, untold))
            .collect()
    }
}

/// Returns the state of one replica. `untold` is the number of SQL clients' statements whose rows
/// reach no replica.
fn replica_json(replica: &ReplicaStatus, untold: u64) -> Value {
    json!({
        "name": &*replica.name,
        "database": replica.database,
        "state": replica.state.as_str(),
        "why": replica.state.why(),
        "state_seconds": replica.for_now.as_secs_f64(),
        "away_seconds": matches!(replica.state, ReplicaState::Waiting(_))
            .then(|| replica.for_now.as_secs_f64()),
        "copying": replica.copying,
        "applied": replica.applied,
        "lag": {
            "entries": replica.entries,
            "rows": replica.rows,
            "seconds": replica.age.as_secs_f64(),
        },
        "others_behind": replica.others,
        "rejected": replica.rejected,
        "untold": untold,
        "failed": replica.failed.as_deref(),
        "log_away": replica.log_away.as_deref(),
    })
}
