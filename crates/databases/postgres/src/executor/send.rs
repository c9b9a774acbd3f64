//! Appends the transactions of a round trip to the send buffer.

use bytes::{BufMut, BytesMut};
use postgres_protocol::message::frontend;
use windrow_core::Op;
use windrow_database::plan::Step;

use super::batch::{Batch, may_fuse, moments};
use super::messages::{Bind, Buffers, KnownTypes, probe, send_one, send_origin, send_set};
use super::prepare::{guard_of, has_guard};
use super::prepared::{Prepared, StatementKey};
use super::segment::{Mode, Segment};
use super::sent::{Sent, SentTransaction};
use crate::compiled::Compiled;
use crate::statement::set::Fused;
use crate::values::encode::Unfit;

/// Statements that together do the same as DISCARD ALL, which may not run in a transaction. They
/// keep plans, which belong to no user.
pub(crate) const RESET: &str = "CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ROLE; RESET ALL; UNLISTEN *; \
    SELECT pg_catalog.pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES; DEALLOCATE ALL; ";

/// Drops the session's last sequence values, which unproven code could read.
pub(crate) const FORGET: &str = "DISCARD SEQUENCES";

/// A writer of transactions to the send buffer.
pub(crate) struct Sender<'s, 'u> {
    pub(crate) batch: &'s Batch<'u>,
    pub(crate) prepared: &'s mut Prepared,
    pub(crate) out: &'s mut BytesMut,
    pub(crate) scratch: &'s mut Vec<u8>,
    /// True if only a part of a transaction is sent. The part begins with a rollback to the last
    /// savepoint and ends with a new savepoint.
    pub(crate) part: bool,
}

/// Undoes changes that a failed earlier part may have left. Outside a transaction this fails, and
/// so does the part.
const BACK: &str = "ROLLBACK TO SAVEPOINT windrow";

/// Makes the server check foreign keys at their statements until the transaction ends. As the first
/// statement outside of BEGIN it causes a warning, which no client gets.
pub(super) const AT_ONCE: &str = "SET CONSTRAINTS ALL IMMEDIATE";

/// Keeps the work of a part. The server does not execute these after a failure in the part.
const KEEP: [&str; 2] = ["RELEASE SAVEPOINT windrow", "SAVEPOINT windrow"];

