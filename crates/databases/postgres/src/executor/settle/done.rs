//! The answers to writes that succeeded, from the answers to their statements.

use windrow_calls::Generated;
use windrow_core::UnitFault;

use super::{Settler, refusal};
use crate::catalog::check::CheckResult;
use crate::executor::answers::{Answers, number};
use crate::executor::form::{DoneOf, KnownTypes, WorkKind};
use crate::executor::sent::{Sent, SentTransaction};
use crate::fault::other_columns;

impl<F: WorkKind> Settler<'_, '_, F> {
    pub(super) fn single_done(&mut self, item: u32, answers: &Answers, at: usize) {
        if let Some(compiled) = self.batch.compiled_at(item) {
            let mut done = F::done_one(compiled, answers, at);
            let write = self.batch.write_at(item);
            if let (Some(types), Some(write)) = (answers.types(at), write) {
                F::typed(write, types, &mut done);
            }
            self.set(item, done);
        }
    }

    fn set(&mut self, item: u32, done: DoneOf<F>) {
        if let Some(slot) = self.batch.done.get_mut(item as usize) {
            *slot = done;
        }
    }

    /// Adds the value that the write before took from a sequence to its answer.
    pub(super) fn followed_up(&mut self, item: u32, answers: &Answers, at: usize) {
        let sequence = self.batch.compiled_at(item).and_then(|c| c.generates);
        let row = answers.rows_of(at).next();
        let value = row.and_then(|row| row.get(0).and_then(number));
        let done = self.batch.done.get_mut(item as usize);
        if let (Some(sequence), Some(value), Some(done)) = (sequence, value, done) {
            F::generated(done, Generated { sequence, value });
        }
    }

    /// Records the result of a check that did not fail, from this column of its row. A guard gives
    /// no row.
    pub(super) fn found(&mut self, version: u64, answers: &Answers, (at, column): (usize, usize)) {
        let row = answers.rows_of(at).next();
        let said = row.as_ref().and_then(|row| row.get(column));
        match said.map_or(CheckResult::Alike, CheckResult::of) {
            CheckResult::Alike => {}
            CheckResult::Told => self.findings.told.push(version),
            CheckResult::Outdated => self.findings.outdated.push(version),
        }
    }

    /// Takes in the answers of a set-based statement. Returns the units whose rows were left out
    /// because they would fail.
    pub(super) fn set_done(
        &mut self,
        items: &[u32],
        telling: bool,
        answers: &Answers,
        at: usize,
    ) -> Vec<u32> {
        let first = items.first().copied().unwrap_or(u32::MAX);
        let Some(compiled) = self.batch.compiled_at(first).cloned() else {
            return Vec::new();
        };
        let Some(set) = compiled.set(telling) else {
            return Vec::new();
        };
        let begin = F::begin_of_set(&compiled, set.counted);
        for item in items {
            if let Some(slot) = self.batch.done.get_mut(*item as usize) {
                slot.clone_from(&begin);
            }
        }
        let mut took_place = vec![false; if telling { items.len() } else { 0 }];
        for framed in answers.framed(at) {
            if let Some(slot) = took_place.get_mut(framed.place) {
                *slot |= framed.done;
            }
            let item = items.get(framed.place);
            let done = item.and_then(|item| self.batch.done.get_mut(*item as usize));
            if let Some(done) = done {
                F::take_row(&compiled, answers, framed, done);
            }
        }
        let missing = items.iter().zip(took_place).filter(|(_, took)| !took);
        let unit = |item: &u32| Some(self.batch.placed.get(*item as usize)?.unit);
        missing.filter_map(|(item, _)| unit(item)).collect()
    }

    /// Returns a fault if a write gave rows with other columns than its client knows. The
    /// transaction must not be committed then.
    pub(crate) fn other_rows(
        &self,
        transaction: &SentTransaction,
        answers: &Answers,
    ) -> Option<UnitFault<DoneOf<F>>> {
        let mut statements = transaction.statements.iter().enumerate();
        statements.find_map(|(at, statement)| {
            let Sent::Single(item) = statement else {
                return None;
            };
            let KnownTypes::Reported(reported) = F::known_types(self.batch.write_at(*item)?) else {
                return None;
            };
            let place = self.write_of(Some(statement), &transaction.segment);
            let is_other = !answers.types(at)?.same_rows(reported);
            is_other.then(|| refusal(place, other_columns()))
        })
    }

    /// Returns the answers to the writes of a unit before the failed one, if its client gets them.
    pub(super) fn before(
        &mut self,
        transaction: &SentTransaction,
        answers: &Answers,
        at: usize,
    ) -> Vec<DoneOf<F>> {
        let unit = transaction.segment.first_unit();
        let whole = self.batch.units.get(unit as usize);
        let writes = whole.map_or(0, |unit| unit.work().len());
        if !F::CLIENTS_OWN || writes < 2 && at == 0 || writes == 0 {
            return Vec::new();
        }
        let ended = transaction.statements.iter().enumerate().take(at);
        let mut items = Vec::new();
        for (at, statement) in ended {
            match statement {
                Sent::Single(item) => {
                    self.single_done(*item, answers, at);
                    items.push(*item);
                }
                Sent::FollowUp(item) => self.followed_up(*item, answers, at),
                Sent::Guard(_) | Sent::Savepoint | Sent::Set { .. } => {}
            }
        }
        let done = |item: &u32| self.batch.done.get_mut(*item as usize).map(std::mem::take);
        items.iter().filter_map(done).collect()
    }
}
