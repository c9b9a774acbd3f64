//! Judges the answers to the statements of a transaction.

use std::collections::HashSet;

use windrow_core::{Fault, FaultClass, Rung, WriteDone};

use super::answers::StepAnswer;
use super::client_batch::ClientBatch;
use super::client_connection::{ClientConnection, Stop};
use super::lane_session::success;
use super::meaning::Generates;
use super::steps::ClientStep;
use crate::fault::{INTERRUPTED, Refusal, Scope};

/// The judgement of a transaction's answers. The outcomes hold if the transaction commits.
#[derive(Default)]
pub(super) struct Judgement {
    pub(super) answered: Vec<(u32, Result<WriteDone, Fault>)>,
    pub(super) rungs: Vec<(Rung, usize)>,
    /// Units whose statements met another session's lock and were undone.
    pub(super) waiting: Vec<(u32, Fault)>,
    /// INSERTs of many rows that the server undid.
    pub(super) undone: Vec<ClientStep>,
    /// The statements of rows that were written, and cannot be answered.
    pub(super) singles: HashSet<u64>,
    /// True if a statement warned or failed and its warnings were not asked for.
    has_unshown_warnings: bool,
    /// True if a statement met another session's lock.
    pub(super) has_met_lock: bool,
    /// The error by which the server ended the transaction.
    pub(super) ended: Option<Fault>,
    /// True once a statement of many rows was undone.
    is_isolating: bool,
}

impl Judgement {
    /// Takes the answers to statements.
    ///
    /// # Errors
    /// The server ends the connection.
    pub(super) fn take(
        &mut self,
        connection: &ClientConnection,
        batch: &ClientBatch<'_>,
        steps: &[ClientStep],
        answers: &[StepAnswer],
    ) -> Result<(), Stop> {
        for (step, answer) in steps.iter().zip(answers) {
            let Err(mut refusal) = success(&answer.reply) else {
                self.succeeded(connection, batch, step, answer);
                continue;
            };
            if connection.has_killed && refusal.number == INTERRUPTED {
                refusal.scope = Scope::Lock;
                refusal.fault = Fault::new(FaultClass::Conflict, "55P03", "it waits for a lock");
            }
            match refusal.scope {
                Scope::Connection => return Err(Stop::Ended(refusal.fault)),
                Scope::Transaction => {
                    self.ended.get_or_insert(refusal.fault);
                }
                Scope::Lock | Scope::Statement => self.refused(batch, step, answer, *refusal),
            }
        }
        self.is_isolating |= !self.undone.is_empty();
        Ok(())
    }

    /// Returns true if the transaction must be rolled back whatever else was answered.
    pub(super) fn must_undo(&self) -> bool {
        self.ended.is_some() || self.has_unshown_warnings || !self.singles.is_empty()
    }

    /// Returns true if a unit was answered whose source has one of these units before it.
    pub(super) fn answered_behind(
        &self,
        batch: &ClientBatch<'_>,
        units: impl IntoIterator<Item = u32>,
    ) -> bool {
        if !batch.sources.any() {
            return false;
        }
        let answered: HashSet<u32> = self.answered.iter().map(|(unit, _)| *unit).collect();
        let mut behind = units
            .into_iter()
            .flat_map(|unit| batch.sources.followers(unit));
        behind.any(|unit| answered.contains(&unit))
    }

    /// Notes that the rows of statements are to be executed one by one.
    pub(super) fn run_singly(&mut self, batch: &ClientBatch<'_>, steps: &[ClientStep]) {
        let firsts = steps
            .iter()
            .filter_map(|step| batch.call(*step.units.first()?));
        self.singles.extend(firsts.map(|of| of.call.statement.id()));
    }

    fn refused(
        &mut self,
        batch: &ClientBatch<'_>,
        step: &ClientStep,
        answer: &StepAnswer,
        refusal: Refusal,
    ) {
        self.has_met_lock |= refusal.scope == Scope::Lock;
        let [unit] = step.units.as_slice() else {
            self.undone.push(step.clone());
            return;
        };
        if refusal.scope == Scope::Lock {
            self.waiting.push((*unit, refusal.fault));
            return;
        }
        if let Some(meaning) = batch.call(*unit).and_then(|of| of.meaning) {
            meaning.note_failure();
        }
        match answer.failure(refusal.fault) {
            Some(fault) => self.answer(step, [Err(fault)]),
            None => self.has_unshown_warnings = true,
        }
    }

    fn succeeded(
        &mut self,
        connection: &ClientConnection,
        batch: &ClientBatch<'_>,
        step: &ClientStep,
        answer: &StepAnswer,
    ) {
        let first = step.units.first().and_then(|unit| batch.call(*unit));
        let Some(of) = first else {
            return;
        };
        if let Some(meaning) = of.meaning {
            let warned = success(&answer.reply).is_ok_and(|ok| ok.warning_count > 0);
            meaning.note_warnings(warned);
        }
        if let [_] = step.units.as_slice() {
            let has_number = success(&answer.reply).is_ok_and(|ok| ok.insert_id != 0);
            if let (Generates::Never, true, Some(m)) = (step.generates, has_number, of.meaning) {
                connection.catalog.retire_table(&m.table.name);
            }
            match answer.single(step.generates) {
                Some(done) => self.answer(step, [Ok(done)]),
                None => self.has_unshown_warnings = true,
            }
            return;
        }
        match answer.rows(step.units.len(), connection.session.increment) {
            Some(dones) => self.answer(step, dones.into_iter().map(Ok)),
            None => self.run_singly(batch, std::slice::from_ref(step)),
        }
    }

    fn answer(
        &mut self,
        step: &ClientStep,
        outcomes: impl IntoIterator<Item = Result<WriteDone, Fault>>,
    ) {
        self.answered
            .extend(step.units.iter().copied().zip(outcomes));
        let rung = match step.units.len() {
            1 if self.is_isolating => Rung::Isolated,
            1 => Rung::Grouped,
            _ => Rung::Fused,
        };
        self.rungs.push((rung, step.units.len()));
    }
}
