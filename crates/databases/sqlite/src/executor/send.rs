//! Executes the writes of a unit within a transaction, and within a savepoint if it has several.

use std::sync::Arc;

use rusqlite::{CachedStatement, Connection};
use smallvec::SmallVec;
use windrow_core::{Dones, Fault, Returned, UnitFault, UnitOutcome, WriteDone};

use super::moments::{self, Moments};
use super::plan::{Plan, Plans, wrong_length};
use super::sql::{NoPlan, ReturnedColumns, TableRules};
use crate::catalog::cache::Catalog;
use crate::catalog::sharing::Sharing;
use crate::fault::{Failure, Scope};
use crate::values::bind::{Use, fit};
use crate::values::packed::{Packed, PackedWrite};
use crate::values::read;

/// The largest number of statements that a batch keeps open.
const MAX_OPEN: usize = 128;

/// The result of a unit before the commit.
#[derive(Debug)]
pub(crate) enum UnitResult {
    /// The outcome of the unit, which holds if the transaction commits.
    Done(UnitOutcome),
    /// The unit failed and rolled back the transaction, or has to be decided outside of it.
    Undone(UnitFault, Scope),
    /// The write of this number in the batch needs a table that is created or extended first.
    /// Nothing of the unit was written.
    Grow(usize),
}

/// The isolation that a unit needs to get the answer it would have got alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Needs {
    /// None: it may share a transaction with any others.
    Nothing,
    /// A transaction of its own.
    Transaction,
    /// A transaction on a new connection, on which no other unit has written.
    Connection,
}

/// Executes the units of a batch on a connection.
pub(crate) struct UnitRunner<'c> {
    pub(crate) connection: &'c Connection,
    pub(crate) catalog: &'c mut Catalog,
    pub(crate) plans: &'c mut Plans,
    pub(crate) packed: &'c Packed,
    pub(crate) rules: TableRules,
    /// The isolation of writes, by shape.
    sharings: Vec<Option<Arc<Sharing>>>,
    /// The open statements, by shape.
    open: Vec<Option<OpenStatement<'c>>>,
    opened: usize,
    scratch: Vec<u8>,
    moments: &'c mut Moments,
    /// The keys of the current write that contain the time of the write, without that time.
    keys: SmallVec<[u64; 1]>,
}

struct OpenStatement<'c> {
    plan: Arc<Plan>,
    statement: CachedStatement<'c>,
}

enum WriteError {
    Failure(Failure),
    Grow,
}

impl From<rusqlite::Error> for WriteError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Failure(error.into())
    }
}

impl From<Fault> for WriteError {
    fn from(fault: Fault) -> Self {
        Self::Failure(Failure::of_write(fault))
    }
}