impl<'s> Sender<'s, '_> {
    /// Appends one transaction. If one of its values cannot be encoded, appends nothing and returns
    /// the segment.
    pub(crate) fn send(&mut self, segment: Segment) -> Result<SentTransaction, Segment> {
        let start = self.out.len();
        match self.send_whole(&segment) {
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
        self.bind_nothing(None)
    }

    /// Appends the reset of the session. `restore`: the SQL that a new session runs first.
    pub(crate) fn send_reset(&mut self, restore: &str) -> Option<SentTransaction> {
        self.send_aside(&format!("{RESET}{restore}"))
    }

    /// Appends a statement that belongs to no unit.
    pub(crate) fn send_aside(&mut self, sql: &str) -> Option<SentTransaction> {
        frontend::query(sql, self.out).ok()?;
        Some(SentTransaction::aside(self.out.len()))
    }

    fn send_statements(&mut self, segment: &Segment) -> Result<(Vec<Sent>, bool), Unfit> {
        let mut statements = Vec::new();
        if self.part {
            self.send_savepoint(BACK, &mut statements)?;
        }
        let steps = self.batch.steps(segment);
        self.send_guards(segment, &mut statements)?;
        if !self.part && segment.runs() && self.batch.checks_at_once(&segment.units) {
            self.send_savepoint(AT_ONCE, &mut statements)?;
        }
        if segment.mode == Mode::Probe {
            for unit in &segment.units {
                self.send_probe(*unit)?;
            }
            return Ok((statements, true));
        }
        if matches!(segment.mode, Mode::Refuse(..)) {
            return Ok((statements, true));
        }
        let mut reads = true;
        let (asking, apart) = (self.asking_check(segment), self.batch.is_apart(segment));
        for step in steps {
            reads &= self.reads(&step);
            self.send_step((segment, apart), step, asking.is_none(), &mut statements)?;
        }
        match asking {
            Some((item, number)) => {
                self.send_follow_up(number)?;
                statements.push(Sent::FollowUp(item));
            }
            None => self.send_checks(segment, &mut statements)?,
        }
        Ok((statements, reads))
    }

    fn reads(&self, step: &Step) -> bool {
        let compiled = |item: &u32| self.batch.compiled_at(*item);
        let reads = |item| compiled(item).is_some_and(|c| c.op == Op::Get);
        step.items.iter().all(reads)
    }

    /// Appends the statements of a unit to be parsed only, so that the server reports what is wrong
    /// with them.
    fn send_probe(&mut self, unit: u32) -> Result<(), Unfit> {
        let Some(whole) = self.batch.units.get(unit as usize) else {
            return Ok(());
        };
        for (number, write) in (0_u32..).zip(whole.writes()) {
            let mut placed = self.batch.placed_of(unit).filter(|p| p.write == number);
            let compiled = placed.next().and_then(|p| self.batch.compiled(p));
            let parsed = match compiled {
                Some(compiled) => frontend::parse("", &compiled.single, [], self.out),
                None => frontend::parse("", &probe(write), [], self.out),
            };
            parsed.map_err(|_| Unfit)?;
        }
        Ok(())
    }

    /// Appends the guards of the segment's tables that are ready.
    fn send_guards(&mut self, segment: &Segment, sent: &mut Vec<Sent>) -> Result<(), Unfit> {
        if self.batch.is_apart(segment) {
            return Ok(());
        }
        for table in self.batch.tables_of(&segment.units) {
            if !has_guard(self.batch, table, &segment.mode) {
                continue;
            }
            if let Some(number) = self.prepared.ready(StatementKey::Guard(table.version)) {
                self.bind_nothing(Some(number))?;
                sent.push(Sent::Guard(table.version));
            }
        }
        Ok(())
    }

    /// Appends the checks after the writes: the catalog must still match the descriptions. The
    /// locks of the writes keep the catalog unchanged until the commit.
    fn send_checks(&mut self, segment: &Segment, sent: &mut Vec<Sent>) -> Result<(), Unfit> {
        if self.batch.is_apart(segment) {
            return Ok(());
        }
        for table in self.batch.tables_of(&segment.units) {
            let Some(check) = self.batch.check_of(table) else {
                continue;
            };
            if let Some(number) = self.prepared.ready(StatementKey::Check(check)) {
                self.bind_nothing(Some(number))?;
                sent.push(Sent::Guard(table.version));
            }
        }
        Ok(())
    }

    /// Returns the statement after a write that is the whole batch. It both checks the table and
    /// reads the write's sequence value.
    fn asking_check(&mut self, segment: &Segment) -> Option<(u32, u64)> {
        let item = self.batch.lone_asked()?;
        if self.part || self.batch.is_apart(segment) {
            return None;
        }
        let table = &self.batch.compiled_at(item)?.table;
        let check = self.batch.check_of(table)?.asking();
        Some((item, self.prepared.ready(StatementKey::Check(check))?))
    }

    fn bind_nothing(&mut self, statement: Option<u64>) -> Result<(), Unfit> {
        Bind::open(self.out, statement).close_bare()
    }

    fn send_step(
        &mut self,
        (segment, apart): (&Segment, bool),
        step: Step,
        follows_up: bool,
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
            if let Some(number) = self.lone_set(segment, item)? {
                let heads = self.send_set(number, false, &[item])?;
                sent.push(Sent::Set {
                    items: vec![item],
                    telling: false,
                    heads,
                });
                continue;
            }
            let compiled = self.send_single(item, segment.mode == Mode::Fresh, apart)?;
            sent.push(Sent::Single(item));
            let asks = follows_up && compiled.generates.is_some();
            if asks && let Some(number) = self.prepared.ready(StatementKey::FollowUp) {
                self.send_follow_up(number)?;
                sent.push(Sent::FollowUp(item));
            }
        }
        Ok(())
    }

    /// Appends the statement of one write. A fresh one is parsed at once, in the client's own text
    /// if Windrow made another one of it, so that positions in errors refer to the client's text.
    fn send_single(&mut self, item: u32, fresh: bool, apart: bool) -> Result<&'s Compiled, Unfit> {
        let batch = self.batch;
        let is_parsed = fresh || apart;
        let placed = batch.placed.get(item as usize).ok_or(Unfit)?;
        let compiled = batch.compiled(placed).ok_or(Unfit)?;
        let write = batch.write(placed).ok_or(Unfit)?;
        if !fresh || !send_origin(write, self.buffers())? {
            let key = StatementKey::Single(compiled.numbers.single_id);
            let ready = self.prepared.ready(key).filter(|_| !is_parsed);
            send_one(compiled, write, ready, self.buffers())?;
        }
        // Only the known types show that the description still holds.
        let known = KnownTypes::of(write);
        if apart && (matches!(known, KnownTypes::AtUse) || known.of_rows().is_some()) {
            frontend::describe(b'S', "", self.out).map_err(|_| Unfit)?;
        }
        Ok(compiled)
    }

    /// Appends the prepared statement that reads the sequence value of the preceding write.
    fn send_follow_up(&mut self, number: u64) -> Result<(), Unfit> {
        let mut bind = Bind::open(self.out, Some(number));
        bind.out.put_i16(0);
        bind.out.put_i16(0);
        bind.all_binary();
        bind.close()
    }

    /// Appends the statement of many writes. Returns the number of Windrow's own columns in its
    /// rows.
    fn send_set(&mut self, number: u64, telling: bool, items: &[u32]) -> Result<u8, Unfit> {
        let batch = self.batch;
        let first = items.first().copied().unwrap_or(u32::MAX);
        let compiled = batch.compiled_at(first).ok_or(Unfit)?;
        let set: &Fused = compiled.set(telling).ok_or(Unfit)?;
        let write = |item: &u32| batch.write(batch.placed.get(*item as usize)?);
        let writes = items.iter().map(write);
        let distances = match set.moments {
            true => moments::distances(batch, items),
            false => Vec::new(),
        };
        send_set(compiled, set, number, writes, &distances, self.buffers())
    }

    /// Returns the set-based statement of a write that needs it to have a time of its own in a
    /// transaction with others.
    fn lone_set(&mut self, segment: &Segment, item: u32) -> Result<Option<u64>, Unfit> {
        let batch = self.batch;
        let compiled = batch.compiled_at(item).ok_or(Unfit)?;
        let ready = match moments::is_lone_set(batch, segment, item) {
            true => self.ready_set(compiled, false),
            false => None,
        };
        match ready {
            None if moments::is_moment_lost(batch, segment, item) => Err(Unfit),
            ready => Ok(ready),
        }
    }

    /// Returns a set-based statement, if it is ready. Without the table's check or guard, the
    /// described types cannot be trusted.
    fn ready_set(&mut self, compiled: &Compiled, telling: bool) -> Option<u64> {
        self.prepared.ready(guard_of(self.batch, &compiled.table))?;
        let key = if telling {
            StatementKey::Telling(compiled.numbers.id)
        } else {
            StatementKey::Fused(compiled.numbers.id)
        };
        self.prepared.ready(key)
    }

    fn buffers(&mut self) -> Buffers<'_> {
        Buffers {
            out: self.out,
            scratch: self.scratch,
        }
    }

    /// Returns the set-based statement of a step, if it is ready, and whether it leaves out rows
    /// that would fail.
    fn set_statement(&mut self, segment: &Segment, step: &Step) -> Option<(u64, bool)> {
        let shape = may_fuse(step)?;
        let compiled = self.batch.shapes.get(shape)?;
        let telling = segment.mode == Mode::Telling && compiled.telling.is_some();
        // If failing rows are left out, a single row must not fail the whole either.
        if !telling && step.items.len() < compiled.fuse_from() {
            return None;
        }
        Some((self.ready_set(compiled, telling)?, telling))
    }
}
