//! What the answers to an attempt mean: may it be committed, and if not, what is known for the next
//! one.

use std::collections::HashMap;

use windrow_core::sink::Purpose;
use windrow_core::{Fault, Rung, Tally, UnitFault, Verdict, Work};
use windrow_pgwire::wire::ServerError;

use crate::executor::answers::Answers;
use crate::executor::batch::Batch;
use crate::executor::codes::{ErrorMeaning, LOCK_NOT_AVAILABLE, may_be_stale};
use crate::executor::connection::Connection;
use crate::executor::findings::Findings;
use crate::executor::form::{DoneOf, WorkKind};
use crate::executor::isolation::Isolation;
use crate::executor::segment::{Mode, Segment};
use crate::executor::sent::{Sent, SentTransaction};
use crate::executor::settle::{Settler, refusal};

/// What was sent in one go, and answered.
pub(super) type Leg = Vec<(SentTransaction, Answers)>;

/// What is known of an attempt.
#[derive(Debug)]
pub(super) struct Judged<D> {
    /// All units that took part.
    pub(super) units: Vec<u32>,
    /// What units are told once it is committed that have failed.
    failed: HashMap<u32, UnitFault<D>>,
    /// Units whose rows were left out: they have to fail by themselves.
    pub(super) missing: Vec<u32>,
    waits: Vec<(u32, Fault)>,
    /// It cannot be committed: more is known now than when it was made.
    pub(super) rerun: bool,
    /// A failure named no unit.
    nameless: bool,
    parts: usize,
    broken: usize,
    /// It was rolled back for no fault of its own.
    pub(super) again: Option<Fault>,
    pub(super) findings: Findings,
    /// Nothing can be lost with it.
    pub(super) reads: bool,
    /// What it took, if it is committed.
    pub(super) tally: Tally,
}

impl<D> Judged<D> {
    pub(super) fn of(units: Vec<u32>) -> Self {
        Self {
            units,
            failed: HashMap::new(),
            missing: Vec::new(),
            waits: Vec::new(),
            rerun: false,
            nameless: false,
            parts: 0,
            broken: 0,
            again: None,
            findings: Findings::default(),
            reads: true,
            tally: Tally::default(),
        }
    }

    /// Whether it may be committed.
    pub(super) fn is_fine(&self) -> bool {
        !self.rerun && !self.findings.stale && self.again.is_none()
    }

    /// What is certain now that it is committed.
    pub(super) fn tell<F>(mut self, batch: &mut Batch<'_, F>)
    where
        F: WorkKind,
        F::Work: Work<Done = D>,
    {
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

/// Takes in the answers.
pub(super) struct Judge<'j, 'u, F: WorkKind> {
    pub(super) connection: &'j mut Connection<F>,
    pub(super) batch: &'j mut Batch<'u, F>,
    pub(super) isolation: &'j mut Isolation,
    pub(super) judged: &'j mut Judged<DoneOf<F>>,
}

impl<'u, F: WorkKind> Judge<'_, 'u, F> {
    /// Takes in the parts of an attempt.
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

    /// Where a row was left out and a later one of its key was written, what it fails with may come
    /// from that.
    pub(super) fn overtaken(&mut self, missing: &[u32]) {
        if missing.is_empty() || !self.batch.sources.any() {
            return;
        }
        let keys = |batch: &Batch<'_, F>, unit: u32| -> Vec<u64> {
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

    /// Takes in the parts of units whose rows were left out. What came behind them has been written
    /// by then: so only a failure is believed, and only one in which that has no part.
    pub(super) fn missing(&mut self, leg: Leg) {
        for (transaction, mut answers) in leg {
            self.judged.reads &= transaction.reads;
            let unit = transaction.segment.first_unit();
            match answers.error.take() {
                Some((at, error)) if error.code.starts_with("23") => {
                    self.told(unit, &transaction, &answers, at, error);
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

    /// What waits for locks goes on alone, and what follows it waits for it. Whether that, or
    /// anything else, asks for another attempt.
    pub(super) fn settle(&mut self) {
        for (unit, fault) in std::mem::take(&mut self.judged.waits) {
            self.batch.conclude(unit, Verdict::WaitsForLock(fault));
            // They have been written in this attempt.
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

    fn settler(&mut self) -> Settler<'_, 'u, F> {
        let judged = &mut *self.judged;
        self.connection
            .settler(self.batch, &mut judged.tally, &mut judged.findings)
    }

    fn done(&mut self, transaction: &SentTransaction, answers: &Answers) {
        let unit = transaction.segment.first_unit();
        match &transaction.segment.mode {
            // The statement can be parsed by now: something has changed.
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
                // It was expected to fail, and what came behind it went before it.
                self.judged.rerun |= self.is_behind(unit);
                let missing = self.settler().take(transaction, answers);
                self.judged.missing.extend(missing);
            }
        }
    }

    /// Whether later units of its source ran before it.
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
        let meaning = self
            .batch
            .meaning(transaction, answers, (at, &error), purpose);
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

    /// A unit has failed in a part of its own.
    fn unit_failed(
        &mut self,
        unit: u32,
        transaction: &SentTransaction,
        answers: &Answers,
        at: usize,
        error: ServerError,
    ) {
        let anew = self.asks_anew(&transaction.segment, &error);
        let about_values = error.code == "23502" || may_be_stale(&error.code);
        match transaction.segment.mode {
            Mode::Sets | Mode::Telling => self.retry(unit, Mode::Own),
            Mode::Own if anew => self.retry(unit, Mode::Fresh),
            // Only a failure of the values alone is the same behind what it should have gone
            // before.
            Mode::Own | Mode::Fresh if self.is_behind(unit) && !about_values => {
                self.retry(unit, Mode::Own);
            }
            _ => self.told(unit, transaction, answers, at, error),
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
            // Others of the piece may wait as well.
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
                let anew = self.asks_anew(&Segment::one(unit, Mode::Own), error);
                self.isolation
                    .mark(unit, if anew { Mode::Fresh } else { Mode::Own });
            }
            None => self.judged.nameless = true,
        }
    }

    /// Whether a failure is told only to a statement that is parsed anew.
    fn asks_anew(&mut self, segment: &Segment, error: &ServerError) -> bool {
        may_be_stale(&error.code) || self.settler().asks_origin(segment, error)
    }

    fn retry(&mut self, unit: u32, mode: Mode) {
        self.isolation.mark(unit, mode);
        self.judged.rerun = true;
    }

    fn told(
        &mut self,
        unit: u32,
        transaction: &SentTransaction,
        answers: &Answers,
        at: usize,
        error: ServerError,
    ) {
        let fault = self.settler().fault_of(transaction, at, answers, error);
        self.judged.failed.insert(unit, fault);
        self.judged.tally.add(Rung::Isolated, 1);
    }
}

fn is_open(batch: &Batch<'_, impl WorkKind>, unit: u32) -> bool {
    let verdict = batch.verdicts.get(unit as usize);
    verdict.is_some_and(Option::is_none)
}
