//! From answers to verdicts: what each unit is told, and what must run again and how.
//!
//! A failure is told only to a unit that failed in a transaction of its own; in company it only
//! says who has to be set apart. So no unit is ever told of a failure that its neighbours caused,
//! or that was undone together with them.

mod done;

use windrow_core::sink::Purpose;
use windrow_core::{Fault, FaultClass, Rung, Tally, UnitFault, Verdict};

use super::answers::Answers;
use super::batch::Batch;
use super::care::Care;
use super::codes::{
    CANCELED, LOCK_NOT_AVAILABLE, is_about_statement, may_be_stale, tells, tells_of_change,
};
use super::form::{DoneOf, Form};
use super::segment::{Mode, Segment};
use super::sent::{Sent, SentTransaction};
use crate::catalog::table::NOT_DESCRIBED;
use windrow_pgwire::class_of;
use windrow_pgwire::wire::ServerError;

/// Where a failure makes a large transaction run again, it is cut in pieces of so many units: each
/// has its own commit, and a further failure costs only its piece.
const PIECE: usize = 256;

/// The most units that are set apart at once because the ones before them failed.
const LONGEST_BURST: usize = 256;

/// Takes in the answers of a round trip.
pub(crate) struct Settler<'a, 'u, F: Form> {
    pub(crate) batch: &'a mut Batch<'u, F>,
    pub(crate) purpose: Purpose,
    pub(crate) tally: &'a mut Tally,
    /// What runs in the next round trip, in order.
    pub(crate) next: Vec<Segment>,
    /// A description is not true any more.
    pub(crate) stale: bool,
    /// Versions of tables that are not as they were described.
    pub(crate) changed: Vec<u64>,
    /// Versions of tables that are as they were described, but of which a further change might not
    /// be seen.
    pub(crate) outdated: Vec<u64>,
    /// Versions of tables of which the server has been told a change, but none that matters: their
    /// checks are to be prepared anew.
    pub(crate) told: Vec<u64>,
    /// Versions of tables whose guards the role may not run.
    pub(crate) unguarded: Vec<u64>,
    /// The server does not know the prepared statements.
    pub(crate) statements_gone: bool,
    /// The server should be looked for anew.
    pub(crate) leave: bool,
    /// A row that would fail was not told apart.
    pub(crate) missed: bool,
    /// How many units are set apart after the next failure.
    pub(crate) burst: usize,
    /// All units without a verdict are to go carefully from here on.
    pub(crate) care: Option<Care>,
}

impl<F: Form> Settler<'_, '_, F> {
    /// Takes in one transaction whose end is known.
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
            // The statement can be parsed by now: something has changed.
            Mode::Probe => {
                self.stale = true;
                self.next.push(transaction.segment);
                return;
            }
            Mode::Refuse(at, fault) => return self.batch.fail(unit, refusal(at, fault)),
            Mode::Grouped | Mode::Sets | Mode::Telling => self.burst = 0,
            Mode::Own | Mode::Fresh => {}
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

