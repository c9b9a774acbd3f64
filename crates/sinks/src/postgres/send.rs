//! Appending the transactions of a round trip to the send buffer.

use bytes::{BufMut, BytesMut};
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use windrow_core::{Op, Unit, Value};

use super::batch::{Batch, FUSE_FROM, may_fuse};
use super::column::{ArrayForm, Column};
use super::compiled::Compiled;
use super::encode::{Unfit, push_array};
use super::prepared::{self, Prepared, StatementKey};
use super::segment::{Mode, Segment};
use super::text;
use crate::sql::plan::Step;
use crate::sql::quote::push_table;

/// A statement that was sent, in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// The guard of a table.
    Guard(u64),
    /// The write at this place of the batch.
    Single(u32),
    /// The writes at these places, in the order of the parameters.
    Set { items: Vec<u32>, telling: bool },
}

/// A transaction that was sent.
#[derive(Debug)]
pub(super) struct Flown {
    pub(super) segment: Segment,
    pub(super) statements: Vec<Sent>,
    /// Where its Sync ends in the send buffer.
    pub(super) end: usize,
    /// It writes nothing, so nothing can be lost with it.
    pub(super) reads: bool,
}

/// Appends transactions.
pub(super) struct Sender<'s, 'u> {
    pub(super) batch: &'s Batch<'u>,
    pub(super) prepared: &'s mut Prepared,
    pub(super) out: &'s mut BytesMut,
    pub(super) scratch: &'s mut Vec<u8>,
}

impl Sender<'_, '_> {
    /// Appends one transaction. If one of its values cannot be encoded after all, nothing of it is appended.
    pub(super) fn send(&mut self, segment: Segment) -> Result<Flown, Segment> {
        let start = self.out.len();
        match self.send_statements(&segment) {
            Ok((statements, reads)) => {
                frontend::sync(self.out);
                Ok(Flown {
                    segment,
                    statements,
                    end: self.out.len(),
                    reads,
                })
            }
            Err(Unfit) => {
                self.out.truncate(start);
                Err(segment)
            }
        }
    }

    fn send_statements(&mut self, segment: &Segment) -> Result<(Vec<Sent>, bool), Unfit> {
        let mut statements = Vec::new();
        self.send_guards(segment, &mut statements)?;
        if segment.mode == Mode::Probe {
            for unit in &segment.units {
                self.send_probe(*unit)?;
            }
            return Ok((statements, true));
        }
        if matches!(segment.mode, Mode::Refuse(_)) {
            return Ok((statements, true));
        }
        let mut reads = true;
        for step in self.batch.steps(segment) {
            reads &= self.reads(&step);
            self.send_step(segment, step, &mut statements)?;
        }
        Ok((statements, reads))
    }

    fn reads(&self, step: &Step) -> bool {
        step.items.iter().all(|item| {
            let placed = self.batch.placed.get(*item as usize);
            let compiled = placed.and_then(|p| self.batch.shapes.get(p.shape as usize));
            compiled.is_some_and(|c| c.shape.op == Op::Get)
        })
    }

    /// The statements of a unit, parsed only: the server says what is wrong with them.
    fn send_probe(&mut self, unit: u32) -> Result<(), Unfit> {
        let writes = self.batch.units.get(unit as usize).map(Unit::writes);
        for write in writes.into_iter().flatten() {
            let known = self.batch.shapes.iter().find(|c| c.shape == write.shape);
            let sql = known.map_or_else(
                || {
                    let mut sql = String::from("SELECT FROM ");
                    push_table(&mut sql, &write.shape.table);
                    sql
                },
                |compiled| compiled.single.clone(),
            );
            frontend::parse("", &sql, [], self.out).map_err(|_| Unfit)?;
        }
        Ok(())
    }

    /// The guards of all tables that the segment is about, where they are ready.
    fn send_guards(&mut self, segment: &Segment, sent: &mut Vec<Sent>) -> Result<(), Unfit> {
        for version in self.batch.versions_of(&segment.units) {
            if let Some(number) = self.prepared.ready(StatementKey::Guard(version)) {
                self.bind_nothing(&prepared::name(number))?;
                sent.push(Sent::Guard(version));
            }
        }
        Ok(())
    }

