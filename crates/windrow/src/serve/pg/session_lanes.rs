//! The lanes of SQL sessions: one for each database, role and set of session settings, started when
//! the first session asks for it and ended some time after the last one has left.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use windrow_core::{
    Budget, Described, Describer, Fault, FaultClass, Intake, Limits, Name, ParsedStatement, Sink,
    Standing, Statement,
};
use windrow_database::Options;
use windrow_lanes::{Lane, LaneMetrics, LaneStatus};
use windrow_pg::{
    DatabaseConfig, Identity, IdleConnections, LaneCounts, LaneKey, LanePorts, Lanes,
};
use windrow_pgwire::target::Credential;
use windrow_postgres::StatementSink;

use super::replicated::Replicated;
use super::slotted::SlottedSink;
use crate::lanes::LANE_CAPACITY;

/// The time for which a lane is kept that no session uses: its connections, plans and what it has
/// found of
/// batches are worth that.
const KEEP: Duration = Duration::from_secs(60);

/// The interval of the search for unused lanes.
const LOOK: Duration = Duration::from_secs(10);

/// All lanes of SQL sessions.
pub(crate) struct SessionLanes {
    databases: Vec<DatabaseConfig>,
    options: Options,
    limits: Limits,
    budget: Budget,
    metrics: LaneMetrics,
    most: usize,
    /// The primary that notes rows for replicas.
    replicated: Option<Replicated>,
    open: Mutex<Open>,
    /// Lanes that are ending.
    ending: TaskTracker,
    /// Known to the connection_slots as long as these lanes are there.
    _resting: Vec<Arc<dyn IdleConnections>>,
}

#[derive(Default)]
struct Open {
    lanes: HashMap<LaneKey, Entry>,
    names: BTreeSet<Name>,
    /// Counts of the lanes that were taken out.
    ended: LaneCounts,
}

struct Entry {
    name: Name,
    intake: Intake,
    /// Shared with the doors alone, so that its count tells whether there are any.
    describer: Arc<dyn Describer>,
    lane: Lane,
    /// The counts of its name when it began: a lane of the same name may just be ending.
    before: LaneCounts,
    /// The lane's connection for describing.
    sink: Arc<StatementSink>,
    /// Since when no session holds its ports.
    unused_since: Option<Instant>,
}

/// The lanes of one database, as those who may give connections up.
struct Resting {
    session_lanes: Weak<SessionLanes>,
    database: Name,
}

impl IdleConnections for Resting {
    fn rest(&self) {
        if let Some(session_lanes) = self.session_lanes.upgrade() {
            session_lanes.rest(&self.database);
        }
    }
}

