//! The lanes of SQL clients: one for each user and set of session settings, started when the first
//! session asks for it and ended some time after the last one has left.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use windrow_core::{
    Budget, Described, Describer, Fault, FaultClass, Intake, LaneCounts, LanePorts, LaneStatus,
    Limits, Name, ParsedStatement, Sink, Standing, Statement,
};
use windrow_lanes::{Lane, LaneMetrics};

use super::lane_view::LaneView;
use super::probe::{PROBE_INTERVAL, every};
use crate::lanes::LANE_CAPACITY;

/// The time for which an unused lane is kept, because its connections, its plans and its experience
/// with batches are valuable.
const KEEP: Duration = Duration::from_secs(60);

/// The interval of the search for unused lanes.
const LOOK: Duration = Duration::from_secs(10);

/// A protocol's kind of lanes.
#[async_trait]
pub(super) trait LaneKind: Send + Sync + 'static {
    /// The identity and the settings that sessions of a lane share.
    type Key: Clone + Eq + Hash + Send + Sync;

    /// Returns the beginning of the lane's name.
    fn name(&self, key: &Self::Key) -> String;

    /// Returns the words for the limit of lanes, with its setting.
    fn limit(&self) -> &'static str;

    /// Returns the database of a lane.
    ///
    /// # Errors
    /// There is none for this key.
    fn open(&self, key: &Self::Key) -> Result<LaneDatabase, Fault>;

    /// Returns the name of a lane's database. One ping counts for all of its lanes.
    fn database(&self, key: &Self::Key) -> Name;

    /// Checks within a few seconds that a lane's database answers.
    ///
    /// # Errors
    /// The database cannot be reached.
    async fn ping(&self, key: &Self::Key) -> Result<(), Fault>;
}

/// The database of a lane.
pub(super) struct LaneDatabase {
    /// The sink that executes batches.
    pub(super) sink: Arc<dyn Sink>,
    /// The same database, for questions about statements.
    pub(super) statements: Arc<dyn StatementSource>,
}

/// The database of a lane, as far as it describes statements.
pub(super) trait StatementSource: Describer {
    /// Closes the connection for describing, unless it is in use.
    fn rest(&self);

    /// Returns the standings of each table, by the statements that clients have sent.
    fn standings(&self) -> Vec<Standing>;
}

/// The sizes of lanes, and their metrics.
pub(super) struct LaneSizes {
    pub(super) limits: Limits,
    pub(super) budget: Budget,
    pub(super) metrics: LaneMetrics,
    /// The most lanes at once.
    pub(super) most: usize,
}

/// All lanes of the clients of one protocol.
pub(super) struct ClientLanes<K: LaneKind> {
    pub(super) kind: K,
    sizes: LaneSizes,
    open: Mutex<Open<K::Key>>,
    /// Lanes that are ending.
    ending: TaskTracker,
}

struct Open<Key> {
    lanes: HashMap<Key, Entry>,
    names: BTreeSet<Name>,
    /// The counts of lanes that have ended.
    ended: LaneCounts,
}

struct Entry {
    name: Name,
    intake: Intake,
    /// The describer. Only sessions share it, so its count of references shows if there are any.
    describer: Arc<dyn Describer>,
    lane: Lane,
    /// The counts of its name when it began: an older lane of the same name may still be ending.
    before: LaneCounts,
    statements: Arc<dyn StatementSource>,
    /// The time since which no session has used it.
    unused_since: Option<Instant>,
}

impl<K: LaneKind> ClientLanes<K> {
    /// Makes an empty set of lanes.
    pub(super) fn new(kind: K, sizes: LaneSizes) -> Self {
        Self {
            kind,
            sizes,
            open: Mutex::new(Open {
                lanes: HashMap::new(),
                names: BTreeSet::new(),
                ended: LaneCounts::default(),
            }),
            ending: TaskTracker::new(),
        }
    }

    /// Returns the ports of the lane of this key, which is started if there is none.
    ///
    /// # Errors
    /// There is no database for the key, or there are too many lanes.
    pub(super) fn ports(&self, key: &K::Key) -> Result<LanePorts, Fault> {
        let mut open = self.open.lock();
        if let Some(entry) = open.lanes.get_mut(key) {
            return Ok(entry.ports());
        }
        if open.lanes.len() >= self.sizes.most {
            return Err(Fault::new(
                FaultClass::Overloaded,
                "53400",
                format!(
                    "there are {} lanes already ({})",
                    self.sizes.most,
                    self.kind.limit()
                ),
            ));
        }
        let name = free_name(&open.names, &self.kind.name(key));
        let mut entry = self.start(name.clone(), key)?;
        let ports = entry.ports();
        open.names.insert(name);
        open.lanes.insert(key.clone(), entry);
        Ok(ports)
    }

    /// Closes unused connections of some lanes.
    pub(super) fn rest(&self, is: impl Fn(&K::Key) -> bool) {
        let open = self.open.lock();
        let lanes = open.lanes.iter().filter(|(key, _)| is(key));
        for (_, entry) in lanes {
            entry.intake.rest();
            entry.statements.rest();
        }
    }

