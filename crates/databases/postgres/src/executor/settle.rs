//! Turns answers into verdicts: the outcome of each unit, and which units must run again in which
//! form.
//!
//! A failure is final only for a unit in a transaction of its own. If several units share the
//! transaction, the failure only shows that they must be isolated. So no unit is ever answered with
//! a failure that another unit caused, or that was undone together with it.

mod done;

use windrow_core::sink::Purpose;
use windrow_core::{Fault, Rung, Tally, UnitFault, Verdict};

use super::answers::Answers;
use super::batch::Batch;
use super::codes::Findings;
use super::codes::{
    CANCELED, ErrorMeaning, LOCK_NOT_AVAILABLE, may_be_stale, tells, unknown_commit,
};
use super::isolation::Isolation;
use super::segment::{Mode, Segment};
use super::sent::{Sent, SentTransaction};
use windrow_pgwire::wire::ServerError;

/// Evaluates the answers of a round trip.
pub(crate) struct Settler<'a, 'u> {
    pub(crate) batch: &'a mut Batch<'u>,
    pub(crate) purpose: Purpose,
    pub(crate) tally: &'a mut Tally,
    /// The segments of the next round trip, in order.
    pub(crate) next: Vec<Segment>,
    pub(crate) findings: &'a mut Findings,
    /// Plans for units of which one has failed. They are carried out before anything else runs.
    pub(crate) isolations: Vec<Isolation>,
}

impl Settler<'_, '_> {
    /// Evaluates one transaction whose end is known.
    pub(crate) fn settle(&mut self, transaction: SentTransaction, mut answers: Answers) {
        match answers.error.take() {
            None => self.succeeded(transaction, &answers),
            Some((at, error)) => self.failed(transaction, at, &answers, error),
        }
    }

    fn succeeded(&mut self, transaction: SentTransaction, answers: &Answers) {
        if !transaction.reads {
            self.tally.commits += 1;
        }
        let unit = transaction.segment.first_unit();
        match transaction.segment.mode {
            // The statement can be parsed now, so a table has changed.
            Mode::Probe => {
                self.findings.stale = true;
                self.next.push(transaction.segment);
                return;
            }
            Mode::Refuse(at, fault) => return self.batch.fail(unit, refusal(at, fault)),
            Mode::Grouped | Mode::Sets | Mode::Telling | Mode::Own | Mode::Fresh => {}
        }
        let duplicates = self.take(&transaction, answers);
        for unit in transaction.segment.units {
            if duplicates.binary_search(&unit).is_ok() {
                self.next.push(Segment::one(unit, Mode::Own));
            } else {
                self.batch.succeed(unit);
            }
        }
    }

    /// Takes in the answers of a transaction's statements. Returns the units whose rows were left
    /// out, in ascending order.
    pub(crate) fn take(&mut self, transaction: &SentTransaction, answers: &Answers) -> Vec<u32> {
        let mut duplicates = Vec::new();
        for (at, statement) in transaction.statements.iter().enumerate() {
            match statement {
                Sent::Guard(version) => self.found(*version, answers, (at, 0)),
                Sent::Savepoint => {}
                Sent::Single(item) => {
                    self.single_done(*item, answers, at);
                    let writes = usize::from(!self.batch.is_question(*item));
                    self.tally.add(self.rung(&transaction.segment.mode), writes);
                }
                Sent::FollowUp(item) => {
                    self.followed_up(*item, answers, at);
                    self.found(self.batch.version_of(*item), answers, (at, 1));
                }
                Sent::Set { items, telling, .. } => {
                    let missing = self.set_done(items, *telling, answers, at);
                    self.tally.add(Rung::Fused, items.len() - missing.len());
                    duplicates.extend(missing);
                }
            }
        }
        duplicates.sort_unstable();
        duplicates
    }

    fn rung(&self, mode: &Mode) -> Rung {
        match mode {
            _ if self.batch.units.len() == 1 => Rung::Solo,
            Mode::Own | Mode::Fresh => Rung::Isolated,
            _ => Rung::Grouped,
        }
    }

