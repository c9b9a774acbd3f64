//! Appending the transactions of a round trip to the send buffer.

mod call;
mod write;

use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use windrow_core::{Op, Unit};
use windrow_database::plan::Step;
use windrow_database::quote::push_table;

use super::batch::{Batch, FUSE_FROM, may_fuse};
use super::prepare::guard_of;
use super::prepared;
use super::prepared::{Prepared, StatementKey};
use super::segment::{Mode, Segment};
use crate::calls::Check;
use crate::ladder::form::Form;
use crate::rows::fused::Told;
use crate::values::encode::Unfit;

/// What DISCARD ALL does, but for the plans, which are nobody's. By itself it may not run with
/// others.
pub(crate) const RESET: &str = "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ROLE; RESET ALL; UNLISTEN *; \
    SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES; DEALLOCATE ALL; ";

/// Forgets what was taken from sequences last: unproven code may ask for it.
pub(crate) const FORGET: &str = "DISCARD SEQUENCES";

/// A statement that was sent, in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The guard of a table.
    Guard(u64),
    /// The write at this place of the batch.
    Single(u32),
    /// What keeps a part of a transaction apart from the others.
    Savepoint,
    /// What the call at this place took from a sequence.
    Taken(u32),
    /// The writes at these places, in the order of the parameters. `heads`: how many columns of its
    /// rows are ours; 0: a row is for us as a whole.
    Set {
        items: Vec<u32>,
        telling: bool,
        heads: u8,
    },
}

/// A transaction that was sent.
#[derive(Debug)]
pub(crate) struct SentTransaction {
    pub(crate) segment: Segment,
    pub(crate) statements: Vec<Sent>,
    /// Where its Sync ends in the send buffer.
    pub(crate) end: usize,
    /// It writes nothing, so nothing can be lost with it.
    pub(crate) reads: bool,
}

impl SentTransaction {
    /// Whether the statement at this place is one that was prepared before, by a name that the
    /// server may know no more. What goes by its text misses nothing of ours: a function that
    /// its planning runs may say that, or a trigger.
    pub(crate) fn goes_by_name(&self, batch: &Batch<'_>, at: usize) -> bool {
        let by_text = self.segment.mode == Mode::Fresh || batch.is_apart(&self.segment);
        !by_text || !matches!(self.statements.get(at), Some(Sent::Single(_)))
    }
}

/// Appends transactions.
pub(crate) struct Sender<'s, 'u> {
    pub(crate) batch: &'s Batch<'u>,
    pub(crate) prepared: &'s mut Prepared,
    pub(crate) out: &'s mut BytesMut,
    pub(crate) scratch: &'s mut Vec<u8>,
    /// What is sent is a part of a transaction: it begins with the last savepoint and ends with
    /// another one.
    pub(crate) part: bool,
}

/// What a part before may have left behind is undone. Outside of a transaction this fails, and the
/// part with it.
pub(crate) const BACK: &str = "ROLLBACK TO SAVEPOINT windrow";

/// Behind a part, whose work is kept. Where it has failed, the server does not come here.
pub(crate) const KEEP: [&str; 2] = ["RELEASE SAVEPOINT windrow", "SAVEPOINT windrow"];

impl Sender<'_, '_> {
    /// Appends one transaction. If one of its values cannot be encoded after all, nothing of it is
    /// appended.
    pub(crate) fn send(&mut self, segment: Segment) -> Result<SentTransaction, Segment> {
        let start = self.out.len();
        let sent = match self.send_query(&segment) {
            Some(sent) => sent,
            None => self.send_whole(&segment),
        };
        match sent {
            Ok((statements, reads)) => Ok(SentTransaction {
                segment,
                statements,
                end: self.out.len(),
                reads,
            }),
            Err(Unfit) => {
                self.out.truncate(start);
                Err(segment)
            }
        }
    }

    fn send_whole(&mut self, segment: &Segment) -> Result<(Vec<Sent>, bool), Unfit> {
        let (mut statements, reads) = self.send_statements(segment)?;
        if self.part {
            for sql in KEEP {
                self.send_savepoint(sql, &mut statements)?;
            }
        }
        frontend::sync(self.out);
        Ok((statements, reads))
    }

    fn send_savepoint(&mut self, sql: &str, sent: &mut Vec<Sent>) -> Result<(), Unfit> {
        frontend::parse("", sql, [], self.out).map_err(|_| Unfit)?;
        sent.push(Sent::Savepoint);
        self.bind_nothing("")
    }

    /// Puts the session back to what it was when it was new. `restore`: what else a new one runs.
    pub(crate) fn send_reset(&mut self, restore: &str) -> Option<SentTransaction> {
        self.send_aside(&format!("{RESET}{restore}"))
    }

    /// Sends what is no unit's.
    pub(crate) fn send_aside(&mut self, sql: &str) -> Option<SentTransaction> {
        frontend::query(sql, self.out).ok()?;
        Some(SentTransaction {
            segment: Segment::new(Vec::new(), Mode::Own),
            statements: Vec::new(),
            end: self.out.len(),
            reads: true,
        })
    }

    fn send_statements(&mut self, segment: &Segment) -> Result<(Vec<Sent>, bool), Unfit> {
        let mut statements = Vec::new();
        if self.part {
            self.send_savepoint(BACK, &mut statements)?;
        }
        let steps = self.batch.steps(segment);
        let fuses = |step| self.set_statement(segment, step).is_some();
        let fuses = steps.iter().any(fuses);
        self.send_guards(segment, fuses, &mut statements)?;
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
        for step in steps {
            reads &= self.reads(&step);
            self.send_step(segment, step, &mut statements)?;
        }
        self.send_checks(segment, &mut statements)?;
        Ok((statements, reads))
    }

