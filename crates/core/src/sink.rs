//! The port between a lane and a database.
//!
//! A sink never holds writes back to collect more. It executes the batch that it is given, in the
//! best form that its database has, and reports for each unit the outcome that the unit would have
//! had alone.

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
    /// The largest useful number of flights; 1 for a database with one writer.
    pub flights: usize,
    /// The most rows of a batch. Pace finds the best number below it.
    pub batch_rows: usize,
    /// The promises that the database cannot keep, in the order of [`Promise::ALL`]. It keeps all
    /// others.
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
    /// Batches of many clients: a write that meets another session's lock is soon reported as
    /// [`Verdict::WaitsForLock`], so that it does not delay its neighbours.
    Batches,
    /// One unit that waits for a lock for as long as it would have waited without Windrow.
    LockWait,
}

/// A database to which a lane sends its batches. Shared by all flights of a lane.
#[async_trait]
pub trait Sink: Send + Sync + 'static {
    /// Returns the properties of the sink.
    fn profile(&self) -> &Profile;

    /// Returns the name of the server's product, for traces. If several products share a profile,
    /// the name is certain once a connection was opened.
    fn system(&self) -> &'static str {
        self.profile().name
    }

    /// Opens a connection for one flight at a time. Cancel safe: a dropped future leaves no
    /// connection behind.
    ///
    /// # Errors
    /// [`crate::FaultClass::Unavailable`] if another attempt may succeed; any other class if not (a
    /// wrong password, a database that does not exist).
    async fn connect(&self, purpose: Purpose) -> Result<Box<dyn Executor>, Fault>;

    /// Returns the limit of a statement's time in this lane, from its arrival, if its clients'
    /// settings are known (PostgreSQL's `statement_timeout`); `None` for no limit. A unit that has
    /// waited this long without having left is answered in the database's words ([`Fault::late`]).
    fn statement_timeout(&self) -> Option<Duration> {
        None
    }

    /// Adds a hash for each row that the unit touches and whose key is known. Two units that share
    /// a hash are not in two flights at once. Adding none is always allowed: then the database's
    /// own locks decide.
    fn touches(&self, unit: &Unit, hashes: &mut Vec<u64>) {
        let _ = (unit, hashes);
    }
}

/// One connection of a sink.
#[async_trait]
pub trait Executor: Send {
    /// Executes the units as one batch, in one transaction if the database has transactions, and
    /// reports on each in order. Reports no unit as done before its commit is known.
    ///
    /// Units of one source ([`Unit::source`]) may depend on each other: none is executed, or
    /// visible to others, before earlier units of its source. After one that is reported as
    /// [`Verdict::RolledBack`] or [`Verdict::WaitsForLock`], all later units of its source are
    /// [`Verdict::NotTried`], unless they have such a verdict themselves.
    ///
    /// **Not cancel safe**: a future dropped half-way leaves outcomes unknown. The lane owns the
    /// future and always lets it end.
    async fn execute(&mut self, units: &[Unit]) -> Report;

    /// Notes the arrival of the unit that is executed next: its time limits and its lock timeout
    /// count from there. Lanes call this on connections for [`Purpose::LockWait`].
    fn arrived(&mut self, at: Instant) {
        let _ = at;
    }

    /// Returns the handle that interrupts a batch of this executor; `None` if the database has
    /// none.
    fn canceller(&self) -> Option<Arc<dyn Canceller>> {
        None
    }

    /// Closes the connection in an orderly way. Dropping an executor instead is allowed.
    async fn close(self: Box<Self>) {}
}

/// The form in which a write got its outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rung {
    /// As its own statement, in a transaction of its own.
    Solo,
    /// In a set-based statement.
    Fused,
    /// As its own statement, pipelined with others in one transaction.
    Grouped,
    /// By itself, after a failure in its batch.
    Isolated,
}

impl Rung {
    /// All rungs, in the order of [`Tally::rungs`].
    pub const ALL: [Self; 4] = [Self::Solo, Self::Fused, Self::Grouped, Self::Isolated];

    /// Returns the word used as a metric label.
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
    /// Round trips to the database; 0 without a network.
    pub round_trips: u32,
    /// Transactions that were committed.
    pub commits: u32,
    /// The time that the database took, from sending to the last answer.
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
    /// Rolled back through no fault of the unit (deadlock, serialization failure, a connection that
    /// ended before the commit was sent): certainly not written, and to be run again in a smaller
    /// batch. The fault is the answer if that goes on. A fault of the class
    /// [`crate::FaultClass::Conflict`] with code 55P03 means that another process holds the whole
    /// database: then the unit runs again in a batch of any size, until it has waited for
    /// [`crate::Limits::away_wait`].
    RolledBack(Fault),
    /// Waiting for another session's lock: certainly not written, and to be run on a connection of
    /// its own.
    WaitsForLock(Fault),
    /// Not tried, because an earlier unit of its source is reported as [`Verdict::RolledBack`] or
    /// [`Verdict::WaitsForLock`]: certainly not written, and to be run once the earlier one has its
    /// outcome.
    NotTried,
}

impl Verdict {
    /// Returns the verdict with a failure that names the write at this position of the unit.
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
    /// The verdicts, one for each unit, in order.
    pub verdicts: Vec<Verdict>,
    /// The cost of the batch.
    pub tally: Tally,
    /// False once the connection cannot be used any more.
    pub usable: bool,
}

impl Report {
    /// Returns the same verdict for all units, from a connection that is broken.
    pub fn broken(units: usize, verdict: &Verdict) -> Self {
        Self {
            verdicts: vec![verdict.clone(); units],
            tally: Tally::default(),
            usable: false,
        }
    }
}
