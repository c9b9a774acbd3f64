//! One transaction: its begin with the guard of its tables, its commit, and the verdicts of its
//! units.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::sink::Purpose;
use windrow_core::{Fault, RowDone, Rung, TableName, Tally, Verdict};

use super::batch::Batch;
use crate::catalog::guard;
use crate::fault::{Scope, Trouble, unknown};
use crate::session::Session;

/// The form in which a transaction executes its units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Statements for many writes, if possible.
    Sets,
    /// The same, with a savepoint around each unit of several writes, because one of them has
    /// failed.
    Isolated,
    /// One statement for each write.
    Grouped,
    /// One unit whose writes are tried once, because their effects cannot be undone.
    Once,
}

/// How long a description that was found to be true counts as true for a statement that is a
/// transaction of its own. What is stored by an older one is what it would have become if the write
/// had come before the change. After this time the connection is also tried before such a statement
/// is sent: of one that is lost then nothing was under way.
pub(crate) const TRUSTED: Duration = Duration::from_secs(1);

/// The reason why a transaction did not commit. Nothing of it was written, except for
/// [`Break::Unknown`].
#[derive(Debug)]
pub(crate) enum Break {
    /// The connection was lost before the commit was sent.
    Lost(Box<str>),
    /// The server rolled it back for a reason outside of it: a deadlock, a lock timeout.
    Gone(Fault),
    /// The server ends the connection.
    Ended(Fault),
    /// A unit of several writes failed, so such units need savepoints.
    Isolate,
    /// An answer could not be assigned to a write.
    Unsure,
    /// A table is not as it was described.
    Stale,
    /// Another session holds a lock on a whole table.
    Locked(TableName, Fault),
    /// These units have their verdicts and the others run again without them. Either they wait for
    /// locks, and later units of their sources must not be written before them, or they must be
    /// undone.
    Overtaken(Vec<(u32, Verdict<RowDone>)>),
    /// It may have been committed.
    Unknown(Fault),
}

impl From<Trouble> for Break {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Lost(why) => Self::Lost(why),
            Trouble::Refused(refusal) => match refusal.scope {
                Scope::Connection => Self::Ended(refusal.fault),
                _ => Self::Gone(refusal.fault),
            },
        }
    }
}

/// When a description was last found to be true.
pub(crate) type Verified = HashMap<u64, Instant>;

/// A transaction under way.
pub(crate) struct Transaction<'t, 'u> {
    pub(crate) session: &'t mut Session,
    pub(crate) batch: &'t mut Batch<'u>,
    pub(crate) purpose: Purpose,
    verified: &'t mut Verified,
    tally: &'t mut Tally,
    pub(super) counts: [usize; Rung::ALL.len()],
    pub(super) failed: Vec<(u32, Verdict<RowDone>)>,
    /// What a unit of several writes failed with, and the number of the write that did.
    pub(super) blame: Option<(usize, Verdict<RowDone>)>,
    /// True if everything is counted as isolated.
    isolated: bool,
    /// True if a unit that fails undoes the whole transaction.
    pub(super) once: bool,
}

impl<'t, 'u> Transaction<'t, 'u> {
    pub(crate) fn new(
        session: &'t mut Session,
        batch: &'t mut Batch<'u>,
        purpose: Purpose,
        verified: &'t mut Verified,
        tally: &'t mut Tally,
        isolated: bool,
    ) -> Self {
        Self {
            session,
            batch,
            purpose,
            verified,
            tally,
            counts: [0; Rung::ALL.len()],
            failed: Vec::new(),
            blame: None,
            isolated,
            once: false,
        }
    }

    /// A unit that was tried once has failed. It waits for a lock only if it may be tried again.
    pub(super) async fn undo_once(&mut self, units: &[u32]) -> Result<(), Break> {
        self.session.say("ROLLBACK").await?;
        let undone = self.session.undid_all().await?;
        let verdict = match self.blame.take() {
            Some((_, Verdict::WaitsForLock(fault))) if !undone => Verdict::Final(Err(fault.into())),
            Some((_, verdict)) => verdict,
            None => defect(),
        };
        for unit in units {
            self.batch.conclude(*unit, verdict.clone());
        }
        Ok(())
    }