    fn reads(&self, step: &Step) -> bool {
        step.items.iter().all(|item| {
            let placed = self.batch.placed.get(*item as usize);
            let compiled = placed.and_then(|p| self.batch.shapes.get(p.shape as usize));
            compiled.is_some_and(|c| c.op == Op::Get)
        })
    }

    /// The statements of a unit, parsed only: the server says what is wrong with them.
    fn send_probe(&mut self, unit: u32) -> Result<(), Unfit> {
        let writes = self.batch.units.get(unit as usize).map(Unit::writes);
        for write in writes.into_iter().flatten() {
            let known =
                self.batch.shapes.iter().find(
                    |c| matches!(&c.form, Form::Write(row_statement) if row_statement.shape == write.shape),
                );
            let sql = known.map_or_else(
                || {
                    let mut sql = String::from("SELECT 1 FROM ");
                    push_table(&mut sql, &write.shape.table);
                    sql
                },
                |compiled| compiled.single.clone().into(),
            );
            frontend::parse("", &sql, [], self.out).map_err(|_| Unfit)?;
        }
        Ok(())
    }

    /// The guards of all tables that the segment is about, where they are ready.
    fn send_guards(
        &mut self,
        segment: &Segment,
        fuses: bool,
        sent: &mut Vec<Sent>,
    ) -> Result<(), Unfit> {
        if self.batch.is_apart(segment) {
            return Ok(());
        }
        for table in self.batch.tables_of(&segment.units) {
            let key = StatementKey::Guard(table.version);
            // The check behind set-based statements sees the columns too.
            if fuses && self.batch.has_calls(table.version) {
                let checked = guard_of(self.batch, table);
                if checked != key && self.prepared.ready(checked).is_some() {
                    continue;
                }
            }
            if !self.batch.is_stale(table.version)
                && let Some(number) = self.prepared.ready(key)
            {
                self.bind_nothing(&prepared::name(number))?;
                sent.push(Sent::Guard(table.version));
            }
        }
        Ok(())
    }

    /// Behind the writes: the catalog must still be what is relied on. Their locks keep it so until
    /// the commit.
    fn send_checks(&mut self, segment: &Segment, sent: &mut Vec<Sent>) -> Result<(), Unfit> {
        if self.batch.is_apart(segment) {
            return Ok(());
        }
        for table in self.batch.tables_of(&segment.units) {
            let Some(print) = &table.print else { continue };
            let is_set = |sent: &Sent| matches!(sent, Sent::Set { .. });
            // The guard in front has seen the columns' types, where the role may read the table.
            let guarded = |sent: &Sent| *sent == Sent::Guard(table.version);
            let columns = sent.iter().any(is_set)
                || !sent.iter().any(guarded)
                || self.batch.is_exposed(table.version);
            let check = Check::of(print, columns, self.batch.changes(table.version));
            if !self.batch.is_stale(table.version)
                && let Some(number) = self.prepared.ready(StatementKey::Check(check))
            {
                self.send_check(check, number, print)?;
                sent.push(Sent::Guard(table.version));
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
            let heads = self.send_set(number, telling, &step.items)?;
            sent.push(Sent::Set {
                items: step.items,
                telling,
                heads,
            });
            return Ok(());
        }
        for item in step.items {
            let takes = self.send_single(item, segment.mode == Mode::Fresh)?;
            sent.push(Sent::Single(item));
            if takes && self.send_lastval()? {
                sent.push(Sent::Taken(item));
            }
        }
        Ok(())
    }

    /// The statement of one write; says whether it takes a value from a sequence.
    fn send_single(&mut self, item: u32, fresh: bool) -> Result<bool, Unfit> {
        let placed = self.batch.placed.get(item as usize).ok_or(Unfit)?;
        let compiled = self.batch.compiled(placed).ok_or(Unfit)?;
        match &compiled.form {
            Form::Write(row_statement) => {
                self.send_write(compiled, row_statement, placed, fresh)?;
            }
            Form::Call(bound) => {
                self.send_call(compiled, bound, placed, fresh)?;
                return Ok(bound.generates.is_some() && !bound.stale);
            }
        }
        Ok(false)
    }

    /// The statement of many writes; says how many columns of its rows are ours.
    fn send_set(&mut self, number: u64, telling: bool, items: &[u32]) -> Result<u8, Unfit> {
        let first = items
            .first()
            .and_then(|i| self.batch.placed.get(*i as usize));
        let compiled = first
            .and_then(|placed| self.batch.compiled(placed))
            .ok_or(Unfit)?;
        match &compiled.form {
            Form::Write(row_statement) => {
                self.send_writes(&compiled.table, row_statement, number, items)?;
                Ok(0)
            }
            Form::Call(bound) => {
                let form = if telling {
                    &compiled.telling
                } else {
                    &compiled.fused
                };
                let framed = form.as_ref().is_some_and(|f| f.told == Told::Framed);
                let heads = match framed {
                    true => 2 + u8::from(bound.generates.is_some()),
                    false => 0,
                };
                self.send_calls(bound, number, items, heads)?;
                Ok(heads)
            }
        }
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
        self.prepared.ready(guard_of(self.batch, &compiled.table))?;
        let key = if telling {
            StatementKey::Telling(compiled.id)
        } else {
            StatementKey::Fused(compiled.id)
        };
        Some((self.prepared.ready(key)?, telling))
    }
}
