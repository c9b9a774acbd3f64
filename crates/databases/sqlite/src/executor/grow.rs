//! Changes the schema for a unit of a batch.
//!
//! Each change is a transaction of its own, before the unit that needs it runs again. The change
//! stays if that unit then fails for another reason. One change serves all rows of the batch.

use windrow_core::{Fault, UnitFault, Verdict};

use super::send::UnitRunner;
use super::settle::Batch;
use crate::catalog::create;
use crate::fault::{Failure, Scope};

/// Writes that one change serves, from the one that needs it. A batch with many new tables is not
/// read to its end for each.
const MAX_AHEAD: usize = 10_000;

impl Batch<'_> {
    /// Creates or extends a table for a write, so that its unit can run again. The unit fails if
    /// that fails.
    pub(super) fn grow(&mut self, unit: usize, write: usize) {
        if self.stop.is_some() {
            return;
        }
        self.runner.forget();
        let rows = self.runner.packed.unit(unit).len();
        let failed = if self.may_grow(unit, rows) {
            grow(&mut self.runner, unit, write, self.looks_ahead)
        } else {
            let text = "the table does not come to fit the row, however it is changed";
            Err(Failure::of_write(Fault::internal(text)))
        };
        match failed {
            Ok(()) => {}
            Err(failure) if failure.scope == Scope::Busy => self.stop = Some(failure.fault),
            Err(_) if self.looks_ahead => {
                // Later rows may be the reason. From here on, each row has the schema changed by
                // itself.
                self.looks_ahead = false;
                self.grow(unit, write);
            }
            Err(failure) => self.outgrown(unit, write, failure.fault),
        }
    }

    /// Fails the unit whose table could not be changed. Its part is the next one.
    fn outgrown(&mut self, unit: usize, write: usize, fault: Fault) {
        let at = write.saturating_sub(self.runner.packed.unit(unit).start);
        self.conclude(
            unit,
            Verdict::Final(Err(UnitFault {
                at,
                fault,
                before: Vec::new(),
            })),
        );
        if let Some(next) = self.todo.iter_mut().rev().find(|w| w.units.start == unit) {
            next.units.start = unit + 1;
        }
    }

    /// Returns false once a unit has changed the schema more often than its writes can need.
    fn may_grow(&mut self, unit: usize, writes: usize) -> bool {
        if self.grown.0 != unit {
            self.grown = (unit, 0);
        }
        self.grown.1 += 1;
        self.grown.1 <= 2 * writes + 2
    }
}

/// Creates or extends the table of a write for its row, and if `ahead` is set also for the rows of
/// later units.
///
/// # Errors
/// SQLite's own; [`windrow_core::FaultClass::NoColumn`] if the row does not show the type of its
/// column.
fn grow(
    runner: &mut UnitRunner<'_>,
    unit: usize,
    write: usize,
    ahead: bool,
) -> Result<(), Failure> {
    let grown = runner.say("BEGIN IMMEDIATE").and_then(|()| {
        let changed = change(runner, unit, write, ahead);
        let changed = changed.and_then(|()| runner.say("COMMIT"));
        if !runner.connection.is_autocommit() {
            runner.say("ROLLBACK")?;
        }
        changed
    });
    runner.catalog.forget();
    grown
}

fn change(
    runner: &mut UnitRunner<'_>,
    unit: usize,
    write: usize,
    ahead: bool,
) -> Result<(), Failure> {
    let (connection, packed) = (runner.connection, runner.packed);
    let missing = || Failure::of_write(Fault::internal("a write is missing in its batch"));
    let shape = packed.write(write).and_then(|w| packed.shape(w.shape));
    let shape = shape.ok_or_else(missing)?;
    runner.catalog.refresh(connection)?;
    let table = runner.catalog.table(connection, &shape.table)?;
    let end = if ahead { packed.units() } else { unit + 1 };
    let writes = write..packed.unit(end - 1).end;
    let wanted = create::wanted(packed, writes.take(MAX_AHEAD), &shape.table);
    match table {
        None => {
            let rows = (packed, write, &**shape);
            let received_at = runner.catalog.received_at.as_ref();
            create::create(connection, rows, &wanted, received_at)
        }
        Some(table) => {
            let fitting = runner.rules.check(shape, &table);
            fitting.map_err(Failure::of_write)?;
            create::extend(connection, &table, shape, &wanted)
        }
    }
}
