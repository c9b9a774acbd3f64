//! A database in memory, with all that can go wrong on the way to it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::{Instant, sleep};
use windrow_core::bookkeeping::{OwnAnswer, OwnSession, OwnStatement, OwnTable, TableChange};
use windrow_core::{
    Bookkeeping, Database, Executor, Fault, FaultClass, Level, Op, Profile, Purpose, Report, Sink,
    Standing, TableName, Tally, Unit, Verdict, Write,
};

use super::tables::{Tables, Taboo, is_foreign, numbers};
use super::world::Random;

static PROFILE: Profile = Profile {
    name: "Fake",
    transactional: true,
    flights: 1,
    batch_rows: 100,
    limitations: &[],
};

/// The table whose writes share nothing.
const APART: &str = "apart";

/// What goes wrong with a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// Rolled back for no fault of its own.
    Conflict,
    /// The same, as a final verdict.
    Overload,
    /// Somebody else holds a lock.
    Lock,
    /// The connection is lost before the commit.
    Lost,
    /// It is lost within the commit, which took place.
    UnknownDone,
    /// It is lost within the commit, which did not take place.
    UnknownUndone,
    /// It is lost within the commit, which takes place a while later.
    UnknownLater,
}

const WRONGS: [Wrong; 7] = [
    Wrong::Conflict,
    Wrong::Overload,
    Wrong::Lock,
    Wrong::Lost,
    Wrong::UnknownDone,
    Wrong::UnknownUndone,
    Wrong::UnknownLater,
];

/// What goes wrong.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    /// Of a hundred units, so many meet something.
    pub(crate) often: u64,
    /// What the next units that write meet, whatever chance says.
    pub(crate) next: Vec<Wrong>,
    /// Why nobody can connect.
    pub(crate) away: Option<Fault>,
    /// The most milliseconds that anything takes.
    pub(crate) slow: u64,
    pub(crate) taboo: Taboo,
}

/// The database's state.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) tables: Tables,
    /// An earlier state that a crash goes back to.
    pub(crate) synced: Option<(Instant, Tables)>,
    /// Counts crashes: connections of before are broken.
    pub(crate) boot: u64,
    pub(crate) faults: Faults,
    pub(crate) random: Random,
    /// Transactions that nobody waits for any more, and when they are committed.
    later: Vec<(Instant, Vec<Write>)>,
    /// Tables that were met.
    met: BTreeSet<TableName>,
    /// Foreign writes of each unit that was tried.
    pub(crate) tried: Vec<usize>,
    pub(crate) connects: usize,
    /// How often Windrow's tables were made ready.
    pub(crate) prepared: usize,
}

/// The database. Cheap to clone: all clones are one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fake(Arc<Mutex<State>>);

impl Fake {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    async fn rest(&self) {
        let rest = {
            let mut state = self.state();
            let slow = state.faults.slow;
            state.random.below(slow + 1)
        };
        sleep(Duration::from_millis(rest)).await;
        self.state().come_due();
    }
}

impl State {
    /// Commits what nobody waits for any more.
    fn come_due(&mut self) {
        let now = Instant::now();
        let (due, later) = self.later.drain(..).partition(|(at, _)| *at <= now);
        self.later = later;
        for (_, writes) in Vec::from_iter::<Vec<_>>(due) {
            self.tables.transact(&writes, &self.faults.taboo).ok();
        }
    }

    /// Loses what was committed lately, and all connections.
    pub(crate) fn crash(&mut self) {
        if let Some((_, tables)) = self.synced.take() {
            self.tables = tables;
        }
        self.later.clear();
        self.met.clear();
        self.boot += 1;
    }

    fn wrong(&mut self, reads: bool) -> Option<Wrong> {
        if !self.faults.next.is_empty() && !reads {
            return Some(self.faults.next.remove(0));
        }
        let hit = self.random.below(100) < self.faults.often;
        let which = self.random.below(WRONGS.len() as u64) as usize;
        hit.then(|| WRONGS[which])
    }

    /// Who shares a transaction that must not.
    fn check_company(&self, writes: &[Write]) {
        let foreign = || writes.iter().filter(|write| is_foreign(write));
        let alone = |write: &Write| {
            &*write.shape.table.table == APART || !self.met.contains(&write.shape.table)
        };
        let entries: BTreeSet<_> = foreign().map(|write| numbers(write).0).collect();
        assert!(
            entries.len() <= 1 || !foreign().any(alone),
            "in company: {writes:?}"
        );
    }
}

#[async_trait]
impl Sink for Fake {
    fn profile(&self) -> &Profile {
        &PROFILE
    }

