//! Settles a transaction: its BEGIN with the guard of its tables, its statements in their best
//! form, its COMMIT, and the verdicts of its units. Failures go to `isolate`.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::sink::Purpose;
use windrow_core::{Fault, FaultClass, Rung, TableName, Tally, UnitFault, Verdict, WriteDone};
use windrow_database::plan;
use windrow_database::plan::Step;

use super::batch::{Batch, BoundWrite};
use super::plan::Action;
use super::send;
use super::send::{StatementError, read_back};
use crate::catalog::guard;
use crate::fault::{Refusal, Scope, Trouble, unknown};
use crate::session::Session;

/// The number of writes from which on one statement is cheaper than one each.
const SET_FROM: usize = 2;

/// The time for which a checked description of a table is used without another check. A statement
/// that uses it stores what it would have stored before the change. After this time the check also
/// shows that the connection works: if it is lost then, no statement was under way.
pub(crate) const TRUSTED: Duration = Duration::from_secs(1);

/// The reason why a transaction did not commit. Nothing of it was written, except for
/// [`Break::Unknown`].
#[derive(Debug)]
pub(crate) enum Break {
    /// The connection was lost before the commit was sent.
    Lost(Box<str>),
    /// The server rolled it back in favour of another session: a deadlock, a lock timeout.
    RolledBack(Fault),
    /// The server ends the connection.
    Ended(Fault),
    /// A unit of several writes failed, or a returned row could not be assigned to a write. The
    /// units run again with savepoints.
    Isolate,
    /// A table is not as described.
    Stale,
    /// Another session holds a lock on a whole table.
    Locked(TableName, Fault),
    /// These units have their verdicts and the others run again without them. Either they wait for
    /// locks, and later units of their sources must not be written before them, or they must be
    /// undone.
    Concluded(Vec<(u32, Verdict)>),
    /// The transaction may have been committed.
    Unknown(Fault),
}

impl From<Trouble> for Break {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Lost(why) => Self::Lost(why),
            Trouble::Refused(refusal) => match refusal.scope {
                Scope::Connection => Self::Ended(refusal.fault),
                _ => Self::RolledBack(refusal.fault),
            },
        }
    }
}

/// The times of the last checks of descriptions, by their versions.
pub(crate) type Verified = HashMap<u64, Instant>;

/// A transaction under way.
pub(crate) struct Transaction<'t, 'u> {
    pub(crate) session: &'t mut Session,
    pub(crate) batch: &'t mut Batch<'u>,
    pub(crate) purpose: Purpose,
    verified: &'t mut Verified,
    tally: &'t mut Tally,
    pub(super) counts: [usize; Rung::ALL.len()],
    pub(super) failed: Vec<(u32, Verdict)>,
    /// The verdict of a unit of several writes that failed, and the number of the write that did.
    pub(super) blame: Option<(usize, Verdict)>,
    /// True if savepoints separate the units, because a transaction with them has failed.
    pub(super) is_isolated: bool,
    /// True while a savepoint encloses the statements of one unit.
    pub(super) is_in_unit: bool,
    /// True if the writes of one unit are tried once, because their effects may not be undone.
    pub(super) is_once: bool,
}

