//! A database of one table, of numbers: a sink, its bulk form, its marks and its lane in one.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use tokio::task::JoinHandle;
use windrow_core::{
    Budget, Bulk, Claim, Contents, Executor, Fault, FaultClass, Field, Filtered, Intake,
    LoadColumn, LoadFault, LoadPlan, Loaded, Loader, Mark, Marks, Means, Outcomes, Profile,
    Purpose, Sink, Span, TableName, Unit, UnitFault, UnitOutcome, Value, WriteDone,
};

/// What becomes of a call, by its number; `true` in the flag: it takes place although it fails.
pub(super) type Script = fn(usize, &mut bool) -> Option<LoadFault>;

pub(super) struct Database {
    profile: Profile,
    script: Option<Script>,
    filters: bool,
    state: Mutex<State>,
    /// Itself, for what is handed out.
    me: std::sync::Weak<Database>,
}

#[derive(Default)]
struct State {
    rows: Vec<u64>,
    marks: BTreeMap<(String, u64), u64>,
    calls: usize,
    by_lane: usize,
    /// The number of rows that the lane writes before the database is away.
    lane_rows: Option<usize>,
    /// Rows that a killed run has sent through its lane, and that come after the next write.
    late: Vec<u64>,
}

impl State {
    fn come_late(&mut self) {
        let load = self.marks.keys().map(|(load, _)| load.clone());
        let Some(load) = { load }.find(|load| !load.contains('/')) else {
            return;
        };
        for id in std::mem::take(&mut self.late) {
            let key = (load.clone(), id - 1);
            if let Entry::Vacant(mark) = self.marks.entry(key) {
                mark.insert(id);
                self.rows.push(id);
            }
        }
    }
}

struct Connection(Arc<Database>);

pub(super) fn conflict() -> Fault {
    Fault::new(FaultClass::Conflict, "40P01", "deadlock detected")
}

pub(super) fn lost() -> Fault {
    Fault::unavailable("the connection ended")
}

pub(super) fn refused() -> Fault {
    Fault::new(FaultClass::Value, "22P02", "this is no number")
}

fn unique() -> Fault {
    Fault::new(FaultClass::Unique, "23505", "it is there already")
}

impl Database {
    pub(super) fn new(script: Script) -> Arc<Self> {
        Self::of(Some(script), false)
    }

    /// One that leaves bad rows out.
    pub(super) fn filtering(script: Script) -> Arc<Self> {
        Self::of(Some(script), true)
    }

    pub(super) fn without_loaders() -> Arc<Self> {
        Self::of(None, false)
    }

    fn of(script: Option<Script>, filters: bool) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            profile: Profile {
                name: "Test",
                transactional: true,
                flights: 4,
                batch_rows: 1000,
                limitations: &[],
            },
            script,
            filters,
            state: Mutex::default(),
            me: me.clone(),
        })
    }

    /// What is in, in order.
    pub(super) fn rows(&self) -> Vec<u64> {
        let mut rows = self.state.lock().unwrap().rows.clone();
        rows.sort_unstable();
        rows
    }

    pub(super) fn marks(&self) -> Vec<(u64, u64)> {
        let state = self.state.lock().unwrap();
        state
            .marks
            .iter()
            .filter(|((load, _), _)| !load.ends_with("/head"))
            .map(|((_, first), end)| (*first, *end))
            .collect()
    }

    /// Lets the lane write so many rows, and be away for all others.
    pub(super) fn end_after(&self, rows: usize) {
        self.state.lock().unwrap().lane_rows = Some(rows);
    }

    /// Lets the lane write rows again. After the next write these come, sent by an earlier run.
    pub(super) fn go_on(&self, late: impl Iterator<Item = u64>) {
        let mut state = self.state.lock().unwrap();
        (state.lane_rows, state.late) = (None, late.collect());
    }

    /// Calls of the bulk form.
    pub(super) fn calls(&self) -> usize {
        self.state.lock().unwrap().calls
    }

    pub(super) fn by_lane(&self) -> usize {
        self.state.lock().unwrap().by_lane
    }

    /// A lane that answers each unit at once. It ends with its last intake.
    pub(super) fn lane(self: &Arc<Self>) -> (Intake, JoinHandle<()>) {
        let (intake, mut arrivals) = Intake::channel(Budget::new(16 << 20), 16);
        let database = Arc::clone(self);
        let task = tokio::spawn(async move {
            while let Some(submission) = arrivals.recv().await {
                let outcomes: Outcomes = submission
                    .units
                    .iter()
                    .map(|unit| database.unit(unit))
                    .collect();
                submission.reply.send(outcomes);
            }
        });
        (intake, task)
    }

    fn unit(&self, unit: &Unit) -> UnitOutcome {
        let mut state = self.state.lock().unwrap();
        let failed = |at, fault| UnitFault {
            at,
            fault,
            before: Vec::new(),
        };
        let [mark @ .., row] = unit.writes() else {
            return Err(failed(0, Fault::internal("empty")));
        };
        let of_row = mark.len();
        let Value::Int(id) = row.row()[0] else {
            return Err(failed(of_row, refused()));
        };
        if state.lane_rows.is_some_and(|rows| state.by_lane >= rows) {
            return Err(failed(0, lost()));
        }
        for mark in mark {
            let [Value::Text(load), Value::Int(first), Value::Int(end)] = mark.row() else {
                return Err(failed(0, Fault::internal("no mark")));
            };
            let key = (load.to_string(), first.unsigned_abs());
            if state.marks.contains_key(&key) {
                return Err(failed(0, unique()));
            }
            state.marks.insert(key, end.unsigned_abs());
        }
        state.rows.push(id.unsigned_abs());
        state.by_lane += 1;
        state.come_late();
        Ok(unit.writes().iter().map(|_| WriteDone::rows(1)).collect())
    }

    fn write(
        &self,
        contents: Contents<'_>,
        claim: Option<&Claim<'_>>,
    ) -> Result<Filtered, LoadFault> {
        if contents.leaves_out() && !self.filters {
            return Err(LoadFault::Refused(refused()));
        }
        let (mut new, mut left) = (Vec::new(), Vec::new());
        let rows = contents.rows().map_err(LoadFault::Refused)?;
        for (place, field) in rows.fields().enumerate() {
            let number = match field {
                Field::Plain(text) => text.parse::<u64>().ok(),
                _ => None,
            };
            match number {
                Some(number) => new.push(number),
                None if contents.leaves_out() => left.push(place),
                None => return Err(LoadFault::Refused(refused())),
            }
        }
        let mut state = self.state.lock().unwrap();
        for (claim, span) in claim
            .iter()
            .flat_map(|c| c.spans(&left).into_iter().map(move |s| (c, s)))
        {
            let key = (claim.mark.load.to_string(), span.first);
            if state.marks.contains_key(&key) {
                return Err(LoadFault::Refused(unique()));
            }
            state.marks.insert(key, span.end);
        }
        let loaded = Loaded {
            written: new.len() as u64,
            ignored: 0,
        };
        state.rows.extend(new);
        state.come_late();
        Ok(Filtered { loaded, left })
    }

    /// What the script says of the next call, and whether it takes place.
    fn next(&self) -> (Option<LoadFault>, bool) {
        let mut state = self.state.lock().unwrap();
        let call = state.calls;
        state.calls += 1;
        let mut committed = false;
        let fault = self.script.unwrap()(call, &mut committed);
        (fault, committed)
    }
}