impl<'c> UnitRunner<'c> {
    pub(crate) fn new(
        connection: &'c Connection,
        catalog: &'c mut Catalog,
        plans: &'c mut Plans,
        moments: &'c mut Moments,
        (packed, rules): (&'c Packed, TableRules),
    ) -> Self {
        Self {
            connection,
            catalog,
            plans,
            packed,
            rules,
            sharings: Vec::new(),
            open: Vec::new(),
            opened: 0,
            scratch: Vec::new(),
            moments,
            keys: SmallVec::new(),
        }
    }

    /// Drops everything that was prepared for a schema that has changed.
    pub(crate) fn forget(&mut self) {
        self.close();
        self.sharings.clear();
        self.plans.clear();
        self.connection.flush_prepared_statement_cache();
    }

    /// Returns the isolation that a unit needs. Valid within the current transaction.
    pub(crate) fn needs(&mut self, unit: usize) -> Needs {
        let packed = self.packed;
        let mut needs = Needs::Nothing;
        for write in packed.unit(unit).filter_map(|number| packed.write(number)) {
            // A table that cannot be described is not proven.
            let sharing = self.sharing(write.shape);
            needs = needs.max(match sharing.as_deref() {
                Some(Sharing::Joined) => Needs::Nothing,
                Some(Sharing::Apart { fresh: true, .. }) => Needs::Connection,
                Some(Sharing::Apart { .. }) | None => Needs::Transaction,
            });
        }
        needs
    }

    fn sharing(&mut self, place: usize) -> Option<Arc<Sharing>> {
        if let Some(Some(known)) = self.sharings.get(place) {
            return Some(known.clone());
        }
        let shape = self.packed.shape(place)?;
        let sharing = self.catalog.sharing(self.connection, &shape.table).ok()?;
        if self.sharings.len() <= place {
            self.sharings.resize_with(self.packed.shapes(), || None);
        }
        if let Some(slot) = self.sharings.get_mut(place) {
            *slot = Some(sharing.clone());
        }
        Some(sharing)
    }

    /// Executes a unit. SQLite undoes a single write that fails, as it does with every
    /// statement (<https://sqlite.org/lang_conflict.html>, ABORT); several need a savepoint.
    pub(crate) fn unit(&mut self, unit: usize) -> UnitResult {
        let mut writes = self.packed.unit(unit);
        if writes.len() < 2 {
            let Some(write) = writes.next() else {
                return UnitResult::Done(Ok(Dones::new()));
            };
            return match self.write(write) {
                Ok(done) => UnitResult::Done(Ok(smallvec::smallvec![done])),
                Err(WriteError::Grow) => UnitResult::Grow(write),
                Err(WriteError::Failure(failure)) => self.failed(0, failure),
            };
        }
        if let Err(error) = self.say("SAVEPOINT windrow_unit") {
            return self.failed(0, error);
        }
        let mut dones = Dones::with_capacity(writes.len());
        for (at, write) in writes.enumerate() {
            match self.write(write) {
                Ok(done) => dones.push(done),
                Err(trouble) => return self.back_out(at, write, trouble),
            }
        }
        match self.say("RELEASE windrow_unit") {
            Ok(()) => UnitResult::Done(Ok(dones)),
            Err(failure) => self.failed(0, failure),
        }
    }

    /// Executes a statement without parameters and results.
    pub(crate) fn say(&self, sql: &str) -> Result<(), Failure> {
        self.connection.prepare_cached(sql)?.raw_execute()?;
        Ok(())
    }

    fn back_out(&self, at: usize, write: usize, trouble: WriteError) -> UnitResult {
        if !self.connection.is_autocommit() {
            let back = self.say("ROLLBACK TO windrow_unit");
            if let Err(Failure { fault, .. }) = back.and_then(|()| self.say("RELEASE windrow_unit"))
            {
                return UnitResult::Undone(
                    UnitFault {
                        at,
                        fault,
                        before: Vec::new(),
                    },
                    Scope::Machine,
                );
            }
        }
        match trouble {
            WriteError::Grow => UnitResult::Grow(write),
            WriteError::Failure(failure) => self.failed(at, failure),
        }
    }

    /// SQLite may have rolled back everything: `RAISE(ROLLBACK)`, or a full disk (<https://sqlite.org/c3ref/get_autocommit.html>).
    fn failed(&self, at: usize, failure: Failure) -> UnitResult {
        let Failure { fault, scope } = failure;
        let fault = UnitFault {
            at,
            fault,
            before: Vec::new(),
        };
        if self.connection.is_autocommit() || scope == Scope::Busy {
            UnitResult::Undone(fault, scope)
        } else {
            UnitResult::Done(Err(fault))
        }
    }

    fn write(&mut self, number: usize) -> Result<WriteDone, WriteError> {
        let packed = self.packed;
        let write = packed
            .write(number)
            .ok_or_else(|| Fault::internal("a write is missing in its batch"))?;
        self.ready(write)?;
        let Some(Some(open)) = self.open.get_mut(write.shape) else {
            return Err(Fault::internal("a statement is missing in its batch").into());
        };
        let Some(shape) = packed.shape(write.shape) else {
            return Err(Fault::internal("a shape is missing in its batch").into());
        };
        if open.plan.slots.len() != write.len() {
            let table = self.catalog.table(self.connection, &shape.table)?;
            return Err(wrong_length(shape, table.as_deref(), write.len()).into());
        }
        for (slot, datum) in open.plan.slots.iter().zip(write.values()) {
            if slot.use_ == Use::Missing {
                match datum {
                    crate::values::packed::Datum::Null => continue,
                    _ => return Err(WriteError::Grow),
                }
            }
            let value = fit(datum, slot, &shape.table, &mut self.scratch)?;
            open.statement.raw_bind_parameter(
                slot.parameter,
                rusqlite::types::ToSqlOutput::Borrowed(value),
            )?;
        }
        self.keys.clear();
        for (at, places) in &open.plan.moments {
            let values = places.iter().filter_map(|place| write.values().nth(*place));
            self.keys
                .push(moments::hash(&shape.table.table, *at, values));
        }
        self.moments.wait(&self.keys);
        let done = match &open.plan.returned {
            None => Ok(WriteDone::rows(open.statement.raw_execute()? as u64)),
            Some(columns) => fetch(&mut open.statement, columns),
        };
        self.moments.note(&self.keys);
        done
    }

    /// Opens the statement of a write's shape if it is not open yet.
    fn ready(&mut self, write: PackedWrite<'_>) -> Result<(), WriteError> {
        if matches!(self.open.get(write.shape), Some(Some(_))) {
            return Ok(());
        }
        let packed = self.packed;
        let shape = packed
            .shape(write.shape)
            .ok_or_else(|| Fault::internal("a shape is missing in its batch"))?;
        let table = self.catalog.table(self.connection, &shape.table)?;
        let plan = self
            .plans
            .plan(shape, table.as_deref(), self.rules)
            .map_err(|why| match why {
                NoPlan::Grow => WriteError::Grow,
                NoPlan::Fault(fault) => fault.into(),
            })?;
        if self.opened >= MAX_OPEN {
            self.close();
        }
        if self.open.len() <= write.shape {
            self.open.resize_with(packed.shapes(), || None);
        }
        let statement = self.connection.prepare_cached(&plan.sql)?;
        if let Some(place) = self.open.get_mut(write.shape) {
            *place = Some(OpenStatement { plan, statement });
            self.opened += 1;
        }
        Ok(())
    }

    fn close(&mut self) {
        self.open.clear();
        self.opened = 0;
    }
}

/// Executes a statement that returns rows.
fn fetch(
    statement: &mut CachedStatement<'_>,
    columns: &ReturnedColumns,
) -> Result<WriteDone, WriteError> {
    let mut rows = statement.raw_query();
    let mut returned = Returned {
        columns: columns.names.clone(),
        rows: Vec::new(),
    };
    while let Some(row) = rows.next()? {
        let values = columns.types.iter().enumerate();
        let values = values.map(|(i, t)| Ok(read::value(row.get_ref(i)?, *t)));
        returned.rows.push(values.collect::<rusqlite::Result<_>>()?);
    }
    Ok(WriteDone::returning(returned.rows.len() as u64, returned))
}
