//! The port between a lane and a database.
//!
//! A sink never holds writes back and never collects. It executes the batch that it is given, by
//! the best form that its database has, and reports for each unit the outcome that the unit would
//! have had alone.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use crate::cancel::Canceller;
use crate::fault::Fault;
use crate::outcome::UnitOutcome;
use crate::promise::{Limitation, Promise};
use crate::unit::Unit;

/// The properties of a sink: data that lanes, frontends and documentation read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The database's name, as its makers write it.
    pub name: &'static str,
    /// True if a batch is one transaction, and a unit of several writes can be all or nothing.
    pub transactional: bool,
    /// The most flights that can be of use. 1 for a database with one writer.
    pub flights: usize,
    /// The most rows that a batch may have. What is best is found below it.
    pub batch_rows: usize,
    /// The promises that the database cannot keep, in the order of [`Promise::ALL`]. What is not
    /// named is kept.
    pub limitations: &'static [Limitation],
}

impl Profile {
    /// Returns the limitation of a promise that the sink does not keep; `None` if the sink keeps
    /// it.
    pub fn limitation(&self, promise: Promise) -> Option<&'static Limitation> {
        self.limitations.iter().find(|lack| lack.promise == promise)
    }
}

/// The use of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// Batches of many clients: a write that meets a foreign lock is reported as
    /// [`Verdict::WaitsForLock`] after a short time, so that it does not delay its neighbours.
    Batches,
    /// One unit that waits for a lock as long as it would have waited by itself.
    LockWait,
}

/// Where the batches of a lane go: a database. Shared by all flights of a lane.
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// Returns the properties of the sink.
    fn profile(&self) -> &Profile;

    /// Returns the name of the server's product, for traces. Of products with one profile, the name
    /// is certain once a connection was opened.
    fn system(&self) -> &'static str {
        self.profile().name
    }

    /// Opens a connection for one flight at a time. Cancel safe: a dropped future leaves no
    /// connection behind.
    ///
    /// # Errors
    /// [`crate::FaultClass::Unavailable`] where trying again may help; any other class where it
    /// will not (a wrong password, a database that is not there).
    async fn connect(&self, purpose: Purpose) -> Result<Box<dyn Executor>, Fault>;

    /// Returns the time that a statement of this lane may take, counted from its arrival, as far as
    /// its clients' settings are known (PostgreSQL's `statement_timeout`); `None` for no limit. A
    /// unit that has waited so long without having left is answered in the database's words
    /// ([`Fault::late`]).
    fn statement_timeout(&self) -> Option<Duration> {
        None
    }

    /// Adds a hash for every row that the unit touches, as far as its key is known: two units that
    /// share one are not put into two flights at once. Adding none is always allowed, the
    /// database's own locks decide then.
    fn touches(&self, unit: &Unit, hashes: &mut Vec<u64>) {
        let _ = (unit, hashes);
    }
}

/// One connection of a sink.
#[async_trait]
pub trait Executor: Send {
    /// Executes the units as one batch, in one transaction where the database has them, and reports
    /// on each in order. No unit is reported as done before its commit is known.
    ///
    /// Units of one source ([`Unit::source`]) may rely on each other: none is executed, or can be
    /// seen by anybody, before those of its source that stand before it. Behind one that is
    /// reported as [`Verdict::RolledBack`] or [`Verdict::WaitsForLock`] all others of its source
    /// are [`Verdict::NotTried`], unless they have such a verdict themselves.
    ///
    /// **Not cancel safe**: a future dropped half-way leaves outcomes unknown. The lane owns it and
    /// always lets it end.
    async fn execute(&mut self, units: &[Unit]) -> Report;

    /// Notes when the unit arrived that is executed next: its time limits and its lock timeout
    /// count from there. Called by lanes on connections for [`Purpose::LockWait`].
    fn arrived(&mut self, at: Instant) {
        let _ = at;
    }

    /// The way to interrupt a batch of this executor; `None` where the database has none.
    fn canceller(&self) -> Option<Arc<dyn Canceller>> {
        None
    }

    /// Says good-bye to the database. Dropping an executor without it is allowed.
    async fn close(self: Box<Self>) {}
}

/// The rung of the ladder by which a write got its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rung {
    /// As its own statement, in a transaction of its own.
    Solo,
    /// In a set-based statement.
    Fused,
    /// As its own statement, pipelined with others in one transaction.
    Grouped,
    /// After a failure had been set apart.
    Isolated,
}

impl Rung {
    /// All rungs, in the order of [`Tally::rungs`].
    pub const ALL: [Self; 4] = [Self::Solo, Self::Fused, Self::Grouped, Self::Isolated];

    /// The word used as a metric label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Solo => "solo",
            Self::Fused => "fused",
            Self::Grouped => "grouped",
            Self::Isolated => "isolated",
        }
    }
}

/// The cost of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Writes by rung, in the order of [`Rung::ALL`].
    pub rungs: [u64; Rung::ALL.len()],
    /// Round trips to the database (0 where there is no wire).
    pub round_trips: u32,
    /// Transactions that were committed.
    pub commits: u32,
    /// Time the database took, from sending to the last answer.
    pub in_database: Duration,
}

impl Tally {
    /// Counts writes under a rung.
    pub fn add(&mut self, rung: Rung, writes: usize) {
        let slot = Rung::ALL
            .iter()
            .position(|r| *r == rung)
            .and_then(|i| self.rungs.get_mut(i));
        if let Some(slot) = slot {
            *slot += writes as u64;
        }
    }
}

/// The report on one unit of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The final outcome.
    Final(UnitOutcome),
    /// Rolled back for no fault of the unit (deadlock, serialization failure, a connection that
    /// ended before the commit was sent): certainly not written, to be run again in a smaller
    /// batch. The fault is reported if that goes on. A fault of the class
    /// [`crate::FaultClass::Conflict`] with code 55P03 says that another process holds the whole
    /// database: then the unit runs again in a batch of any size, until it has waited for
    /// [`crate::Limits::away_wait`].
    RolledBack(Fault),
    /// Waiting for a lock of another session: certainly not written, to be run on a connection of
    /// its own.
    WaitsForLock(Fault),
    /// Not tried, because an earlier unit of its source is reported as [`Verdict::RolledBack`] or
    /// [`Verdict::WaitsForLock`]: certainly not written, to be run once that one has its outcome.
    NotTried,
}

impl Verdict {
    /// The same of a unit, as one that was given for what its write at this place asked for.
    pub fn for_write(&self, at: usize) -> Self {
        let mut verdict = self.clone();
        if let Self::Final(Err(failed)) = &mut verdict {
            failed.at = at;
        }
        verdict
    }
}

/// The report of an [`Executor`] on a batch.
#[derive(Clone, Debug)]
pub struct Report {
    /// One for each unit, in order.
    pub verdicts: Vec<Verdict>,
    /// The cost of the batch.
    pub tally: Tally,
    /// False once the connection cannot be used any more.
    pub usable: bool,
}

impl Report {
    /// The same verdict for all units, from a connection that is broken.
    pub fn broken(units: usize, verdict: &Verdict) -> Self {
        Self {
            verdicts: vec![verdict.clone(); units],
            tally: Tally::default(),
            usable: false,
        }
    }
}