    fn bind_nothing(&mut self, statement: &str) -> Result<(), Unfit> {
        let nothing = |_: (), _: &mut BytesMut| Ok(IsNull::Yes);
        frontend::bind("", statement, [], [], nothing, [], self.out).map_err(|_| Unfit)?;
        frontend::execute("", 0, self.out).map_err(|_| Unfit)
    }

    fn send_step(
        &mut self,
        segment: &Segment,
        step: Step,
        sent: &mut Vec<Sent>,
    ) -> Result<(), Unfit> {
        if let Some((number, telling)) = self.set_statement(segment, &step) {
            self.send_set(number, &step.items)?;
            sent.push(Sent::Set {
                items: step.items,
                telling,
            });
            return Ok(());
        }
        for item in step.items {
            self.send_single(item, segment.mode == Mode::Fresh)?;
            sent.push(Sent::Single(item));
        }
        Ok(())
    }

    /// The set-based statement of a step, if it is ready, and whether it leaves duplicates out.
    fn set_statement(&mut self, segment: &Segment, step: &Step) -> Option<(u64, bool)> {
        let shape = may_fuse(step)?;
        let compiled = self.batch.shapes.get(shape)?;
        let telling = segment.mode == Mode::Telling && compiled.telling.is_some();
        // Where duplicates are to be told apart, even one row must not fail.
        if !telling && step.items.len() < FUSE_FROM {
            return None;
        }
        // Without its guard, a description is not to be trusted with types.
        self.prepared
            .ready(StatementKey::Guard(compiled.table.version))?;
        let key = if telling {
            StatementKey::Telling(compiled.id)
        } else {
            StatementKey::Fused(compiled.id)
        };
        Some((self.prepared.ready(key)?, telling))
    }

    fn send_single(&mut self, item: u32, fresh: bool) -> Result<(), Unfit> {
        let placed = self.batch.placed.get(item as usize).ok_or(Unfit)?;
        let compiled = self.batch.shapes.get(placed.shape as usize).ok_or(Unfit)?;
        let write = self.batch.write(placed).ok_or(Unfit)?;
        let ready = self.prepared.ready(StatementKey::Single(compiled.id));
        let name = match ready.filter(|_| !fresh) {
            Some(number) => prepared::name(number),
            None => {
                frontend::parse("", &compiled.single, [], self.out).map_err(|_| Unfit)?;
                String::new()
            }
        };
        let scratch = &mut *self.scratch;
        let push = |(column, value): (&Column, &Value), out: &mut BytesMut| {
            if value.is_null() {
                return Ok(IsNull::Yes);
            }
            scratch.clear();
            text::push(&column.kind, value, scratch).map_err(|why| why.0)?;
            out.put_slice(scratch);
            Ok(IsNull::No)
        };
        let values = compiled.columns().zip(write.row.iter());
        frontend::bind("", &name, [], values, push, [], self.out).map_err(|_| Unfit)?;
        frontend::execute("", 0, self.out).map_err(|_| Unfit)
    }

    fn send_set(&mut self, number: u64, items: &[u32]) -> Result<(), Unfit> {
        let batch = self.batch;
        let first = items.first().and_then(|i| batch.placed.get(*i as usize));
        let compiled = first
            .and_then(|placed| batch.shapes.get(placed.shape as usize))
            .ok_or(Unfit)?;
        let scratch = &mut *self.scratch;
        let push = |(place, column): (usize, &Column), out: &mut BytesMut| {
            let values = items.iter().filter_map(|item| {
                let write = batch.write(batch.placed.get(*item as usize)?)?;
                write.row.get(place)
            });
            push_array(column, values, scratch, out).map_err(|Unfit| "a value does not fit")?;
            Ok(IsNull::No)
        };
        frontend::bind(
            "",
            &prepared::name(number),
            formats(compiled),
            compiled.columns().enumerate(),
            push,
            [],
            self.out,
        )
        .map_err(|_| Unfit)?;
        frontend::execute("", 0, self.out).map_err(|_| Unfit)
    }
}

fn formats(compiled: &Compiled) -> impl Iterator<Item = i16> {
    let format = |column: &Column| i16::from(column.kind.array_form() != ArrayForm::Literal);
    compiled.columns().map(format)
}
