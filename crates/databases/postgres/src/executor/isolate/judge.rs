//! Decides from the answers to an attempt whether it may be committed, and if not, how to make the
//! next one.

use std::collections::HashMap;

use windrow_core::sink::Purpose;
use windrow_core::{Fault, Rung, Tally, UnitFault, Verdict};
use windrow_pgwire::wire::ServerError;

use crate::executor::answers::Answers;
use crate::executor::batch::Batch;
use crate::executor::codes::Findings;
use crate::executor::codes::{ErrorMeaning, LOCK_NOT_AVAILABLE, may_be_stale};
use crate::executor::connection::Connection;
use crate::executor::isolation::Isolation;
use crate::executor::segment::{Mode, Segment};
use crate::executor::sent::{Sent, SentTransaction};
use crate::executor::settle::{Settler, refusal};

const FOREIGN_KEY_VIOLATION: &str = "23503";

/// The transactions of one round trip, with their answers.
pub(super) type Leg = Vec<(SentTransaction, Answers)>;

/// The state of an attempt.
#[derive(Debug)]
pub(super) struct Judged {
    /// All units of the attempt.
    pub(super) units: Vec<u32>,
    /// The faults of the units that failed. They are answered once the attempt is committed.
    failed: HashMap<u32, UnitFault>,
    /// Units whose rows were left out. Each runs in a part of its own next, to get its own error.
    pub(super) missing: Vec<u32>,
    waits: Vec<(u32, Fault)>,
    /// True if the attempt cannot be committed, because it has shown how the next one must differ.
    pub(super) rerun: bool,
    /// True if deferred foreign keys are checked at their statements.
    pub(super) at_once: bool,
    /// True if a failure named no unit.
    nameless: bool,
    parts: usize,
    broken: usize,
    /// The reason why the server rolled the attempt back, if that is no fault of a unit.
    pub(super) again: Option<Fault>,
    pub(super) findings: Findings,
    /// True if nothing is lost with the attempt, because it only reads.
    pub(super) reads: bool,
    /// The cost of the attempt, counted once it is committed.
    pub(super) tally: Tally,
}

impl Judged {
    pub(super) fn of(units: Vec<u32>) -> Self {
        Self {
            units,
            failed: HashMap::new(),
            missing: Vec::new(),
            waits: Vec::new(),
            rerun: false,
            at_once: false,
            nameless: false,
            parts: 0,
            broken: 0,
            again: None,
            findings: Findings::default(),
            reads: true,
            tally: Tally::default(),
        }
    }

    /// Returns true if the attempt may be committed.
    pub(super) fn is_fine(&self) -> bool {
        !self.rerun && !self.findings.stale && self.again.is_none()
    }

    /// Gives all units their verdicts once the attempt is committed.
    pub(super) fn tell(mut self, batch: &mut Batch<'_>) {
        for unit in &self.units {
            if !is_open(batch, *unit) {
                continue;
            }
            match self.failed.remove(unit) {
                Some(fault) => batch.fail(*unit, fault),
                None => batch.succeed(*unit),
            }
        }
    }
}

/// Evaluates the answers to an attempt.
pub(super) struct Judge<'j, 'u> {
    pub(super) connection: &'j mut Connection,
    pub(super) batch: &'j mut Batch<'u>,
    pub(super) isolation: &'j mut Isolation,
    pub(super) judged: &'j mut Judged,
}

