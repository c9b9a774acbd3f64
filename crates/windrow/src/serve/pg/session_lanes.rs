//! The lanes of PostgreSQL's clients: one for each database, role and set of session settings.

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use windrow_core::{Fault, FaultClass, LaneCounts, LanePorts, LaneStatus, Name, Sink, Standing};
use windrow_database::Options;
use windrow_pg::{DatabaseConfig, Identity, IdleConnections, LaneKey, Lanes};
use windrow_pgwire::target::Credential;
use windrow_pgwire::wire::Wire;
use windrow_postgres::StatementSink;

use super::replicated::Replicated;
use super::slotted::SlottedSink;
use crate::serve::client_lanes::{ClientLanes, LaneDatabase, LaneKind, LaneSizes, StatementSource};
use crate::serve::lane_view::LaneView;

/// The time limit of a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// All lanes of SQL sessions.
pub(crate) struct SessionLanes {
    lanes: ClientLanes<PgLaneKind>,
    /// Registers the lanes with the connection slots, for as long as the lanes exist.
    _resting: Vec<Arc<dyn IdleConnections>>,
}

/// The databases that lanes write to.
struct PgLaneKind {
    databases: Vec<DatabaseConfig>,
    options: Options,
    /// The primary that notes rows for replicas.
    replicated: Option<Replicated>,
}

/// The lanes of one database, which can give up idle connections.
struct Resting {
    session_lanes: Weak<SessionLanes>,
    database: Name,
}

impl IdleConnections for Resting {
    fn rest(&self) {
        if let Some(session_lanes) = self.session_lanes.upgrade() {
            let lanes = &session_lanes.lanes;
            lanes.rest(|key| key.identity.database == self.database);
        }
    }
}

impl SessionLanes {
    /// Makes an empty set of lanes.
    pub(crate) fn new(
        databases: Vec<DatabaseConfig>,
        options: Options,
        sizes: LaneSizes,
        replicated: Option<Replicated>,
    ) -> Arc<Self> {
        Arc::new_cyclic(|session_lanes: &Weak<Self>| {
            let resting = databases.iter().map(|database| {
                let holder: Arc<dyn IdleConnections> = Arc::new(Resting {
                    session_lanes: Weak::clone(session_lanes),
                    database: Name::from(&*database.name),
                });
                if let Some(connection_slots) = &database.connection_slots {
                    connection_slots.register(Arc::downgrade(&holder));
                }
                holder
            });
            let resting = resting.collect();
            let kind = PgLaneKind {
                databases,
                options,
                replicated,
            };
            Self {
                lanes: ClientLanes::new(kind, sizes),
                _resting: resting,
            }
        })
    }

    /// Returns the state of each lane, and its identity.
    pub(crate) fn identified(&self) -> Vec<(Identity, LaneStatus)> {
        let lanes = self.lanes.status().into_iter();
        lanes.map(|(key, status)| (key.identity, status)).collect()
    }

    /// Returns the counts of all lanes since the start. They never decrease.
    pub(crate) fn counts(&self) -> LaneCounts {
        self.lanes.counts()
    }

    /// Ends unused lanes and probes the others' databases. Runs until its future is dropped.
    pub(crate) async fn tend(&self) {
        self.lanes.tend().await;
    }

    /// Finishes what was accepted and ends all lanes. Sessions must have ended before.
    pub(crate) async fn shutdown(&self) {
        self.lanes.shutdown().await;
    }
}

impl LaneView for SessionLanes {
    fn status(&self) -> Vec<LaneStatus> {
        let lanes = self.lanes.status().into_iter();
        lanes.map(|(_, status)| status).collect()
    }

    fn standings(&self) -> Vec<Standing> {
        self.lanes.standings()
    }
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
        self.lanes.ports(key)
    }

    fn revoke(&self, identity: &Identity, credential: &Credential) {
        let lanes = &self.lanes;
        lanes.end(|key| key.identity == *identity && key.credential == *credential);
    }
}