impl<'t, 'u> Transaction<'t, 'u> {
    pub(crate) fn new(
        session: &'t mut Session,
        batch: &'t mut Batch<'u>,
        purpose: Purpose,
        verified: &'t mut Verified,
        tally: &'t mut Tally,
        is_isolated: bool,
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
            is_isolated,
            is_in_unit: false,
            is_once: false,
        }
    }

    /// Executes the units and commits. Each has its verdict then.
    ///
    /// # Errors
    /// The transaction did not commit.
    pub(super) async fn run(mut self, units: &[u32]) -> Result<(), Break> {
        self.is_once = matches!(units, [unit] if self.batch.is_apart(*unit));
        let worked = self.work(units).await;
        let ended = match worked.and_then(|()| self.none_overtaken()) {
            Ok(()) => self.commit(units).await,
            Err(Break::Isolate) if self.is_once => self.undo_once(units).await,
            Err(Break::Lost(why)) => return Err(Break::Lost(why)),
            // If the server has rolled back already, this does nothing.
            Err(other) => self
                .session
                .say("ROLLBACK")
                .await
                .map_err(Break::from)
                .and(Err(other)),
        };
        if self.session.is_usable() {
            self.session.hurry(false).await?;
        }
        ended
    }

    async fn work(&mut self, units: &[u32]) -> Result<(), Break> {
        self.open(units).await?;
        match units {
            [unit] if self.is_once => self.in_order(*unit).await,
            _ if self.is_isolated => self.units(units).await,
            _ => self.steps(units).await,
        }
    }

    /// Executes the writes of units in their best form.
    pub(super) async fn steps(&mut self, units: &[u32]) -> Result<(), Break> {
        let steps = self.batch.steps(units);
        self.execute(steps).await
    }

    pub(super) async fn execute(&mut self, steps: Vec<Step>) -> Result<(), Break> {
        for step in steps {
            let may_set = plan::shape_of(step.group).is_some();
            if may_set && step.items.len() >= SET_FROM && self.suits(&step.items) {
                self.set(step.items).await?;
                continue;
            }
            for item in step.items {
                self.one(item, Rung::Grouped).await?;
            }
        }
        Ok(())
    }

    /// Executes a write by its own statement. A failure concludes its unit if the unit has no other
    /// write.
    pub(super) async fn one(&mut self, item: u32, rung: Rung) -> Result<(), Break> {
        let Some(bound) = self.batch.bound.get(item as usize) else {
            return Ok(());
        };
        let (unit, write) = (bound.unit, bound.write as usize);
        let answered = match send::one(self.session, bound).await {
            Err(StatementError::Trouble(Trouble::Refused(refusal)))
                if send::met_other_row(&bound.compiled, &refusal) =>
            {
                send::look_up(self.session, bound).await
            }
            other => other,
        };
        let refusal = match answered {
            Ok(done) => {
                self.done(item, done, rung);
                return Ok(());
            }
            Err(StatementError::Unassigned) => return Err(not_read_back(bound)),
            Err(StatementError::Trouble(Trouble::Lost(why))) => return Err(Break::Lost(why)),
            Err(StatementError::Trouble(Trouble::Refused(refusal))) => refusal,
        };
        check_scope(self.session, &refusal)?;
        let verdict = match refusal.scope {
            Scope::Lock if self.purpose == Purpose::Batches => {
                self.session.hurry(true).await?;
                Verdict::WaitsForLock(refusal.fault)
            }
            _ => Verdict::Final(Err(UnitFault {
                at: write,
                fault: refusal.fault,
                before: Vec::new(),
            })),
        };
        self.count(Rung::Isolated, 1);
        self.fail(unit, write, verdict)
    }

    /// Executes writes by one statement. Returns the refusal if it concerns the statement alone.
    pub(super) async fn many(&mut self, items: &[u32]) -> Result<Option<Refusal>, Break> {
        let bound = bound(self.batch, items);
        let savepoint = self.is_isolated && !self.is_in_unit;
        if savepoint {
            self.session.say("SAVEPOINT windrow_set").await?;
        }
        match send::many(self.session, &bound).await {
            Ok(dones) => {
                for (item, done) in items.iter().zip(dones) {
                    self.done(*item, done, Rung::Fused);
                }
                Ok(None)
            }
            Err(StatementError::Unassigned) if savepoint => {
                self.session
                    .say("ROLLBACK TO SAVEPOINT windrow_set")
                    .await?;
                for item in items {
                    self.one(*item, Rung::Isolated).await?;
                }
                Ok(None)
            }
            Err(StatementError::Unassigned) => Err(Break::Isolate),
            Err(StatementError::Trouble(Trouble::Lost(why))) => Err(Break::Lost(why)),
            Err(StatementError::Trouble(Trouble::Refused(refusal))) => {
                check_scope(self.session, &refusal)?;
                if refusal.scope == Scope::Lock {
                    self.session.hurry(true).await?;
                }
                Ok(Some(*refusal))
            }
        }
    }

    /// Returns true if writes of one shape may become one statement.
    fn suits(&self, items: &[u32]) -> bool {
        let rows = bound(self.batch, items);
        rows.first().is_some_and(|first| {
            send::can_set(&first.compiled, &self.session.server)
                && (first.compiled.action != Action::Update || send::is_uniform(&rows))
        })
    }

    /// Concludes a unit that was tried once and failed. It waits for a lock only if all of it was
    /// undone.
    async fn undo_once(&mut self, units: &[u32]) -> Result<(), Break> {
        self.session.say("ROLLBACK").await?;
        let is_undone = self.session.undid_all().await?;
        let verdict = match self.blame.take() {
            Some((_, Verdict::WaitsForLock(fault))) if !is_undone => {
                Verdict::Final(Err(fault.into()))
            }
            Some((_, verdict)) => verdict,
            None => defect(),
        };
        for unit in units {
            self.batch.conclude(*unit, verdict.clone());
        }
        Ok(())
    }

    /// Opens the transaction and checks that the tables are as described. Until its end they stay
    /// so. Triggers are checked unless that was done less than [`TRUSTED`] ago.
    async fn open(&mut self, units: &[u32]) -> Result<(), Break> {
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
                    None => Break::RolledBack(refusal.fault),
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

    async fn commit(&mut self, units: &[u32]) -> Result<(), Break> {
        let reads = self.batch.only_read(units);
        match self.session.say("COMMIT").await {
            Ok(_) => {}
            Err(_) if reads => {}
            Err(Trouble::Lost(why)) => return Err(Break::Unknown(unknown(&why))),
            Err(Trouble::Refused(refusal)) => match refusal.scope {
                // Another node of a cluster committed first, or held a lock.
                Scope::Transaction | Scope::Lock => return Err(Break::RolledBack(refusal.fault)),
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
            if self.batch.is_open(*unit) {
                self.batch.succeed(*unit);
            }
        }
        Ok(())
    }

    /// Checks that no unit was written whose source has an earlier unit that waits for a lock.
    fn none_overtaken(&self) -> Result<(), Break> {
        let waits = |verdict: &Verdict| matches!(verdict, Verdict::WaitsForLock(_));
        let waiting = self.failed.iter().filter(|(_, verdict)| waits(verdict));
        let has_failed = |unit: u32| self.failed.iter().any(|(failed, _)| *failed == unit);
        let was_written = |unit: u32| self.batch.is_open(unit) && !has_failed(unit);
        let is_overtaken = |unit: u32| self.batch.sources.followers(unit).any(was_written);
        match waiting.clone().any(|(unit, _)| is_overtaken(*unit)) {
            true => Err(Break::Concluded(waiting.cloned().collect())),
            false => Ok(()),
        }
    }

    /// Sets the outcome of a write, which holds if the transaction commits.
    pub(super) fn done(&mut self, item: u32, done: WriteDone, rung: Rung) {
        if let Some(slot) = self.batch.done.get_mut(item as usize) {
            *slot = Some(done);
        }
        let rung = if self.is_isolated {
            Rung::Isolated
        } else {
            rung
        };
        self.count(rung, 1);
    }

    pub(super) fn count(&mut self, rung: Rung, writes: usize) {
        let place = Rung::ALL.iter().position(|r| *r == rung);
        if let Some(count) = place.and_then(|place| self.counts.get_mut(place)) {
            *count += writes;
        }
    }

    /// Concludes a unit with the failure of its only write.
    ///
    /// # Errors
    /// The unit has other writes, or effects that may not be undone, so more must be undone.
    fn fail(&mut self, unit: u32, write: usize, verdict: Verdict) -> Result<(), Break> {
        if self.batch.is_single(unit) && !self.is_once {
            self.failed.push((unit, verdict));
            Ok(())
        } else {
            self.blame = Some((write, verdict));
            Err(Break::Isolate)
        }
    }
}

/// Ends the transaction, and the write whose row was not found again.
fn not_read_back(bound: &BoundWrite) -> Break {
    let refused = UnitFault {
        at: bound.write as usize,
        fault: read_back::not_found_again(&bound.compiled),
        before: Vec::new(),
    };
    Break::Concluded(vec![(bound.unit, Verdict::Final(Err(refused)))])
}

/// Checks that a refusal concerns the statement alone.
///
/// # Errors
/// The transaction or the connection has ended.
pub(super) fn check_scope(session: &Session, refusal: &Refusal) -> Result<(), Break> {
    let fault = || refusal.fault.clone();
    match refusal.scope {
        Scope::Transaction => Err(Break::RolledBack(fault())),
        Scope::Connection => Err(Break::Ended(fault())),
        Scope::Lock if session.server.timeout_ends_all => Err(Break::RolledBack(fault())),
        // The server killed the statement, which would succeed.
        Scope::Statement if refusal.fault.class == FaultClass::Conflict => {
            Err(Break::RolledBack(fault()))
        }
        Scope::Statement | Scope::Lock => Ok(()),
    }
}

/// Returns the writes at these places.
pub(super) fn bound<'b>(batch: &'b Batch<'_>, items: &[u32]) -> Vec<&'b BoundWrite> {
    let bound = items
        .iter()
        .filter_map(|item| batch.bound.get(*item as usize));
    bound.collect()
}

/// Returns the verdict of a unit that failed without a fault, which is a defect.
pub(super) fn defect() -> Verdict {
    Verdict::Final(Err(Fault::internal("a unit failed without a fault").into()))
}