    fn failed(
        &mut self,
        transaction: SentTransaction,
        at: usize,
        answers: &Answers,
        error: ServerError,
    ) {
        let purpose = self.purpose;
        let meaning =
            ErrorMeaning::in_batch(self.batch, &transaction, answers, (at, &error), purpose);
        self.findings.note(meaning);
        match meaning {
            ErrorMeaning::Own => self.failed_of_its_own(transaction, at, answers, error),
            ErrorMeaning::Again | ErrorMeaning::Leave => self.again(&transaction.segment, error),
            ErrorMeaning::Unknown => self.unknown(&transaction, answers, at, error),
            ErrorMeaning::TableLocked(version) => {
                self.table_locked(transaction.segment, version, error);
            }
            ErrorMeaning::StatementsGone
            | ErrorMeaning::Changed(_)
            | ErrorMeaning::Unguarded(_) => {
                self.next.push(transaction.segment);
            }
        }
    }

    fn again(&mut self, segment: &Segment, error: ServerError) {
        let verdict = Verdict::RolledBack(Fault::from(error));
        for unit in &segment.units {
            self.batch.conclude(*unit, verdict.clone());
        }
    }

    /// Handles a transaction for which the server itself does not know if it was committed. Its
    /// units neither run again nor count as written.
    fn unknown(
        &mut self,
        transaction: &SentTransaction,
        answers: &Answers,
        at: usize,
        error: ServerError,
    ) {
        if transaction.reads {
            return self.again(&transaction.segment, error);
        }
        let fault = match self.batch.is_of_calls {
            true => answers.fault_verbatim(error, at),
            false => unknown_commit(&error),
        };
        let rung = self.rung(&transaction.segment.mode);
        for unit in &transaction.segment.units {
            self.tally.add(rung, self.batch.writes_of(*unit).len());
            self.batch.fail(*unit, fault.clone());
        }
    }

    /// Handles another session's lock on a whole table. Units of that table wait for the lock on a
    /// connection of their own, and the others go on.
    fn table_locked(&mut self, segment: Segment, version: u64, error: ServerError) {
        let verdict = Verdict::WaitsForLock(Fault::from(error));
        let (waiting, others): (Vec<u32>, Vec<u32>) = segment.units.into_iter().partition(|unit| {
            let tables = self.batch.tables_of(&[*unit]);
            tables.iter().any(|table| table.version == version)
        });
        for unit in waiting {
            self.batch.conclude(unit, verdict.clone());
        }
        if !others.is_empty() {
            self.next.push(Segment::new(others, segment.mode));
        }
    }

    fn failed_of_its_own(
        &mut self,
        transaction: SentTransaction,
        at: usize,
        answers: &Answers,
        error: ServerError,
    ) {
        match transaction.segment.mode {
            // Another attempt would only wait again.
            _ if has_waited(&transaction, at, &error) => {
                self.waited_in_vain(&transaction, at, answers, error);
            }
            Mode::Sets | Mode::Telling | Mode::Grouped => self.isolate(transaction, at, &error),
            Mode::Own
                if may_be_stale(&error.code) || self.asks_origin(&transaction.segment, &error) =>
            {
                let before = self.before(&transaction, answers, at);
                self.batch
                    .remember(transaction.segment.first_unit(), before);
                let segment = Segment::new(transaction.segment.units, Mode::Fresh);
                self.next.push(segment);
            }
            // The statement was made from a description that may no longer hold.
            Mode::Fresh
                if self.batch.distrusted
                    && !self.batch.is_of_calls
                    && ["42", "0A"].contains(&error.code.get(..2).unwrap_or_default()) =>
            {
                self.again(&transaction.segment, error);
            }
            Mode::Own | Mode::Fresh | Mode::Probe | Mode::Refuse(..) => {
                let fault = self.fault_of(&transaction, at, answers, error);
                self.tell(&transaction.segment, &fault);
            }
        }
    }

    /// Handles a unit in a transaction of its own that has exceeded a timeout or was cancelled.
    fn waited_in_vain(
        &mut self,
        transaction: &SentTransaction,
        at: usize,
        answers: &Answers,
        error: ServerError,
    ) {
        if error.code == LOCK_NOT_AVAILABLE && self.purpose == Purpose::Batches {
            let verdict = Verdict::WaitsForLock(Fault::from(error));
            for unit in &transaction.segment.units {
                self.batch.conclude(*unit, verdict.clone());
            }
            return;
        }
        let fault = self.fault_of(transaction, at, answers, error);
        self.tell(&transaction.segment, &fault);
    }

