//! What writes are told that succeeded.

use std::sync::Arc;

use windrow_core::{Done, Generated, Returned, Signature, Told};

use super::Settler;
use crate::ladder::answers;
use crate::ladder::answers::Answers;
use crate::ladder::batch::Batch;
use crate::ladder::form::{Compiled, Form};
use crate::ladder::send::{Sent, SentTransaction};
use crate::rows::fused;
use crate::rows::row_statement::RowStatement;
use crate::values::decode;

impl Settler<'_, '_> {
    pub(super) fn single_done(&mut self, item: u32, answers: &Answers, at: usize) {
        let Some(compiled) = compiled(self.batch, item) else {
            return;
        };
        let rows = answers.count(at);
        let Form::Write(row_statement) = &compiled.form else {
            let messages = answers.messages(at);
            let signature = news(compiled);
            let told = (!messages.is_empty() || signature.is_some()).then(|| {
                Box::new(Told {
                    messages,
                    generated: None,
                    signature,
                })
            });
            let returned = None;
            return self.set(
                item,
                Done {
                    rows,
                    returned,
                    told,
                },
            );
        };
        let mut done = empty(row_statement);
        done.rows = rows;
        if let Some(returned) = &mut done.returned {
            let rows = answers.rows_of(at);
            returned.rows = rows
                .map(|row| decode_row(row_statement, row.columns()))
                .collect();
        }
        self.set(item, done);
    }

    /// What a set-based statement says of its writes. Gives the units whose row was left out as a
    /// duplicate.
    pub(super) fn set_done(
        &mut self,
        items: &[u32],
        telling: bool,
        answers: &Answers,
        at: usize,
    ) -> Vec<u32> {
        let first = items.first().copied().unwrap_or_default();
        let Some(compiled) = compiled(self.batch, first) else {
            return Vec::new();
        };
        let form = if telling {
            &compiled.telling
        } else {
            &compiled.fused
        };
        if form
            .as_ref()
            .is_some_and(|form| form.told == fused::Told::All)
        {
            let mut done = Done::rows(1);
            if let Some(signature) = news(compiled) {
                done.told.get_or_insert_default().signature = Some(signature);
            }
            for item in items {
                self.set(*item, done.clone());
            }
            return Vec::new();
        }
        let Form::Write(row_statement) = &compiled.form else {
            return Vec::new();
        };
        let mut dones = vec![None; items.len()];
        for row in answers.rows_of(at) {
            let mut row = row.columns();
            let place = row.next().flatten().and_then(number);
            // The second column only makes the statement fail where a row is missing.
            row.next();
            let Some(slot) = place.and_then(|place| dones.get_mut(place)) else {
                continue;
            };
            let mut done = empty(row_statement);
            done.rows = 1;
            if let Some(returned) = &mut done.returned {
                returned.rows.push(decode_row(row_statement, row));
            }
            *slot = Some(done);
        }
        let nothing = empty(row_statement);
        let mut missing = Vec::new();
        for (item, done) in items.iter().zip(dones) {
            if done.is_none() && telling {
                missing.extend(self.batch.placed.get(*item as usize).map(|p| p.unit));
            }
            let done = done.unwrap_or_else(|| nothing.clone());
            self.set(*item, done);
        }
        missing
    }

    fn set(&mut self, item: u32, done: Done) {
        if let Some(slot) = self.batch.done.get_mut(item as usize) {
            *slot = done;
        }
    }

    /// What a set-based statement says of its calls. Gives the units whose row was left out because
    /// it would fail.
    pub(super) fn framed_done(
        &mut self,
        items: &[u32],
        telling: bool,
        answers: &Answers,
        at: usize,
    ) -> Vec<u32> {
        let first = items.first().copied().unwrap_or_default();
        let signature = compiled(self.batch, first).and_then(|compiled| news(compiled));
        for item in items {
            let mut done = Done::rows(0);
            if signature.is_some() {
                done.told.get_or_insert_default().signature = signature.clone();
            }
            self.set(*item, done);
        }
        let sequence = compiled(self.batch, first).and_then(|c| c.bound_call()?.generates);
        for framed in answers.framed(at) {
            let item = items.get(framed.place);
            let slot = item.and_then(|item| self.batch.done.get_mut(*item as usize));
            let Some(done) = slot else { continue };
            done.rows += u64::from(framed.done);
            let row = answers.row_of(framed);
            let generated = framed.taken.zip(sequence);
            if row.is_empty() && generated.is_none() {
                continue;
            }
            let told = done.told.get_or_insert_default();
            told.messages = match told.messages.is_empty() {
                true => row,
                // A key that is not unique any more.
                false => [&*told.messages, &*row].concat().into(),
            };
            told.generated = generated.map(|(value, sequence)| Generated { sequence, value });
        }
        if !telling {
            return Vec::new();
        }
        let missing = items.iter().filter_map(|item| {
            let done = self.batch.done.get(*item as usize)?;
            let placed = self.batch.placed.get(*item as usize)?;
            (done.rows == 0).then_some(placed.unit)
        });
        missing.collect()
    }

    /// What a call took from a sequence.
    pub(super) fn taken(&mut self, item: u32, answers: &Answers, at: usize) {
        let sequence = compiled(self.batch, item).and_then(|c| c.bound_call()?.generates);
        let value = answers.rows_of(at).next().and_then(answers::taken);
        let done = self.batch.done.get_mut(item as usize);
        if let (Some(sequence), Some(value), Some(done)) = (sequence, value, done) {
            done.told.get_or_insert_default().generated = Some(Generated { sequence, value });
        }
    }

    /// What the calls of a unit before the failed one were told.
    pub(super) fn before(
        &mut self,
        transaction: &SentTransaction,
        answers: &Answers,
        at: usize,
    ) -> Vec<Done> {
        let unit = transaction.segment.first_unit();
        let calls = self
            .batch
            .units
            .get(unit as usize)
            .map_or(0, |u| u.calls().len());
        if calls < 2 && at == 0 || calls == 0 {
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
                Sent::Taken(item) => self.taken(*item, answers, at),
                Sent::Guard(_) | Sent::Savepoint | Sent::Set { .. } => {}
            }
        }
        let done = |item: &u32| self.batch.done.get_mut(*item as usize).map(std::mem::take);
        items.iter().filter_map(done).collect()
    }
}

fn compiled<'b>(batch: &'b Batch<'_>, item: u32) -> Option<&'b Arc<Compiled>> {
    let placed = batch.placed.get(item as usize)?;
    batch.shapes.get(placed.shape as usize)
}

/// The types of a call, where its client does not know them yet.
fn news(compiled: &Compiled) -> Option<Arc<Signature>> {
    compiled.bound_call()?.news.clone()
}

/// The answer to a write that did nothing.
fn empty(row_statement: &RowStatement) -> Done {
    let columns = &row_statement.result_names;
    let returned = (!columns.is_empty()).then(|| {
        Box::new(Returned {
            columns: columns.clone(),
            rows: Vec::new(),
        })
    });
    Done {
        rows: 0,
        returned,
        told: None,
    }
}

fn decode_row<'r>(
    row_statement: &RowStatement,
    row: impl Iterator<Item = Option<&'r [u8]>>,
) -> Box<[windrow_core::Value]> {
    let kinds = row_statement.result_kinds.iter();
    kinds
        .zip(row)
        .map(|(kind, text)| decode::value(kind, text))
        .collect()
}

/// A place that counts from 1.
fn number(text: &[u8]) -> Option<usize> {
    let number: usize = std::str::from_utf8(text).ok()?.parse().ok()?;
    number.checked_sub(1)
}