#[async_trait]
impl Sink for Database {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    async fn connect(&self, _: Purpose) -> Result<Box<dyn Executor>, Fault> {
        Err(Fault::internal("the lane of this test needs no connection"))
    }
}

#[async_trait]
impl windrow_core::Database for Database {
    async fn ping(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn bulk(&self) -> Option<Arc<dyn Bulk>> {
        let me = self.me.upgrade()?;
        Some(me)
    }
}

#[async_trait]
impl Bulk for Database {
    fn form(&self) -> &'static str {
        "test form"
    }

    fn most_loaders(&self) -> usize {
        4
    }

    async fn columns(&self, _: &TableName) -> Result<Option<Vec<LoadColumn>>, Fault> {
        Ok(Some(vec![LoadColumn {
            name: "id".into(),
            type_name: "int".into(),
            generated: false,
            defaults: false,
            means: Means::Itself,
        }]))
    }

    async fn loader(&self, _: &LoadPlan) -> Result<Box<dyn Loader>, Fault> {
        match self.script {
            Some(_) => Ok(Box::new(Connection(self.me.upgrade().unwrap()))),
            None => Err(Fault::new(FaultClass::Unsupported, "0A000", "not here")),
        }
    }

    fn marks(&self) -> Option<Arc<dyn Marks>> {
        let me = self.me.upgrade()?;
        Some(me)
    }
}

#[async_trait]
impl Loader for Connection {
    async fn write(
        &mut self,
        contents: Contents<'_>,
        claim: Option<&Claim<'_>>,
    ) -> Result<Filtered, LoadFault> {
        let (fault, committed) = self.0.next();
        if fault.is_none() || committed {
            let filtered = self.0.write(contents, claim)?;
            return fault.map_or(Ok(filtered), Err);
        }
        fault.map_or(Ok(Filtered::default()), Err)
    }
}

#[async_trait]
impl Marks for Database {
    async fn prepare(&self) -> Result<(), Fault> {
        Ok(())
    }

    async fn read(&self, load: &str) -> Result<Vec<Span>, Fault> {
        let state = self.state.lock().unwrap();
        let marks = state.marks.iter().filter(|((name, _), _)| name == load);
        Ok(marks
            .map(|((_, first), end)| Span {
                first: *first,
                end: *end,
            })
            .collect())
    }

    async fn forget(&self, load: &str) -> Result<(), Fault> {
        let mut state = self.state.lock().unwrap();
        state.marks.retain(|(name, _), _| name != load);
        Ok(())
    }

    async fn merge(&self, mark: &Mark) -> Result<(), Fault> {
        let mut state = self.state.lock().unwrap();
        let within = |name: &str, first: u64, end: u64| {
            name == &*mark.load && first >= mark.span.first && end <= mark.span.end
        };
        state
            .marks
            .retain(|(name, first), end| !within(name, *first, *end));
        let key = (mark.load.to_string(), mark.span.first);
        state.marks.insert(key, mark.span.end);
        Ok(())
    }
}
