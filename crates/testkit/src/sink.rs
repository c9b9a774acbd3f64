//! A fake database: it takes batches, spends (virtual) time, fails as a test asks for, and
//! remembers.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use windrow_core::{
    Database, Executor, Fault, Profile, Report, Rung, Sink, Tally, Unit, UnitFault, Verdict, Write,
    WriteDone, sink::Purpose,
};

use crate::locked;

/// Decides about a single write: `None` lets it succeed.
type Judge = Box<dyn Fn(&Write) -> Option<Fault> + Send + Sync>;

/// Decides about a whole batch before its writes are looked at: `None` lets it run.
type Script = Box<dyn Fn(&[Unit]) -> Option<Report> + Send + Sync>;

/// The cost of a flight, in tokio's time: with a paused clock a simulation takes no real time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// For each batch.
    pub batch: Duration,
    /// For each row.
    pub row: Duration,
}

/// A fake [`Sink`]. Clones share everything; keep one to look at what happened.
#[derive(Clone)]
pub struct FakeSink {
    inner: Arc<Inner>,
}

struct Inner {
    profile: Profile,
    cost: Cost,
    judge: Judge,
    script: Script,
    batches: Mutex<Vec<Vec<Unit>>>,
    connects: Mutex<Vec<Purpose>>,
    away: Mutex<Option<Fault>>,
    held: watch::Sender<bool>,
    flying: AtomicUsize,
    most_flying: AtomicUsize,
}

/// A [`FakeSink`] in the making.
pub struct FakeSinkBuilder(Inner);

impl FakeSinkBuilder {
    /// Sets the limits that the sink's profile states: flights, and rows of a batch.
    #[must_use]
    pub fn profile(mut self, flights: usize, batch_rows: usize) -> Self {
        self.0.profile.flights = flights;
        self.0.profile.batch_rows = batch_rows;
        self
    }

    /// Sets the cost of a flight. Nothing by default.
    #[must_use]
    pub fn cost(mut self, cost: Cost) -> Self {
        self.0.cost = cost;
        self
    }

    /// Sets the writes that fail: their whole unit fails, and its neighbours do not.
    #[must_use]
    pub fn fail(mut self, judge: impl Fn(&Write) -> Option<Fault> + Send + Sync + 'static) -> Self {
        self.0.judge = Box::new(judge);
        self
    }

    /// Batches that get another report than usual (retries, broken connections).
    #[must_use]
    pub fn script(
        mut self,
        script: impl Fn(&[Unit]) -> Option<Report> + Send + Sync + 'static,
    ) -> Self {
        self.0.script = Box::new(script);
        self
    }

    /// Returns the sink.
    pub fn build(self) -> FakeSink {
        FakeSink {
            inner: Arc::new(self.0),
        }
    }
}

impl FakeSink {
    /// Makes a sink that answers at once and accepts all.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Prepares a sink with other settings.
    pub fn builder() -> FakeSinkBuilder {
        FakeSinkBuilder(Inner {
            profile: Profile {
                name: "Fake",
                transactional: true,
                flights: 8,
                batch_rows: 10_000,
                limitations: &[],
            },
            cost: Cost::default(),
            judge: Box::new(|_| None),
            script: Box::new(|_| None),
            batches: Mutex::default(),
            connects: Mutex::default(),
            away: Mutex::default(),
            held: watch::Sender::new(false),
            flying: AtomicUsize::new(0),
            most_flying: AtomicUsize::new(0),
        })
    }

    /// Returns the batches so far, in the order in which they began.
    pub fn batches(&self) -> Vec<Vec<Unit>> {
        locked(&self.inner.batches).clone()
    }

    /// Rows a batch, in the order in which they began.
    pub fn batch_rows(&self) -> Vec<usize> {
        let rows = |batch: &Vec<Unit>| batch.iter().map(Unit::rows).sum();
        locked(&self.inner.batches).iter().map(rows).collect()
    }

    /// Returns the purposes of the connections so far.
    pub fn connects(&self) -> Vec<Purpose> {
        locked(&self.inner.connects).clone()
    }

    /// Returns the most flights that were under way at once.
    pub fn most_flights(&self) -> usize {
        self.inner.most_flying.load(Ordering::SeqCst)
    }

    /// From now on no flight ends until [`FakeSink::release`].
    pub fn hold(&self) {
        self.inner.held.send_replace(true);
    }

    /// Lets flights end again.
    pub fn release(&self) {
        self.inner.held.send_replace(false);
    }

    /// From now on connecting fails so; `None` makes it succeed again.
    pub fn away(&self, fault: Option<Fault>) {
        *locked(&self.inner.away) = fault;
    }
}

impl Default for FakeSink {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for FakeSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FakeSink")
            .field("profile", &self.inner.profile)
            .field("batch_rows", &self.batch_rows())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Sink for FakeSink {
    fn profile(&self) -> &Profile {
        &self.inner.profile
    }

    async fn connect(&self, purpose: Purpose) -> Result<Box<dyn Executor>, Fault> {
        self.ping().await?;
        locked(&self.inner.connects).push(purpose);
        Ok(Box::new(Connection {
            inner: Arc::clone(&self.inner),
        }))
    }
}

#[async_trait]
impl Database for FakeSink {
    async fn ping(&self) -> Result<(), Fault> {
        locked(&self.inner.away).clone().map_or(Ok(()), Err)
    }
}

struct Connection {
    inner: Arc<Inner>,
}

#[async_trait]
impl Executor for Connection {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let inner = &self.inner;
        locked(&inner.batches).push(units.to_vec());
        let flying = inner.flying.fetch_add(1, Ordering::SeqCst) + 1;
        inner.most_flying.fetch_max(flying, Ordering::SeqCst);
        let rows: usize = units.iter().map(Unit::rows).sum();
        let time = inner.cost.batch + inner.cost.row * u32::try_from(rows).unwrap_or(u32::MAX);
        if !time.is_zero() {
            tokio::time::sleep(time).await;
        }
        // An error means that the sink itself is gone, which this connection prevents.
        inner.held.subscribe().wait_for(|held| !held).await.ok();
        inner.flying.fetch_sub(1, Ordering::SeqCst);
        (inner.script)(units).unwrap_or_else(|| inner.report(units, rows, time))
    }
}

impl Inner {
    fn report(&self, units: &[Unit], rows: usize, time: Duration) -> Report {
        let mut tally = Tally {
            round_trips: 1,
            commits: 1,
            in_database: time,
            ..Tally::default()
        };
        let rung = if units.len() == 1 {
            Rung::Solo
        } else {
            Rung::Fused
        };
        tally.add(rung, rows);
        Report {
            verdicts: units.iter().map(|unit| self.verdict(unit)).collect(),
            tally,
            usable: true,
        }
    }

    fn verdict(&self, unit: &Unit) -> Verdict {
        let judged = unit.writes().iter().map(|write| (self.judge)(write));
        let failed = judged.enumerate().find_map(|(at, fault)| {
            Some(UnitFault {
                at,
                fault: fault?,
                before: Vec::new(),
            })
        });
        Verdict::Final(match failed {
            Some(fault) => Err(fault),
            None => Ok(unit.writes().iter().map(|_| WriteDone::rows(1)).collect()),
        })
    }
}
