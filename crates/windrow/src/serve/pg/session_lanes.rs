//! The lanes of PostgreSQL's clients: one for each database, role and set of session settings.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use windrow_core::{Fault, FaultClass, LanePorts, Name, Sink, Standing};
use windrow_database::Options;
use windrow_pg::{DatabaseConfig, Identity, IdleConnections, LaneKey, Lanes};
use windrow_pgwire::target::Credential;
use windrow_pgwire::wire::Wire;
use windrow_postgres::StatementSink;

use super::replicated::Replicated;
use super::slotted::SlottedSink;
use crate::serve::client_lanes::{ClientLanes, LaneDatabase, LaneKind, StatementSource};

/// The time limit of a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// The lanes of SQL sessions.
pub(super) type SessionLanes = ClientLanes<PgLaneKind>;

/// The databases that lanes write to.
pub(super) struct PgLaneKind {
    pub(super) databases: Vec<DatabaseConfig>,
    pub(super) options: Options,
    /// The primary that notes rows for replicas.
    pub(super) replicated: Option<Replicated>,
}

/// The lanes of one database, which can give up idle connections.
struct Resting {
    session_lanes: Weak<SessionLanes>,
    database: Name,
}

impl IdleConnections for Resting {
    fn rest(&self) {
        if let Some(lanes) = self.session_lanes.upgrade() {
            lanes.rest(|key| key.identity.database == self.database);
        }
    }
}

/// Makes lanes known to the connection slots of their databases, for as long as the result is kept.
pub(super) fn register(lanes: &Arc<SessionLanes>) -> Vec<Arc<dyn IdleConnections>> {
    let databases = lanes.kind.databases.iter();
    let holder = |database: &DatabaseConfig| {
        let slots = database.connection_slots.as_ref()?;
        let holder: Arc<dyn IdleConnections> = Arc::new(Resting {
            session_lanes: Arc::downgrade(lanes),
            database: Name::from(&*database.name),
        });
        slots.register(Arc::downgrade(&holder));
        Some(holder)
    };
    databases.filter_map(holder).collect()
}

#[async_trait]
impl LaneKind for PgLaneKind {
    type Key = LaneKey;

    fn name(&self, key: &LaneKey) -> String {
        format!("{}/{}", key.identity.database, key.identity.role)
    }

    fn limit(&self) -> &'static str {
        "pg.max_lanes: sets of database, role and session settings"
    }

    fn open(&self, key: &LaneKey) -> Result<LaneDatabase, Fault> {
        let database = &key.identity.database;
        let known = self.configured(database)?;
        let target = known
            .target
            .for_session(&key.identity.role, &key.credential);
        let startup = key.settings.startup.iter();
        let statements = StatementSink::new(
            target,
            startup
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
            key.settings
                .set
                .iter()
                .map(|(_, sql)| sql.to_string())
                .collect(),
            &self.options,
        );
        let sink: Arc<dyn Sink> = match &self.replicated {
            Some(replicated) => replicated.follow(database, statements.clone()),
            None => statements.clone(),
        };
        let sink = match &known.connection_slots {
            Some(connection_slots) => Arc::new(SlottedSink {
                sink,
                connection_slots: Arc::clone(connection_slots),
            }),
            None => sink,
        };
        Ok(LaneDatabase { sink, statements })
    }

    fn database(&self, key: &LaneKey) -> Name {
        key.identity.database.clone()
    }

    async fn ping(&self, key: &LaneKey) -> Result<(), Fault> {
        let known = self.configured(&key.identity.database)?;
        match Wire::connect(&known.target, &[], PING_TIMEOUT).await {
            Ok(wire) => wire.terminate().await,
            Err(fault) if fault.class == FaultClass::Unavailable => return Err(fault),
            // A server that refuses this login can be reached.
            Err(_) => {}
        }
        Ok(())
    }
}

impl PgLaneKind {
    /// Returns a database's configuration.
    fn configured(&self, database: &Name) -> Result<&DatabaseConfig, Fault> {
        let known = self.databases.iter().find(|d| *d.name == **database);
        known.ok_or_else(|| {
            Fault::invalid(format!(
                "the database \"{database}\" is not configured (pg.databases)"
            ))
        })
    }
}

impl StatementSource for StatementSink {
    fn rest(&self) {
        self.rest();
    }

    fn standings(&self) -> Vec<Standing> {
        self.standings()
    }
}

#[async_trait]
impl Lanes for SessionLanes {
    async fn open(&self, key: &LaneKey) -> Result<LanePorts, Fault> {
        self.ports(key)
    }

    fn revoke(&self, identity: &Identity, credential: &Credential) {
        self.end(|key| key.identity == *identity && key.credential == *credential);
    }
}
