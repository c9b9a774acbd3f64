//! What writes are told that succeeded.

use std::sync::Arc;

use windrow_core::{Done, Generated, Returned, Signature, Told};

use super::Absorber;
use crate::postgres::batch::Batch;
use crate::postgres::compiled::{Compiled, Form, Shaped};
use crate::postgres::listen::{self, Heard};
use crate::postgres::send::{Flown, Sent};
use crate::postgres::{decode, fused};

impl Absorber<'_, '_> {
    pub(super) fn single_done(&mut self, item: u32, heard: &Heard, at: usize) {
        let Some(compiled) = compiled(self.batch, item) else {
            return;
        };
        let rows = heard.count(at);
        let Form::Write(shaped) = &compiled.form else {
            let messages = heard.messages(at);
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
        let mut done = empty(shaped);
        done.rows = rows;
        if let Some(returned) = &mut done.returned {
            let rows = heard.rows_of(at);
            returned.rows = rows.map(|row| decode_row(shaped, row.columns())).collect();
        }
        self.set(item, done);
    }

    /// What a set-based statement says of its writes. Gives the units whose row was left out as a
    /// duplicate.
    pub(super) fn set_done(
        &mut self,
        items: &[u32],
        telling: bool,
        heard: &Heard,
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
        let Form::Write(shaped) = &compiled.form else {
            return Vec::new();
        };
        let mut dones = vec![None; items.len()];
        for row in heard.rows_of(at) {
            let mut row = row.columns();
            let place = row.next().flatten().and_then(number);
            // The second column only makes the statement fail where a row is missing.
            row.next();
            let Some(slot) = place.and_then(|place| dones.get_mut(place)) else {
                continue;
            };
            let mut done = empty(shaped);
            done.rows = 1;
            if let Some(returned) = &mut done.returned {
                returned.rows.push(decode_row(shaped, row));
            }
            *slot = Some(done);
        }
        let nothing = empty(shaped);
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
        heard: &Heard,
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
        let sequence = compiled(self.batch, first).and_then(|c| c.spoken()?.generates);
        for framed in heard.framed(at) {
            let item = items.get(framed.place);
            let slot = item.and_then(|item| self.batch.done.get_mut(*item as usize));
            let Some(done) = slot else { continue };
            done.rows += u64::from(framed.done);
            let row = heard.row_of(framed);
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
    pub(super) fn taken(&mut self, item: u32, heard: &Heard, at: usize) {
        let sequence = compiled(self.batch, item).and_then(|c| c.spoken()?.generates);
        let value = heard.rows_of(at).next().and_then(listen::taken);
        let done = self.batch.done.get_mut(item as usize);
        if let (Some(sequence), Some(value), Some(done)) = (sequence, value, done) {
            done.told.get_or_insert_default().generated = Some(Generated { sequence, value });
        }
    }

    /// What the calls of a unit before the failed one were told.
    pub(super) fn before(&mut self, flown: &Flown, heard: &Heard, at: usize) -> Vec<Done> {
        let unit = flown.segment.units.first().copied().unwrap_or_default();
        let calls = self
            .batch
            .units
            .get(unit as usize)
            .map_or(0, |u| u.calls().len());
        if calls < 2 && at == 0 || calls == 0 {
            return Vec::new();
        }
        let ended = flown.statements.iter().enumerate().take(at);
        let mut items = Vec::new();
        for (at, statement) in ended {
            match statement {
                Sent::Single(item) => {
                    self.single_done(*item, heard, at);
                    items.push(*item);
                }
                Sent::Taken(item) => self.taken(*item, heard, at),
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
    compiled.spoken()?.news.clone()
}

/// The answer to a write that did nothing.
fn empty(shaped: &Shaped) -> Done {
    let columns = &shaped.result_names;
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
    shaped: &Shaped,
    row: impl Iterator<Item = Option<&'r [u8]>>,
) -> Box<[windrow_core::Value]> {
    let kinds = shaped.result_kinds.iter();
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