    /// Ends the lanes of logins that are not admitted any more.
    pub(super) fn end(&self, is: impl Fn(&K::Key) -> bool) {
        for entry in self.open.lock().take_out(is) {
            self.ending.spawn(entry.lane.shutdown());
        }
    }

    /// Returns the state of each lane, and its key.
    pub(super) fn by_key(&self) -> Vec<(K::Key, LaneStatus)> {
        let open = self.open.lock();
        let lanes = open.lanes.iter();
        let mut lanes: Vec<_> = lanes
            .map(|(key, entry)| (key.clone(), entry.lane.status()))
            .collect();
        lanes.sort_by(|(_, a), (_, b)| a.name.cmp(&b.name));
        lanes
    }

    /// Returns the counts of all lanes since the start. They never decrease.
    pub(super) fn counts(&self) -> LaneCounts {
        let open = self.open.lock();
        let mut sum = open.ended;
        open.lanes.values().for_each(|entry| entry.add_to(&mut sum));
        sum
    }

    /// Ends lanes that were unused for a while, and tells the others if their database answers a
    /// ping. Runs until its future is dropped.
    pub(super) async fn tend(&self) {
        let tidy = || async {
            for entry in self.unused(Instant::now()) {
                self.ending.spawn(entry.lane.shutdown());
            }
        };
        tokio::join!(every(LOOK, tidy), every(PROBE_INTERVAL, || self.probe()));
    }

    /// Pings the databases of idle lanes, each once. A lane that writes notices an unreachable
    /// database itself.
    async fn probe(&self) {
        let mut answers: HashMap<Name, Result<(), Fault>> = HashMap::new();
        for (key, intake) in self.idle() {
            let database = self.kind.database(&key);
            let answer = match answers.get(&database) {
                Some(answer) => answer.clone(),
                None => self.kind.ping(&key).await,
            };
            intake.probed(answer.clone());
            answers.insert(database, answer);
        }
    }

    /// Returns the lanes that have been idle since the last probe.
    fn idle(&self) -> Vec<(K::Key, Intake)> {
        let is_idle = |entry: &Entry| {
            let idle = entry.lane.status().idle;
            idle.is_some_and(|idle| idle >= PROBE_INTERVAL)
        };
        let open = self.open.lock();
        let idle = open.lanes.iter().filter(|(_, entry)| is_idle(entry));
        idle.map(|(key, entry)| (key.clone(), entry.intake.clone()))
            .collect()
    }

    /// Finishes what was accepted and ends all lanes. Sessions must have ended before.
    pub(super) async fn shutdown(&self) {
        self.end(|_| true);
        self.ending.close();
        self.ending.wait().await;
    }

    /// Removes and returns the lanes that were unused for long enough.
    fn unused(&self, now: Instant) -> Vec<Entry> {
        let mut open = self.open.lock();
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

    fn start(&self, name: Name, key: &K::Key) -> Result<Entry, Fault> {
        let LaneDatabase { sink, statements } = self.kind.open(key)?;
        let (intake, arrivals) = Intake::channel(self.sizes.budget.clone(), LANE_CAPACITY);
        let limits = self.sizes.limits.clone();
        let metrics = self.sizes.metrics.clone();
        let lane = Lane::start(sink, limits, arrivals, metrics, name.clone());
        Ok(Entry {
            name,
            intake,
            describer: Arc::new(Shared(Arc::clone(&statements))),
            before: counts_of(&lane),
            lane,
            statements,
            unused_since: None,
        })
    }
}

impl<K: LaneKind> LaneView for ClientLanes<K> {
    fn status(&self) -> Vec<LaneStatus> {
        let lanes = self.by_key().into_iter();
        lanes.map(|(_, status)| status).collect()
    }

    fn standings(&self) -> Vec<Standing> {
        let mut all: Vec<Standing> = Vec::new();
        let open = self.open.lock();
        let lanes = open.lanes.values();
        for standing in lanes.flat_map(|entry| entry.statements.standings()) {
            if !all.contains(&standing) {
                all.push(standing);
            }
        }
        all.sort_by_cached_key(|standing| (standing.table.to_string(), standing.ops.clone()));
        all
    }
}

impl<Key: Clone + Eq + Hash> Open<Key> {
    fn take_out(&mut self, is: impl Fn(&Key) -> bool) -> Vec<Entry> {
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

/// A describer that the sessions of a lane share.
struct Shared(Arc<dyn StatementSource>);

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

/// Returns a name that no lane has: the base, with a number if other settings have that name.
fn free_name(taken: &BTreeSet<Name>, base: &str) -> Name {
    let numbered = (2_usize..).map(|n| format!("{base}#{n}"));
    let mut names = std::iter::once(base.to_owned())
        .chain(numbered)
        .map(Name::from);
    // Of one more name than are taken, one is free.
    let free = names
        .by_ref()
        .take(taken.len() + 1)
        .find(|n| !taken.contains(n));
    free.unwrap_or_else(|| base.into())
}