impl<'u> Judge<'_, 'u> {
    /// Evaluates the parts of an attempt.
    pub(super) fn main(&mut self, leg: Leg) {
        for (transaction, mut answers) in leg {
            self.judged.parts += 1;
            self.judged.reads &= transaction.reads;
            match answers.error.take() {
                Some((at, error)) => self.failed(&transaction, &answers, at, error),
                None => self.done(&transaction, &answers),
            }
        }
    }

    /// Marks units whose rows were left out, if a later row with the same key was written: their
    /// failure may come from that row.
    pub(super) fn overtaken(&mut self, missing: &[u32]) {
        if missing.is_empty() || !self.batch.sources.any() {
            return;
        }
        let keys = |batch: &Batch<'_>, unit: u32| -> Vec<u64> {
            let placed = batch.placed_of(unit);
            placed.flat_map(|p| batch.keys_of(p).to_vec()).collect()
        };
        let mut last: HashMap<u64, u32> = HashMap::new();
        let written = self.judged.units.iter();
        let written = written.filter(|unit| missing.binary_search(unit).is_err());
        for unit in written.copied() {
            last.extend(keys(self.batch, unit).into_iter().map(|key| (key, unit)));
        }
        for unit in missing {
            let later = |key: &u64| last.get(key).is_some_and(|last| last > unit);
            if keys(self.batch, *unit).iter().any(later) {
                self.retry(*unit, Mode::Own);
            }
        }
    }

    /// Evaluates the parts of units whose rows were left out. The units after them have been
    /// written by then, so only a failure counts, and only one that these later units cannot have
    /// caused.
    pub(super) fn missing(&mut self, leg: Leg) {
        for (transaction, mut answers) in leg {
            self.judged.reads &= transaction.reads;
            let unit = transaction.segment.first_unit();
            match answers.error.take() {
                Some((at, error)) if error.code.starts_with("23") => {
                    self.fails(unit, &transaction, &answers, at, error);
                }
                Some((at, error)) => {
                    self.failed(&transaction, &answers, at, error);
                    self.retry(unit, Mode::Own);
                }
                None if self.batch.sources.any() => self.retry(unit, Mode::Own),
                None => drop(self.settler().take(&transaction, &answers)),
            }
        }
    }

    /// Gives units that wait for locks their verdict, and lets the later units of their sources
    /// wait. Refines the plan if another attempt is needed.
    pub(super) fn settle(&mut self) {
        for (unit, fault) in std::mem::take(&mut self.judged.waits) {
            self.batch.conclude(unit, Verdict::WaitsForLock(fault));
            // The later units have been written in this attempt.
            self.judged.rerun |= {
                let mut followers = self.batch.sources.followers(unit);
                followers.any(|unit| is_open(self.batch, unit))
            };
            self.batch.hold_behind(unit);
        }
        if self.judged.rerun {
            let most = self.judged.broken * 2 > self.judged.parts;
            self.isolation.refine(self.judged.nameless, most);
        }
    }

    fn settler(&mut self) -> Settler<'_, 'u> {
        let judged = &mut *self.judged;
        self.connection
            .settler(self.batch, &mut judged.tally, &mut judged.findings)
    }

    fn done(&mut self, transaction: &SentTransaction, answers: &Answers) {
        let unit = transaction.segment.first_unit();
        match &transaction.segment.mode {
            // The statement can be parsed now, so a table has changed.
            Mode::Probe => self.judged.findings.stale = true,
            Mode::Refuse(at, fault) => {
                let refused = refusal(*at, fault.clone());
                self.judged.failed.insert(unit, refused);
            }
            _ => {
                if let Some(refused) = self.settler().other_rows(transaction, answers) {
                    self.batch.fail(unit, refused);
                    self.judged.rerun = true;
                    return;
                }
                // The unit was expected to fail, and later units of its source ran before it.
                self.judged.rerun |= self.is_behind(unit);
                let missing = self.settler().take(transaction, answers);
                self.judged.missing.extend(missing);
            }
        }
    }

    /// Returns true if later units of the unit's source ran before it.
    fn is_behind(&self, unit: u32) -> bool {
        self.isolation.has_marks_last && self.isolation.expects(unit) && self.batch.sources.any()
    }

    fn failed(
        &mut self,
        transaction: &SentTransaction,
        answers: &Answers,
        at: usize,
        error: ServerError,
    ) {
        self.judged.broken += 1;
        let purpose = self.connection.purpose;
        let meaning =
            ErrorMeaning::in_batch(self.batch, transaction, answers, (at, &error), purpose);
        self.judged.findings.note(meaning);
        let is_ours = transaction.segment.units.is_empty()
            || transaction.statements.get(at) == Some(&Sent::Savepoint);
        match meaning {
            ErrorMeaning::Own if !is_ours => self.write_failed(transaction, answers, at, error),
            ErrorMeaning::Own
            | ErrorMeaning::Again
            | ErrorMeaning::Leave
            | ErrorMeaning::Unknown => {
                self.judged.again = Some(error.into());
            }
            ErrorMeaning::TableLocked(version) => self.table_locked(transaction, version, &error),
            ErrorMeaning::StatementsGone
            | ErrorMeaning::Changed(_)
            | ErrorMeaning::Unguarded(_) => {
                self.judged.rerun = true;
            }
        }
    }

    fn write_failed(
        &mut self,
        transaction: &SentTransaction,
        answers: &Answers,
        at: usize,
        error: ServerError,
    ) {
        let waits = error.code == LOCK_NOT_AVAILABLE && self.connection.purpose == Purpose::Batches;
        match transaction.segment.units.as_slice() {
            [unit] if waits => self.judged.waits.push((*unit, error.into())),
            [unit] => self.unit_failed(*unit, transaction, answers, at, error),
            units => self.piece_failed(units, transaction.statements.get(at), waits, &error),
        }
    }

    fn table_locked(&mut self, transaction: &SentTransaction, version: u64, error: &ServerError) {
        for unit in &transaction.segment.units {
            let tables = self.batch.tables_of(&[*unit]);
            if tables.iter().any(|table| table.version == version) {
                let fault = Fault::from(error.clone());
                self.judged.waits.push((*unit, fault));
            } else {
                self.judged.rerun = true;
            }
        }
    }

    /// Handles a unit that has failed in a part of its own.
    fn unit_failed(
        &mut self,
        unit: u32,
        transaction: &SentTransaction,
        answers: &Answers,
        at: usize,
        error: ServerError,
    ) {
        let asks_fresh = self.asks_fresh(&transaction.segment, &error);
        let about_values = error.code == "23502" || may_be_stale(&error.code);
        match transaction.segment.mode {
            Mode::Sets | Mode::Telling => self.retry(unit, Mode::Own),
            Mode::Own if asks_fresh => self.retry(unit, Mode::Fresh),
            // Only a failure that comes from the values alone does not depend on the units that ran
            // before this one out of order.
            Mode::Own | Mode::Fresh if self.is_behind(unit) && !about_values => {
                self.retry(unit, Mode::Own);
            }
            _ => self.fails(unit, transaction, answers, at, error),
        }
    }

    fn piece_failed(
        &mut self,
        units: &[u32],
        statement: Option<&Sent>,
        waits: bool,
        error: &ServerError,
    ) {
        self.judged.rerun = true;
        if waits {
            // Other units of the piece may wait as well.
            self.isolation.is_brief = true;
            return units
                .iter()
                .for_each(|unit| self.isolation.mark(*unit, Mode::Own));
        }
        let named = statement.and_then(Sent::write).and_then(|item| {
            let placed = self.batch.placed.get(item as usize)?;
            Some(placed.unit)
        });
        match named {
            Some(unit) => {
                let asks_fresh = self.asks_fresh(&Segment::one(unit, Mode::Own), error);
                self.isolation
                    .mark(unit, if asks_fresh { Mode::Fresh } else { Mode::Own });
            }
            None => self.judged.nameless = true,
        }
    }

    /// Returns true if the right error comes only from a statement that is parsed again.
    fn asks_fresh(&mut self, segment: &Segment, error: &ServerError) -> bool {
        may_be_stale(&error.code) || self.settler().asks_origin(segment, error)
    }

    fn retry(&mut self, unit: u32, mode: Mode) {
        self.isolation.mark(unit, mode);
        self.judged.rerun = true;
    }

    fn fails(
        &mut self,
        unit: u32,
        transaction: &SentTransaction,
        answers: &Answers,
        at: usize,
        error: ServerError,
    ) {
        if self.judged.at_once && error.code == FOREIGN_KEY_VIOLATION {
            // Its own transaction checks at COMMIT, where the row may have its parent.
            self.isolation.separate(unit);
            self.judged.rerun = true;
            return;
        }
        let fault = self.settler().fault_of(transaction, at, answers, error);
        self.judged.failed.insert(unit, fault);
        self.judged.tally.add(Rung::Isolated, 1);
    }
}

fn is_open(batch: &Batch<'_>, unit: u32) -> bool {
    let verdict = batch.verdicts.get(unit as usize);
    verdict.is_some_and(Option::is_none)
}