    /// Opens the transaction and looks whether the tables are as they were described; from here on
    /// they stay so. Triggers are looked at where that was not done a moment ago.
    pub(super) async fn open(&mut self, units: &[u32]) -> Result<(), Break> {
        let tables = self.batch.tables_of(units);
        let mut sql = "START TRANSACTION".to_owned();
        let mut guarded = Vec::new();
        for table in &tables {
            let Some(expected) = &table.print else {
                continue;
            };
            let at = self.verified.get(&table.version);
            let seen = at.is_some_and(|at| at.elapsed() < TRUSTED);
            sql.push_str("; ");
            match seen {
                true => guard::push(&mut sql, &table.name),
                false => guard::push_all(&mut sql, &table.name),
            }
            guarded.push((table, expected, guard::RESULTS + usize::from(!seen)));
        }
        let (mut seen, ended) = self.session.looks(&sql).await;
        match ended {
            Ok(()) => {}
            Err(Trouble::Refused(refusal)) if refusal.scope == Scope::Lock => {
                let mut left = seen.len();
                let at = guarded.iter().find(|(_, _, results)| {
                    let here = left < *results;
                    left = left.saturating_sub(*results);
                    here
                });
                return Err(match at {
                    Some((table, ..)) => Break::Locked(table.name.clone(), refusal.fault),
                    None => Break::Gone(refusal.fault),
                });
            }
            Err(Trouble::Refused(refusal)) if refusal.scope == Scope::Statement => {
                return Err(Break::Stale);
            }
            Err(trouble) => return Err(trouble.into()),
        }
        let now = Instant::now();
        for (table, expected, results) in guarded {
            let behind = seen.split_off(results.min(seen.len()));
            if !guard::holds(expected, &seen) {
                return Err(Break::Stale);
            }
            if results > guard::RESULTS {
                self.verified.insert(table.version, now);
            }
            seen = behind;
        }
        Ok(())
    }

    pub(super) async fn commit(&mut self, units: &[u32]) -> Result<(), Break> {
        let reads = self.batch.only_read(units);
        match self.session.say("COMMIT").await {
            Ok(_) => {}
            Err(_) if reads => {}
            Err(Trouble::Lost(why)) => return Err(Break::Unknown(unknown(&why))),
            Err(Trouble::Refused(refusal)) => match refusal.scope {
                // Another node of a cluster was faster, or a lock: certainly rolled back.
                Scope::Transaction | Scope::Lock => return Err(Break::Gone(refusal.fault)),
                Scope::Statement | Scope::Connection => {
                    return Err(Break::Unknown(unknown(&refusal.fault.message)));
                }
            },
        }
        self.tally.commits += u32::from(!reads);
        for (rung, count) in Rung::ALL.into_iter().zip(self.counts) {
            self.tally.add(rung, count);
        }
        for (unit, verdict) in self.failed.drain(..) {
            self.batch.conclude(unit, verdict);
        }
        for unit in units {
            let open = self.batch.verdicts.get(*unit as usize);
            if open.is_some_and(Option::is_none) {
                self.batch.succeed(*unit);
            }
        }
        Ok(())
    }

    /// Of units that wait for locks, none may be followed by one that has been written.
    pub(super) fn none_overtaken(&self) -> Result<(), Break> {
        let waits = |verdict: &Verdict<RowDone>| matches!(verdict, Verdict::WaitsForLock(_));
        let waiting = self.failed.iter().filter(|(_, verdict)| waits(verdict));
        let told = |unit: u32| self.failed.iter().any(|(failed, _)| *failed == unit);
        let open = |unit: u32| {
            let verdict = self.batch.verdicts.get(unit as usize);
            verdict.is_some_and(Option::is_none) && !told(unit)
        };
        let overtakes = |unit: u32| self.batch.sources.followers(unit).any(open);
        match waiting.clone().any(|(unit, _)| overtakes(*unit)) {
            true => Err(Break::Overtaken(waiting.cloned().collect())),
            false => Ok(()),
        }
    }

    /// A write was told so, if the transaction is committed.
    pub(crate) fn done(&mut self, item: u32, done: RowDone, rung: Rung) {
        if let Some(slot) = self.batch.done.get_mut(item as usize) {
            *slot = Some(done);
        }
        let rung = if self.isolated { Rung::Isolated } else { rung };
        self.count(rung, 1);
    }

    pub(crate) fn count(&mut self, rung: Rung, writes: usize) {
        let place = Rung::ALL.iter().position(|r| *r == rung);
        if let Some(count) = place.and_then(|place| self.counts.get_mut(place)) {
            *count += writes;
        }
    }

    /// A write has failed. Of a unit of one write nothing is left; one of several must be undone.
    pub(crate) fn fail(
        &mut self,
        unit: u32,
        write: usize,
        verdict: Verdict<RowDone>,
    ) -> Result<(), Break> {
        if self.batch.is_single(unit) && !self.once {
            self.failed.push((unit, verdict));
            Ok(())
        } else {
            self.blame = Some((write, verdict));
            Err(Break::Isolate)
        }
    }
}

/// For a unit whose failure is not known: a defect.
pub(super) fn defect() -> Verdict<RowDone> {
    Verdict::Final(Err(Fault::internal("a unit failed without a fault").into()))
}