    /// Returns the fault of a unit whose statement failed in a transaction, or a part of one, of
    /// its own.
    pub(crate) fn fault_of(
        &mut self,
        transaction: &SentTransaction,
        at: usize,
        answers: &Answers,
        error: ServerError,
    ) -> UnitFault {
        if matches!(transaction.segment.mode, Mode::Probe | Mode::Refuse(..)) {
            let before = transaction.statements.iter().take(at);
            let ours = before.filter(|sent| **sent == Sent::Savepoint);
            return UnitFault {
                at: answers.parsed.saturating_sub(ours.count()),
                fault: Fault::from(error),
                before: Vec::new(),
            };
        }
        let place = self.write_of(transaction.statements.get(at), &transaction.segment);
        let now = self.before(transaction, answers, at);
        UnitFault {
            at: place,
            before: self.batch.recall(transaction.segment.first_unit(), now),
            fault: match self.batch.is_of_calls {
                true => answers.fault_verbatim(error, at),
                false => Fault::from(error),
            },
        }
    }

    /// Finds the units that failed in a transaction of several: by the form that reports rows which
    /// would fail, or else by isolation. A single unit is tried once more by its own statements.
    fn isolate(&mut self, transaction: SentTransaction, at: usize, error: &ServerError) {
        let SentTransaction {
            segment,
            statements,
            ..
        } = transaction;
        self.findings.missed |= segment.mode == Mode::Telling;
        if segment.units.len() == 1 {
            return self.next.push(Segment::new(segment.units, Mode::Own));
        }
        let can_report = segment.mode == Mode::Sets
            && tells(&error.code)
            && matches!(statements.get(at), Some(Sent::Set { .. }))
            && self.batch.can_tell(&segment.units);
        let is_ordered = self.batch.sources.any();
        if can_report && !is_ordered {
            return self.next.push(Segment::new(segment.units, Mode::Telling));
        }
        let isolation = Isolation::after(can_report, error.code == LOCK_NOT_AVAILABLE);
        self.isolations.push(match is_ordered {
            true => isolation,
            false => isolation.within(segment.units),
        });
    }

    /// Returns true if the client's own text gives a better error, with the position of the fault.
    pub(crate) fn asks_origin(&self, segment: &Segment, error: &ServerError) -> bool {
        let waited = matches!(error.code.as_str(), LOCK_NOT_AVAILABLE | CANCELED);
        !waited && self.batch.asks_origin(segment.first_unit(), error)
    }

    /// Answers the units with a final failure.
    fn tell(&mut self, segment: &Segment, fault: &UnitFault) {
        let solo = self.batch.units.len() == 1;
        let writes = usize::from(!self.batch.is_of_questions(segment));
        self.tally
            .add(if solo { Rung::Solo } else { Rung::Isolated }, writes);
        for unit in &segment.units {
            self.batch.fail(*unit, fault.clone());
        }
    }

    /// Returns the place in its unit of the write that a statement executes. A commit that fails
    /// names no write: clients that get an answer to each statement get the error after the last
    /// one.
    pub(super) fn write_of(&self, statement: Option<&Sent>, segment: &Segment) -> usize {
        match statement {
            Some(Sent::Single(item) | Sent::FollowUp(item)) => {
                let placed = self.batch.placed.get(*item as usize);
                placed.map_or(0, |placed| placed.write as usize)
            }
            _ if self.batch.is_of_calls => {
                let unit = segment.first_unit();
                self.batch.writes_of(unit).len()
            }
            _ => 0,
        }
    }
}

/// Returns true if a unit in a transaction of its own has waited for a lock for too long, or was
/// cancelled. A set of its writes does not count: it may wait for a lock that single statements do
/// not need.
fn has_waited(transaction: &SentTransaction, at: usize, error: &ServerError) -> bool {
    let is_set = matches!(transaction.statements.get(at), Some(Sent::Set { .. }));
    let waited = matches!(error.code.as_str(), LOCK_NOT_AVAILABLE | CANCELED);
    waited && !is_set && transaction.segment.units.len() == 1
}

/// Builds the fault of a unit that Windrow itself refuses.
pub(crate) fn refusal(at: usize, fault: Fault) -> UnitFault {
    UnitFault {
        at,
        fault,
        before: Vec::new(),
    }
}