impl SessionLanes {
    /// None yet. `most`: how many there may be at once (`pg.max_lanes`).
    pub(crate) fn new(
        databases: Vec<DatabaseConfig>,
        options: Options,
        limits: Limits,
        budget: Budget,
        metrics: LaneMetrics,
        most: usize,
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
            Self {
                _resting: resting.collect(),
                databases,
                options,
                limits,
                budget,
                metrics,
                most,
                replicated,
                open: Mutex::default(),
                ending: TaskTracker::new(),
            }
        })
    }

    /// Lets connections of a database go that nothing is under way on.
    fn rest(&self, database: &str) {
        for (key, entry) in &self.open().lanes {
            if *key.identity.database == *database {
                entry.intake.rest();
                entry.sink.rest();
            }
        }
    }

    /// Returns the state of each lane, and its identity.
    pub(crate) fn status(&self) -> Vec<(Identity, LaneStatus)> {
        let open = self.open();
        let mut lanes: Vec<_> = open
            .lanes
            .iter()
            .map(|(key, entry)| (key.identity.clone(), entry.lane.status()))
            .collect();
        lanes.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        lanes
    }

    /// Returns the counts of all lanes since the start. They never fall.
    pub(crate) fn counts(&self) -> LaneCounts {
        let open = self.open();
        let mut sum = open.ended;
        open.lanes.values().for_each(|entry| entry.add_to(&mut sum));
        sum
    }

    /// Returns the standings of each table, by the statements that clients have sent. If lanes
    /// differ, all of their standings are returned.
    pub(crate) fn standings(&self) -> Vec<Standing> {
        let mut all: Vec<Standing> = Vec::new();
        for standing in self.open().lanes.values().flat_map(|e| e.sink.standings()) {
            if !all.contains(&standing) {
                all.push(standing);
            }
        }
        all.sort_by_cached_key(|standing| (standing.table.to_string(), standing.ops.clone()));
        all
    }

    /// Ends lanes that nobody has used for a while. Runs until its future is dropped.
    pub(crate) async fn tidy(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            for entry in self.unused(Instant::now()) {
                self.ending.spawn(entry.lane.shutdown());
            }
        }
    }

    /// Finishes what was accepted and ends all lanes. Sessions must have ended before.
    pub(crate) async fn shutdown(&self) {
        let lanes = std::mem::take(&mut self.open().lanes);
        for entry in lanes.into_values() {
            self.ending.spawn(entry.lane.shutdown());
        }
        self.ending.close();
        self.ending.wait().await;
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out the lanes whose time has come.
    fn unused(&self, now: Instant) -> Vec<Entry> {
        let mut open = self.open();
        let mut gone = Vec::new();
        for (key, entry) in &mut open.lanes {
            if entry.is_used() {
                entry.unused_since = None;
            } else if now.duration_since(*entry.unused_since.get_or_insert(now)) >= KEEP {
                gone.push(key.clone());
            }
        }
        open.take_out(|key| gone.contains(key))
    }

    fn start(&self, name: Name, key: &LaneKey) -> Result<Entry, Fault> {
        let database = &key.identity.database;
        let known = self.databases.iter().find(|d| *d.name == **database);
        let known = known.ok_or_else(|| {
            Fault::invalid(format!(
                "the database \"{database}\" is not configured (pg.databases)"
            ))
        })?;
        let target = known
            .target
            .for_session(&key.identity.role, &key.credential);
        let startup = key.settings.startup.iter();
        let sink = StatementSink::new(
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
        let (intake, arrivals) = Intake::channel(self.budget.clone(), LANE_CAPACITY);
        let lane_sink: Arc<dyn Sink> = match &self.replicated {
            Some(replicated) => replicated.follow(database, sink.clone()),
            None => sink.clone(),
        };
        let lane_sink = match &known.connection_slots {
            Some(connection_slots) => Arc::new(SlottedSink {
                sink: lane_sink,
                connection_slots: Arc::clone(connection_slots),
            }),
            None => lane_sink,
        };
        let lane = Lane::start(
            lane_sink,
            self.limits.clone(),
            arrivals,
            self.metrics.clone(),
            name.clone(),
        );
        Ok(Entry {
            name,
            intake,
            describer: Arc::new(Shared(Arc::clone(&sink))),
            before: counts_of(&lane),
            lane,
            sink,
            unused_since: None,
        })
    }
}

#[async_trait]
impl Lanes for SessionLanes {
    async fn open(&self, key: &LaneKey) -> Result<LanePorts, Fault> {
        let mut open = self.open();
        if let Some(entry) = open.lanes.get_mut(key) {
            return Ok(entry.ports());
        }
        if open.lanes.len() >= self.most {
            return Err(Fault::new(
                FaultClass::Overloaded,
                "53400",
                format!(
                    "there are {} lanes already (pg.max_lanes): sets of database, role and session settings",
                    self.most
                ),
            ));
        }
        let name = free_name(&open.names, key);
        let mut entry = self.start(name.clone(), key)?;
        let ports = entry.ports();
        open.names.insert(name);
        open.lanes.insert(key.clone(), entry);
        Ok(ports)
    }

    fn revoke(&self, identity: &Identity, credential: &Credential) {
        let is = |key: &LaneKey| key.identity == *identity && key.credential == *credential;
        let entries = self.open().take_out(is);
        for entry in entries {
            self.ending.spawn(entry.lane.shutdown());
        }
    }
}

impl Open {
    fn take_out(&mut self, is: impl Fn(&LaneKey) -> bool) -> Vec<Entry> {
        let gone = self.lanes.extract_if(|key, _| is(key));
        let entries: Vec<_> = gone.map(|(_, entry)| entry).collect();
        for entry in &entries {
            self.names.remove(&entry.name);
            entry.add_to(&mut self.ended);
        }
        entries
    }
}

impl Entry {
    fn ports(&mut self) -> LanePorts {
        self.unused_since = None;
        LanePorts {
            intake: self.intake.clone(),
            describer: self.describer.clone(),
        }
    }

    fn add_to(&self, sum: &mut LaneCounts) {
        let now = counts_of(&self.lane);
        sum.writes += now.writes.saturating_sub(self.before.writes);
        sum.batches += now.batches.saturating_sub(self.before.batches);
    }

    fn is_used(&self) -> bool {
        Arc::strong_count(&self.describer) > 1 || self.lane.status().idle.is_none()
    }
}

fn counts_of(lane: &Lane) -> LaneCounts {
    let LaneStatus {
        writes, batches, ..
    } = lane.status();
    LaneCounts { writes, batches }
}

/// A sink as the sessions of a lane share it.
struct Shared(Arc<StatementSink>);

#[async_trait]
impl Describer for Shared {
    async fn describe(&self, parsed: &Arc<ParsedStatement>) -> Result<Described, Fault> {
        self.0.describe(parsed).await
    }

    async fn holds(&self, statement: &Statement) -> Result<bool, Fault> {
        self.0.holds(statement).await
    }

    async fn is_current(&self, statement: &Statement) -> Result<bool, Fault> {
        self.0.is_current(statement).await
    }
}

/// `database/role`, with a number where other settings have that name.
fn free_name(taken: &BTreeSet<Name>, key: &LaneKey) -> Name {
    let base = format!("{}/{}", key.identity.database, key.identity.role);
    let numbered = (2_usize..).map(|n| format!("{base}#{n}"));
    let mut names = std::iter::once(base.clone())
        .chain(numbered)
        .map(Name::from);
    // One more name than are taken is enough to find a free one.
    let free = names
        .by_ref()
        .take(taken.len() + 1)
        .find(|n| !taken.contains(n));
    free.unwrap_or_else(|| base.into())
}
