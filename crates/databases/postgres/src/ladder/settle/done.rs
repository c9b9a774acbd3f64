//! What writes are told that succeeded, from the answers to their statements.

use windrow_core::UnitFault;

use super::{Settler, refusal};
use crate::catalog::check::Found;
use crate::ladder::answers::Answers;
use crate::ladder::form::{DoneOf, Form, Slots};
use crate::ladder::sent::{Sent, SentTransaction};

impl<F: Form> Settler<'_, '_, F> {
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

    /// What the question behind a write has answered.
    pub(super) fn followed_up(&mut self, item: u32, answers: &Answers, at: usize) {
        let Some(compiled) = self.batch.compiled_at(item).cloned() else {
            return;
        };
        let done = self.batch.done.get_mut(item as usize);
        if let (Some(row), Some(done)) = (answers.rows_of(at).next(), done) {
            compiled.form.followed_up(row, done);
        }
    }

    /// What a check says that has not failed, in this column of a statement; a guard gives no row.
    pub(super) fn found(&mut self, version: u64, answers: &Answers, (at, column): (usize, usize)) {
        let row = answers.rows_of(at).next();
        let said = row.as_ref().and_then(|row| row.get(column));
        match said.map_or(Found::Alike, Found::of) {
            Found::Alike => {}
            Found::Told => self.findings.told.push(version),
            Found::Outdated => self.findings.outdated.push(version),
        }
    }

    /// What a set-based statement says of its writes. Gives the units whose row was left out
    /// because it would fail.
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
        let done = &mut self.batch.done;
        let mut slots = Slots { done, items };
        F::done_set(&compiled, set, answers, at, &mut slots);
        if !telling {
            return Vec::new();
        }
        let missing = items.iter().filter_map(|item| {
            let done = self.batch.done.get(*item as usize)?;
            let placed = self.batch.placed.get(*item as usize)?;
            (F::rows(done) == 0).then_some(placed.unit)
        });
        missing.collect()
    }

    /// What a unit is told that has given other rows than its client was told, in a transaction
    /// that must not be committed for that.
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
            let fault = F::other_rows(self.batch.write_at(*item)?, answers.types(at)?)?;
            Some(refusal(
                self.write_of(Some(statement), &transaction.segment),
                fault,
            ))
        })
    }

    /// What the writes of a unit before the failed one were told, where their client is told so.
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