    /// What the statements of a transaction say of their writes. Gives the units whose rows were
    /// left out, ascending.
    pub(crate) fn take(&mut self, transaction: &SentTransaction, answers: &Answers) -> Vec<u32> {
        let mut duplicates = Vec::new();
        for (at, statement) in transaction.statements.iter().enumerate() {
            match statement {
                Sent::Guard(version) => self.found(*version, answers, (at, 0)),
                Sent::Savepoint => {}
                Sent::Single(item) => {
                    self.single_done(*item, answers, at);
                    self.tally.add(self.rung(&transaction.segment.mode), 1);
                }
                Sent::FollowUp(item) => {
                    self.followed_up(*item, answers, at);
                    self.found(self.version_of(*item), answers, (at, 1));
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
        let code = error.code.clone();
        match (transaction.statements.get(at), code.as_str()) {
            // It has waited long enough, or was asked to give up: to try once more would be to wait
            // once more.
            (Some(Sent::Single(_) | Sent::Guard(_)), LOCK_NOT_AVAILABLE | CANCELED)
                if transaction.segment.units.len() == 1 =>
            {
                self.waited_in_vain(&transaction, at, answers, error);
            }
            (_, "40001" | "40P01") => self.again(&transaction.segment, error),
            (_, "26000") if !answers.bound && self.batch.goes_by_name(&transaction, at) => {
                self.statements_gone = true;
                self.stale = true;
                self.next.push(transaction.segment);
            }
            (Some(Sent::Guard(version)), "55P03") => {
                self.table_locked(transaction.segment, *version, error);
            }
            (Some(Sent::Guard(version)), code) if tells_of_change(code) => {
                self.gone_stale(*version);
                self.next.push(transaction.segment);
            }
            // Who may insert but not select cannot be guarded, nor a table whose row security fails
            // by itself: its statements are parsed anew each time.
            (Some(Sent::Guard(version)), code) if !is_about_statement(code) => {
                self.unguarded.push(*version);
                self.next.push(transaction.segment);
            }
            // A value that was to be taken from a sequence was not, or the table has changed.
            (Some(Sent::FollowUp(item)), "55000" | "22012") => {
                self.gone_stale(self.version_of(*item));
                self.next.push(transaction.segment);
            }
            _ if class_of(&code) == FaultClass::Unknown => {
                self.unknown(&transaction, answers, at, error);
            }
            _ if class_of(&code) == FaultClass::Unavailable => {
                self.leave = true;
                self.again(&transaction.segment, error);
            }
            _ => self.failed_of_its_own(transaction, at, answers, error),
        }
    }

    fn version_of(&self, item: u32) -> u64 {
        let compiled = self.batch.compiled_at(item);
        compiled.map_or(NOT_DESCRIBED, |compiled| compiled.table.version)
    }

    fn gone_stale(&mut self, version: u64) {
        self.stale = true;
        self.changed.push(version);
    }

    fn again(&mut self, segment: &Segment, error: ServerError) {
        let verdict = Verdict::RolledBack(Fault::from(error));
        for unit in &segment.units {
            self.batch.conclude(*unit, verdict.clone());
        }
    }

    /// The server itself does not know whether it has committed: neither run again nor told to be
    /// done.
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
        let said = error.to_string();
        let fault = match F::CLIENTS_OWN {
            true => answers.fault_verbatim(error, at),
            false => Fault::unknown(format!(
                "the database does not know whether this write was committed: {said}"
            )),
        };
        let rung = self.rung(&transaction.segment.mode);
        for unit in &transaction.segment.units {
            self.tally.add(rung, self.batch.writes_of(*unit).len());
            self.batch.fail(*unit, fault.clone());
        }
    }

    /// Somebody holds a lock on a whole table: its writes wait on their own, the others go on.
    fn table_locked(&mut self, segment: Segment, version: u64, error: ServerError) {
        if self.purpose == Purpose::LockWait {
            return self.tell(&segment, &Fault::from(error).into());
        }
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
        let statement = transaction.statements.get(at).cloned();
        match transaction.segment.mode {
            _ if transaction.segment.units.len() > 1
                && self.asks_for_care(&transaction.segment, &error) =>
            {
                let tells = tells(&error.code) && matches!(statement, Some(Sent::Set { .. }));
                let untried = transaction.segment.mode == Mode::Sets;
                self.missed |= transaction.segment.mode == Mode::Telling;
                self.care = Some(Care::after(
                    untried && tells && self.batch.can_tell(&transaction.segment.units),
                    error.code == LOCK_NOT_AVAILABLE,
                ));
            }
            Mode::Sets => self.sets_failed(transaction.segment, statement.as_ref(), &error),
            Mode::Telling => {
                self.missed = true;
                self.regroup(&transaction.segment.units);
            }
            Mode::Grouped => {
                self.grouped_failed(&transaction.segment.units, statement.as_ref(), error);
            }
            Mode::Own
                if may_be_stale(&error.code) || self.asks_origin(&transaction.segment, &error) =>
            {
                let before = self.before(&transaction, answers, at);
                if !before.is_empty() {
                    let unit = transaction.segment.first_unit();
                    F::remember(&mut self.batch.attempts, unit, before);
                }
                let segment = Segment::new(transaction.segment.units, Mode::Fresh);
                self.next.push(segment);
            }
            // Made of a description that may be true no longer.
            Mode::Fresh
                if self.batch.distrusted
                    && !F::CLIENTS_OWN
                    && ["42", "0A"].contains(&error.code.get(..2).unwrap_or_default()) =>
            {
                self.again(&transaction.segment, error);
            }
            Mode::Own | Mode::Fresh
                if error.code == LOCK_NOT_AVAILABLE && self.purpose == Purpose::Batches =>
            {
                self.waited_in_vain(&transaction, at, answers, error);
            }
            Mode::Own | Mode::Fresh | Mode::Probe | Mode::Refuse(..) => {
                let fault = self.fault_of(&transaction, at, answers, error);
                self.tell(&transaction.segment, &fault);
            }
        }
    }

    /// A unit in a transaction of its own has waited for a lock for too long, or was asked to give
    /// up.
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

    /// What a unit is told whose statement failed in a transaction, or a part of one, that is its
    /// own.
    pub(crate) fn fault_of(
        &mut self,
        transaction: &SentTransaction,
        at: usize,
        answers: &Answers,
        error: ServerError,
    ) -> UnitFault<DoneOf<F>> {
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
            before: F::recall(
                &mut self.batch.attempts,
                transaction.segment.first_unit(),
                now,
            ),
            fault: match F::CLIENTS_OWN {
                true => answers.fault_verbatim(error, at),
                false => Fault::from(error),
            },
        }
    }

    /// Whether what failed must be set apart without anybody overtaking it, or waits for a lock
    /// that others of the batch may wait for too.
    fn asks_for_care(&self, segment: &Segment, error: &ServerError) -> bool {
        let joined = matches!(segment.mode, Mode::Sets | Mode::Telling | Mode::Grouped);
        let waits = error.code == LOCK_NOT_AVAILABLE && self.purpose == Purpose::Batches;
        joined && (waits || self.batch.sources.any())
    }

    /// Whether the client's own text would be told more: where in it the error is.
    pub(crate) fn asks_origin(&self, segment: &Segment, error: &ServerError) -> bool {
        let waited = matches!(error.code.as_str(), LOCK_NOT_AVAILABLE | CANCELED);
        !waited && self.batch.asks_origin(segment.first_unit(), error)
    }

    /// The failure is final.
    fn tell(&mut self, segment: &Segment, fault: &UnitFault<DoneOf<F>>) {
        let solo = self.batch.units.len() == 1;
        self.tally
            .add(if solo { Rung::Solo } else { Rung::Isolated }, 1);
        for unit in &segment.units {
            self.batch.fail(*unit, fault.clone());
        }
    }

    /// Which write of its unit a statement was. A commit that fails names none: clients who are
    /// told of each statement are told that it was behind the last one, whose answer it follows.
    pub(super) fn write_of(&self, statement: Option<&Sent>, segment: &Segment) -> usize {
        match statement {
            Some(Sent::Single(item) | Sent::FollowUp(item)) => {
                let placed = self.batch.placed.get(*item as usize);
                placed.map_or(0, |placed| placed.write as usize)
            }
            _ if F::CLIENTS_OWN => {
                let unit = segment.first_unit();
                self.batch.writes_of(unit).len()
            }
            _ => 0,
        }
    }

    fn sets_failed(&mut self, segment: Segment, statement: Option<&Sent>, error: &ServerError) {
        let tells = tells(&error.code) && matches!(statement, Some(Sent::Set { .. }));
        match segment.units.as_slice() {
            [unit] => self.next.push(Segment::one(*unit, Mode::Own)),
            units if tells && self.batch.can_tell(units) => {
                self.next.push(Segment::new(segment.units, Mode::Telling));
            }
            // Most pieces hold no failure; those that do are grouped then.
            units if units.len() > 2 * PIECE => {
                self.next.extend(Segment::pieces(units, PIECE, &Mode::Sets));
            }
            units => self.regroup(units),
        }
    }

    fn regroup(&mut self, units: &[u32]) {
        self.next
            .extend(Segment::pieces(units, PIECE, &Mode::Grouped));
    }

    fn grouped_failed(&mut self, units: &[u32], statement: Option<&Sent>, error: ServerError) {
        if let [unit] = units {
            return self.next.push(Segment::one(*unit, Mode::Own));
        }
        let failed = statement.and_then(Sent::write).and_then(|item| {
            let placed = self.batch.placed.get(item as usize)?;
            Some(placed.unit)
        });
        let Some(place) = failed.and_then(|unit| units.iter().position(|u| *u == unit)) else {
            return self.halve(units);
        };
        let (before, rest) = units.split_at(place);
        let (unit, after) = rest.split_first().unwrap_or((&0, &[]));
        if !before.is_empty() {
            self.next.push(Segment::new(before.to_vec(), Mode::Grouped));
        }
        if error.code == LOCK_NOT_AVAILABLE && self.purpose == Purpose::Batches {
            self.batch
                .conclude(*unit, Verdict::WaitsForLock(Fault::from(error)));
        } else {
            self.next.push(Segment::one(*unit, Mode::Own));
        }
        let after = self.set_apart(before.len(), after);
        self.regroup(after);
    }

    /// Where one failure follows another, the next ones are run apart at once: a batch of nothing
    /// but failures must not take a round trip for each.
    fn set_apart<'s>(&mut self, before: usize, after: &'s [u32]) -> &'s [u32] {
        let dense = before < 4;
        self.burst = match self.burst {
            _ if !dense => 0,
            0 => 2,
            burst => (burst * 2).min(LONGEST_BURST),
        };
        let (apart, rest) = after.split_at(self.burst.min(after.len()));
        self.next.extend(Segment::pieces(apart, 1, &Mode::Own));
        rest
    }

    /// The commit failed, which names no write.
    fn halve(&mut self, units: &[u32]) {
        let (first, second) = units.split_at(units.len() / 2);
        for half in [first, second] {
            self.next.push(Segment::new(half.to_vec(), Mode::Grouped));
        }
    }
}

/// What a unit is told that Windrow itself refuses.
pub(crate) fn refusal<D>(at: usize, fault: Fault) -> UnitFault<D> {
    UnitFault {
        at,
        fault,
        before: Vec::new(),
    }
}
