//! Writes a row of a portion by one execution of the portion's statement.

use rusqlite::types::ToSqlOutput;
use rusqlite::{CachedStatement, Connection};
use windrow_core::load::Fields;
use windrow_core::value::is_number;
use windrow_core::{Fault, FaultClass, Field, LoadFault, OnConflict, Shape};

use super::fault::before_commit;
use super::transaction::say;
use crate::executor::plan::Plan;
use crate::values::bind::fit;
use crate::values::packed::Datum;

/// Writes rows, one after another.
pub(super) struct RowWriter<'c> {
    connection: &'c Connection,
    shape: &'c Shape,
    plan: &'c Plan,
    statement: CachedStatement<'c>,
    scratch: Vec<u8>,
    /// True if each row has a savepoint of its own.
    guards: bool,
}

/// The reason why a row was not written.
pub(super) enum Bad {
    /// The row itself. Nothing of it is left, and the transaction continues.
    Row(Fault),
    /// A failure that ends the portion.
    Portion(LoadFault),
}

impl<'c> RowWriter<'c> {
    /// Prepares the statement. `filters` is true if a row that fails is left out.
    pub(super) fn new(
        connection: &'c Connection,
        shape: &'c Shape,
        plan: &'c Plan,
        filters: bool,
    ) -> rusqlite::Result<Self> {
        Ok(Self {
            connection,
            shape,
            plan,
            statement: connection.prepare_cached(&plan.sql)?,
            scratch: Vec::new(),
            guards: filters && leaves_traces(connection)?,
        })
    }

    /// Writes the next row. Returns how many rows are new or changed.
    pub(super) fn write(&mut self, fields: &mut Fields<'_>) -> Result<u64, Bad> {
        self.bind(fields)?;
        if self.guards {
            say(self.connection, "SAVEPOINT windrow_row").map_err(ends)?;
        }
        let written = match self.statement.raw_execute() {
            Ok(written) => (written as u64).max(self.plan.uncounted.into()),
            Err(error) => return Err(self.failed(error)),
        };
        if written == 0 && self.shape.on_conflict != OnConflict::Ignore {
            self.undo()?;
            return Err(self.bad(drops()));
        }
        if self.guards {
            say(self.connection, "RELEASE windrow_row").map_err(ends)?;
        }
        Ok(written)
    }

    /// Binds the next fields. Consumes all of them, even if the first is invalid.
    fn bind(&mut self, fields: &mut Fields<'_>) -> Result<(), Bad> {
        let mut bad = None;
        for slot in &self.plan.slots {
            let datum = datum(fields.next().unwrap_or(Field::Null));
            if bad.is_some() {
                continue;
            }
            match fit(datum, slot, &self.shape.table, &mut self.scratch) {
                Ok(value) => self
                    .statement
                    .raw_bind_parameter(slot.parameter, ToSqlOutput::Borrowed(value))
                    .map_err(ends)?,
                Err(fault) => bad = Some(fault),
            }
        }
        bad.map_or(Ok(()), |fault| Err(self.bad(fault)))
    }

    /// Classifies the error of a row. The row is undone if the transaction still exists
    /// (<https://sqlite.org/lang_conflict.html>, ABORT and ROLLBACK).
    fn failed(&self, error: rusqlite::Error) -> Bad {
        let fault = match before_commit(error) {
            LoadFault::Refused(fault) => fault,
            other => return Bad::Portion(other),
        };
        if self.connection.is_autocommit() {
            return Bad::Portion(LoadFault::Refused(fault));
        }
        match self.undo() {
            Ok(()) => self.bad(fault),
            Err(bad) => bad,
        }
    }

    /// Undoes what a row may have left behind.
    fn undo(&self) -> Result<(), Bad> {
        if !self.guards {
            return Ok(());
        }
        say(self.connection, "ROLLBACK TO windrow_row")
            .and_then(|()| say(self.connection, "RELEASE windrow_row"))
            .map_err(ends)
    }

    /// Returns a refused row. It runs after the rows that follow it, so if later rows win, only
    /// rows that always fail may be left out.
    fn bad(&self, fault: Fault) -> Bad {
        let by_itself = match fault.class {
            FaultClass::Value | FaultClass::NotNull | FaultClass::TooLarge => true,
            FaultClass::Check => &*fault.code == "23514",
            _ => false,
        };
        match self.shape.on_conflict == OnConflict::Update && !by_itself {
            true => Bad::Portion(LoadFault::Refused(fault)),
            false => Bad::Row(fault),
        }
    }
}

/// Returns the fault of a row that a trigger ignored (`RAISE(IGNORE)`).
fn drops() -> Fault {
    Fault::new(
        FaultClass::Check,
        "02000",
        "a trigger makes nothing of the row",
    )
}

fn ends(error: rusqlite::Error) -> Bad {
    Bad::Portion(before_commit(error))
}

/// Returns true if a statement that fails may leave something behind: rows that a trigger wrote
/// before a constraint or a trigger used FAIL (<https://sqlite.org/lang_conflict.html>), or ignored
/// the row by IGNORE. If the schema has neither word, nothing is left.
fn leaves_traces(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE sql LIKE '%fail%' OR sql LIKE '%ignore%')";
    connection
        .prepare_cached(sql)?
        .query_row([], |row| row.get(0))
}

/// Returns the value as a batch has it: the same as for a single write of the field.
fn datum(field: Field<'_>) -> Datum<'_> {
    match field {
        Field::Null => Datum::Null,
        Field::Plain(text) if is_number(text.as_bytes()) => number(text),
        Field::Plain(text) | Field::Text(text) => Datum::Text(text),
        Field::Number(digits) => number(digits),
        Field::Bool(truth) => Datum::Bool(truth),
        Field::Json(text) => Datum::Json(text),
        Field::Bytes(bytes) => Datum::Bytes(bytes),
    }
}

/// Does what [`windrow_core::Value::number`] does.
fn number(digits: &str) -> Datum<'_> {
    match digits.parse() {
        Ok(n) if digits != "-0" && !digits.starts_with('+') => Datum::Int(n),
        _ => Datum::Number(digits),
    }
}
