//! The answers to writes that succeeded, from the answers to their statements.

use std::sync::Arc;

use windrow_core::{
    Extra, Generated, Returned, Signature, SqlCall, UnitFault, Value, Write, WriteDone,
};
use windrow_pgwire::wire::DataRow;

use super::{Settler, refusal};
use crate::catalog::check::CheckResult;
use crate::compiled::{Compiled, CompiledForm};
use crate::executor::answers::{Answers, Framed, number};
use crate::executor::messages::KnownTypes;
use crate::executor::sent::{Sent, SentTransaction};
use crate::fault::other_columns;
use crate::row_statement::RowStatement;
use crate::values::decode;

impl Settler<'_, '_> {
    pub(super) fn single_done(&mut self, item: u32, answers: &Answers, at: usize) {
        if let Some(compiled) = self.batch.compiled_at(item) {
            let mut done = done_one(compiled, answers, at);
            let call = self.batch.write_at(item).and_then(Write::call);
            if let (Some(types), Some(call)) = (answers.types(at), call) {
                add_types(call, types, &mut done);
            }
            self.set(item, done);
        }
    }

    fn set(&mut self, item: u32, done: WriteDone) {
        if let Some(slot) = self.batch.done.get_mut(item as usize) {
            *slot = done;
        }
    }

    /// Adds the value that the preceding write took from a sequence to its answer.
    pub(super) fn followed_up(&mut self, item: u32, answers: &Answers, at: usize) {
        let sequence = self.batch.compiled_at(item).and_then(|c| c.generates);
        let row = answers.rows_of(at).next();
        let value = row.and_then(|row| row.get(0).and_then(number));
        let done = self.batch.done.get_mut(item as usize);
        if let (Some(sequence), Some(value), Some(done)) = (sequence, value, done) {
            done.extra.get_or_insert_default().generated = Some(Generated { sequence, value });
        }
    }

    /// Records the result of a check that did not fail, from this column of its row. A guard gives
    /// no row.
    pub(super) fn found(&mut self, version: u64, answers: &Answers, (at, column): (usize, usize)) {
        let row = answers.rows_of(at).next();
        let said = row.as_ref().and_then(|row| row.get(column));
        match said.map_or(CheckResult::Alike, CheckResult::of) {
            CheckResult::Alike => {}
            CheckResult::Irrelevant => self.findings.irrelevant.push(version),
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
        let begin = begin_of_set(&compiled, set.counted);
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
                take_row(&compiled, answers, framed, done);
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
    ) -> Option<UnitFault> {
        let mut statements = transaction.statements.iter().enumerate();
        statements.find_map(|(at, statement)| {
            let Sent::Single(item) = statement else {
                return None;
            };
            let KnownTypes::Reported(reported) = KnownTypes::of(self.batch.write_at(*item)?) else {
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
    ) -> Vec<WriteDone> {
        let unit = transaction.segment.first_unit();
        let whole = self.batch.units.get(unit as usize);
        let writes = whole.map_or(0, |unit| unit.writes().len());
        if !self.batch.is_of_calls || writes < 2 && at == 0 || writes == 0 {
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

/// Returns the answer to one write from the answers to its statement.
fn done_one(compiled: &Compiled, answers: &Answers, at: usize) -> WriteDone {
    let rows = answers.count(at);
    match &compiled.form {
        CompiledForm::Row(statement) => {
            let mut done = nothing(statement);
            done.rows = rows;
            if let Some(returned) = &mut done.returned {
                let rows = answers.rows_of(at);
                returned.rows = rows.map(|row| decoded(statement, row.columns())).collect();
            }
            done
        }
        CompiledForm::Call(bound) => {
            let messages = answers.messages(at);
            let signature = bound.changed_signature.clone();
            let extra = (!messages.is_empty() || signature.is_some()).then(|| {
                Box::new(Extra {
                    messages,
                    generated: None,
                    signature,
                })
            });
            WriteDone {
                extra,
                ..WriteDone::rows(rows)
            }
        }
    }
}

/// Returns the answer to a write of a set-based statement before its own row is added: no row
/// written, or one row if the statement counts its rows (`is_counted`).
fn begin_of_set(compiled: &Compiled, is_counted: bool) -> WriteDone {
    match &compiled.form {
        CompiledForm::Row(_) if is_counted => WriteDone::rows(1),
        CompiledForm::Row(statement) => nothing(statement),
        CompiledForm::Call(bound) => {
            let mut done = WriteDone::rows(u64::from(is_counted));
            if let Some(signature) = &bound.changed_signature {
                done.extra.get_or_insert_default().signature = Some(signature.clone());
            }
            done
        }
    }
}

/// Adds the row that a set-based statement gave for a write to the answer.
fn take_row(compiled: &Compiled, answers: &Answers, framed: &Framed, done: &mut WriteDone) {
    match &compiled.form {
        CompiledForm::Row(_) if !framed.done => {}
        CompiledForm::Row(statement) => {
            done.rows = 1;
            if let Some(returned) = &mut done.returned {
                let row = answers.own_row(framed);
                let values = row.iter().flat_map(DataRow::columns);
                returned.rows = vec![decoded(statement, values)];
            }
        }
        CompiledForm::Call(_) => {
            done.rows += u64::from(framed.done);
            let row = answers.row_of(framed);
            let generated = framed.taken.zip(compiled.generates);
            if row.is_empty() && generated.is_none() {
                return;
            }
            let extra = done.extra.get_or_insert_default();
            extra.messages = match extra.messages.is_empty() {
                true => row,
                // The key is no longer unique.
                false => [&*extra.messages, &*row].concat().into(),
            };
            extra.generated = generated.map(|(value, sequence)| Generated { sequence, value });
        }
    }
}

/// Adds the types that a call's statement had when it was executed to the answer, if they differ
/// from those of its description. A client's own text contains its literals, so it has fewer
/// parameters.
fn add_types(call: &SqlCall, types: &Signature, done: &mut WriteDone) {
    let reported = call.statement.signature();
    let literals = reported.parameters.iter().skip(types.parameters.len());
    let now = Signature {
        parameters: types.parameters.iter().chain(literals).copied().collect(),
        fields: types.fields.clone(),
    };
    let changed = (now != **reported).then(|| Arc::new(now));
    if call.fresh && (changed.is_some() || done.extra.is_some()) {
        done.extra.get_or_insert_default().signature = changed;
    }
}

/// Returns the answer to a row write that did nothing.
fn nothing(statement: &RowStatement) -> WriteDone {
    let columns = &statement.result_names;
    let returned = (!columns.is_empty()).then(|| {
        Box::new(Returned {
            columns: columns.clone(),
            rows: Vec::new(),
        })
    });
    WriteDone {
        returned,
        ..WriteDone::default()
    }
}

fn decoded<'r>(
    statement: &RowStatement,
    row: impl Iterator<Item = Option<&'r [u8]>>,
) -> Box<[Value]> {
    let kinds = statement.result_kinds.iter();
    let values = kinds.zip(row).map(|(kind, text)| decode::value(kind, text));
    values.collect()
}
