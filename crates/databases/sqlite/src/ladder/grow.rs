//! The change of the schema that a unit of a batch needs.
//!
//! Each change is a transaction of its own, before the unit that needs it is run again; so it stays
//! even if that unit then fails for another reason.
//! It looks at the rest of its batch, so that one change serves all rows that wait.

use windrow_core::Fault;

use super::unit::UnitRunner;
use crate::catalog::create;
use crate::fault::Failure;

/// Writes that one change looks at, from the one that needs it, so that a batch of ever new tables
/// is not read from end to end for each.
const AHEAD: usize = 10_000;

/// Creates or extends the table of a write so that it can take the write's row, and if `ahead` is
/// set those of the units behind it too.
///
/// # Errors
/// SQLite's own; [`windrow_core::FaultClass::NoColumn`] where the row does not say what type its
/// column should have.
pub(crate) fn grow(
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
    let wanted = create::wanted(packed, writes.take(AHEAD), &shape.table);
    match table {
        None => create::create(connection, packed, write, shape, &wanted),
        Some(table) => {
            let fitting = runner.rules.check(shape, &table);
            fitting.map_err(Failure::of_write)?;
            create::extend(connection, &table, shape, &wanted)
        }
    }
}