    async fn connect(&self, purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        assert_eq!(purpose, Purpose::Batches);
        self.rest().await;
        let mut state = self.state();
        state.connects += 1;
        match state.faults.away.clone() {
            Some(fault) => Err(fault),
            None => Ok(Box::new(Connection {
                database: self.clone(),
                boot: state.boot,
                broken: false,
            })),
        }
    }
}

#[async_trait]
impl Database for Fake {
    async fn ping(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn bookkeeping(&self) -> Option<Arc<dyn Bookkeeping>> {
        Some(Arc::new(self.clone()))
    }

    fn standings(&self) -> Vec<Standing> {
        let mut standings = Vec::new();
        for table in &self.state().met {
            let level = match &*table.table {
                APART => Level::Apart,
                _ => Level::Grouped,
            };
            Standing::add(&mut standings, table, Op::Insert, level, None);
        }
        standings
    }
}

#[async_trait]
impl Bookkeeping for Fake {
    async fn open(&self) -> Result<Box<dyn OwnSession>, Fault> {
        self.rest().await;
        self.state().prepared += 1;
        Ok(Box::new(Ready))
    }
}

/// Finds all tables of Windrow's own as they should be.
struct Ready;

#[async_trait]
impl OwnSession for Ready {
    async fn columns(&mut self, _: OwnTable) -> Result<Vec<String>, Fault> {
        Ok(["rejected_at", "entry"].map(str::to_owned).into())
    }

    async fn change(&mut self, statement: OwnStatement<'_>) -> Result<TableChange, Fault> {
        panic!("{statement:?}")
    }

    async fn run(&mut self, statement: OwnStatement<'_>) -> Result<OwnAnswer, Fault> {
        panic!("{statement:?}")
    }
}

struct Connection {
    database: Fake,
    boot: u64,
    broken: bool,
}

#[async_trait]
impl Executor for Connection {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        assert!(!self.broken, "used although it is broken");
        let [unit] = units else {
            panic!("{} units", units.len())
        };
        let mut under_way = UnderWay {
            database: self.database.clone(),
            writes: unit.writes().to_vec(),
            boot: self.boot,
        };
        self.database.rest().await;
        let verdict = self.commit(unit);
        under_way.writes.clear();
        self.database.rest().await;
        Report {
            verdicts: vec![verdict],
            tally: Tally::default(),
            usable: !self.broken,
        }
    }
}

impl Connection {
    fn commit(&mut self, unit: &Unit) -> Verdict {
        let mut state = self.database.state();
        let state = &mut *state;
        let writes = unit.writes();
        let reads = writes.iter().any(|write| write.shape.op == Op::Get);
        if state.boot != self.boot {
            self.broken = true;
            return Verdict::RolledBack(Fault::unavailable("the server has gone"));
        }
        if !reads {
            state.check_company(writes);
            let foreign = writes.iter().filter(|write| is_foreign(write));
            state.tried.push(foreign.clone().count());
            state
                .met
                .extend(foreign.map(|write| write.shape.table.clone()));
        }
        let taboo = state.faults.taboo.clone();
        let unknown = Verdict::Final(Err(Fault::unknown("nobody knows").into()));
        let Some(wrong) = state.wrong(reads) else {
            return match state.tables.transact(writes, &taboo) {
                Err(failed) if failed.fault.class == FaultClass::Conflict => {
                    Verdict::RolledBack(failed.fault)
                }
                outcome => Verdict::Final(outcome),
            };
        };
        self.broken = !matches!(wrong, Wrong::Conflict | Wrong::Overload | Wrong::Lock);
        let conflict = || Fault::new(FaultClass::Conflict, "40P01", "in the way");
        match wrong {
            Wrong::Conflict => Verdict::RolledBack(conflict()),
            Wrong::Overload => Verdict::Final(Err(conflict().into())),
            Wrong::Lock => Verdict::WaitsForLock(conflict()),
            Wrong::Lost => Verdict::RolledBack(Fault::unavailable("lost")),
            Wrong::UnknownUndone => unknown,
            Wrong::UnknownDone => match state.tables.transact(writes, &taboo) {
                Ok(_) => unknown,
                refused => Verdict::Final(refused),
            },
            Wrong::UnknownLater => {
                let delay = Duration::from_millis(state.random.below(300));
                state.later.push((Instant::now() + delay, writes.to_vec()));
                unknown
            }
        }
    }
}

/// A transaction that is not committed yet. Where nobody waits for it any more, it may be all the
/// same.
struct UnderWay {
    database: Fake,
    writes: Vec<Write>,
    boot: u64,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if self.writes.is_empty() || std::thread::panicking() {
            return;
        }
        let mut state = self.database.state();
        if state.boot == self.boot && state.random.below(2) == 0 {
            let delay = Duration::from_millis(state.random.below(300));
            let writes = std::mem::take(&mut self.writes);
            state.later.push((Instant::now() + delay, writes));
        }
    }
}
