//! Matches every write with its table: checks that the write fits, and finds the rows that it
//! touches.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use windrow_core::{Fault, FaultClass, Formats, Op, Shape, SqlCall, Unit, Value, Write, WriteDone};
use windrow_database::plan::Fence;

use super::{Batch, Placed};
use crate::calls::bound_call::BoundCall;
use crate::compiled::{Compiled, CompiledForm};
use crate::executor::segment::{Mode, Prospect};
use crate::moment::Moment;
use crate::row_statement::{RowStatement, Trouble};
use crate::touch::Touch;
use crate::values::fit::Fit;

/// The index of a unit, and the index of a write in it.
#[derive(Clone, Copy, Debug)]
struct Place(u32, u32);

/// A value that is equal for writes of a batch with the same compiled statement: the shape, and for
/// a call also the formats of its values and rows, and whether it uses the current types.
type Alike<'u> = (*const Shape, Option<(&'u Formats, &'u Formats, bool)>);

fn alike(write: &Write) -> Alike<'_> {
    let of_call = write.call().map(|call| {
        let is_current = call.fresh && call.statement.is_retired();
        (&call.formats, &call.results, is_current)
    });
    (Arc::as_ptr(&write.shape), of_call)
}

/// The result of checking a write's values.
#[derive(Debug)]
struct Look {
    /// The way in which to begin with the write's unit, or the fault with which Windrow itself
    /// refuses it.
    prospect: Result<Prospect, Fault>,
    /// True if the values may be sent in arrays.
    sets: bool,
    touch: Touch,
}

/// Statements that were compiled for this batch: indexes into [`Batch::shapes`].
struct Known<'a> {
    shapes: HashMap<Alike<'a>, Option<u32>, RandomState>,
    /// The last one. Most writes are like the one before.
    last: Option<(Alike<'a>, Option<u32>)>,
}

impl<'a> Known<'a> {
    fn shape(
        &mut self,
        shapes: &mut Vec<Arc<Compiled>>,
        write: &'a Write,
        compile: &mut impl FnMut(&'a Write) -> Option<Arc<Compiled>>,
    ) -> Option<u32> {
        let alike = alike(write);
        if let Some((_, shape)) = self.last.filter(|(last, _)| *last == alike) {
            return shape;
        }
        let known = self.shapes.entry(alike);
        let shape = *known.or_insert_with(|| Some(add_shape(shapes, compile(write)?)));
        self.last = Some((alike, shape));
        shape
    }
}

impl<'a> Batch<'a> {
    /// Joins all writes with the descriptions. Runs again if a description has changed.
    pub(crate) fn place(&mut self, mut compile: impl FnMut(&'a Write) -> Option<Arc<Compiled>>) {
        self.shapes.clear();
        self.placed.clear();
        self.hashes.clear();
        self.starts.clear();
        self.stamped.clear();
        self.prospects.clear();
        let mut known = Known {
            shapes: HashMap::default(),
            last: None,
        };
        let mut scratch = Vec::new();
        for (number, unit) in (0_u32..).zip(self.units) {
            self.starts.push(self.placed.len());
            let mut prospect = Prospect::Good;
            for (place, write) in (0_u32..).zip(unit.writes()) {
                let shape = known.shape(&mut self.shapes, write, &mut compile);
                let found = match shape {
                    Some(shape) => self.look(Place(number, place), shape, write, &mut scratch),
                    None => Prospect::Apart(Mode::Probe),
                };
                // The first problem of a unit is the one that the server would report.
                if prospect == Prospect::Good {
                    prospect = found;
                }
            }
            self.prospects.push(prospect);
        }
        self.starts.push(self.placed.len());
        self.done = vec![WriteDone::default(); self.placed.len()];
    }

    /// Checks the values of a write and adds it to the batch. Returns how to begin with its unit.
    fn look(&mut self, at: Place, shape: u32, write: &Write, scratch: &mut Vec<u8>) -> Prospect {
        let Some(compiled) = self.shapes.get(shape as usize).cloned() else {
            return Prospect::Apart(Mode::Probe);
        };
        let compiled = &*compiled;
        let from = self.hashes.len();
        let look = look_at(compiled, write, scratch, &mut self.hashes);
        // A statement without a trusted description is parsed every time: a rule may have turned a
        // prepared one into nothing, and the lost write would go unnoticed.
        let apart = self.distrusted || compiled.apart.is_some();
        let placed = self.put(at, shape, compiled, &look, from);
        let alone = self.needs_own_moment(&placed, compiled);
        self.placed.push(placed);
        match look.prospect {
            Ok(Prospect::Good) if alone && !apart => Prospect::Apart(Mode::Own),
            Ok(Prospect::Good) if apart => Prospect::Apart(Mode::Fresh),
            Ok(prospect) => prospect,
            Err(fault) => Prospect::Apart(Mode::Refuse(at.1 as usize, fault)),
        }
    }

    /// Returns true if a write needs a transaction of its own because otherwise it would share its
    /// time with another write. Call this after the write's keys have been added.
    fn needs_own_moment(&mut self, placed: &Placed, compiled: &Compiled) -> bool {
        match compiled.moment {
            Moment::Unread | Moment::Carried => false,
            Moment::Own => !placed.sets,
            // Two writes of a row with one time look like one version to a reader between them.
            Moment::Shared if compiled.op == Op::Insert && compiled.plain => false,
            Moment::Shared => {
                let keys = self.hashes.get(placed.keys.clone()).unwrap_or_default();
                let mut is_known = false;
                for key in keys {
                    is_known |= !self.stamped.insert(*key);
                }
                is_known
            }
        }
    }

    /// Returns a write with its place. Its keys begin at `from`.
    fn put(&self, at: Place, shape: u32, compiled: &Compiled, look: &Look, from: usize) -> Placed {
        let touch = look.touch;
        // The row count of a plain insert shows that all rows were written. All other statements
        // must be sure that no row is written twice.
        let is_known = compiled.plain || !touch.unknown;
        // All writes of a unit have the same time, so one statement could not tell their rows from
        // one another.
        let several = |unit: &Unit| unit.writes().len() > 1;
        let alike =
            compiled.moment == Moment::Own && self.units.get(at.0 as usize).is_some_and(several);
        Placed {
            unit: at.0,
            write: at.1,
            shape,
            sets: look.sets && is_known && !alike && compiled.fused.is_some(),
            order: touch.order,
            keys: from..self.hashes.len(),
            fence: match touch.unknown {
                true => compiled.fence.max(Fence::Table),
                false => compiled.fence,
            },
        }
    }
}

fn add_shape(shapes: &mut Vec<Arc<Compiled>>, compiled: Arc<Compiled>) -> u32 {
    let is_it = |known: &Arc<Compiled>| known.numbers.id == compiled.numbers.id;
    let place = shapes.iter().position(is_it).unwrap_or_else(|| {
        shapes.push(compiled);
        shapes.len() - 1
    });
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// Checks the values of a write, and adds a hash for each row that it touches.
fn look_at(
    compiled: &Compiled,
    write: &Write,
    scratch: &mut Vec<u8>,
    hashes: &mut Vec<u64>,
) -> Look {
    match (&compiled.form, write.call()) {
        (CompiledForm::Call(bound), Some(call)) => {
            let found_by = compiled.fused.as_ref().map(|fused| &*fused.found_by);
            let found_by = found_by.unwrap_or_default();
            let (fit, sets, touch) = bound.look(call, found_by, scratch, hashes);
            Look {
                prospect: of_call(bound, call, &fit),
                sets,
                touch,
            }
        }
        (CompiledForm::Row(statement), _) => {
            look_at_row(compiled, statement, write, scratch, hashes)
        }
        (CompiledForm::Call(_), None) => Look {
            prospect: Err(Fault::internal("a row has the statement of a call")),
            sets: false,
            touch: Touch::default(),
        },
    }
}

/// Returns how the unit of a call has to run. A call that would fail the batch for all others runs
/// alone. A simple query is tried as its statement first: only that shows what it takes from a
/// sequence.
fn of_call(bound: &BoundCall, call: &SqlCall, fit: &Fit) -> Result<Prospect, Fault> {
    match (&bound.trouble, fit) {
        (Some(fault), _) => Err(fault.clone()),
        (None, Fit::Bad | Fit::Unwritable(_)) => Ok(Prospect::Apart(match &call.origin {
            Some(origin) if origin.own.is_none() => Mode::Own,
            _ => Mode::Fresh,
        })),
        (None, Fit::Sure | Fit::Unsure) => Ok(Prospect::Good),
    }
}

fn look_at_row(
    compiled: &Compiled,
    statement: &RowStatement,
    write: &Write,
    scratch: &mut Vec<u8>,
    hashes: &mut Vec<u64>,
) -> Look {
    let table = &compiled.table;
    let touch = statement.touch(table, write, scratch, hashes);
    let (fit, column) = statement.fit(table, write);
    let prospect = of_row(compiled, statement, write, (&fit, column.map(|c| &*c.name)));
    let prospect = match prospect {
        Ok(prospect @ (Prospect::Good | Prospect::Apart(Mode::Fresh))) => {
            statement.judge(table, write).map(|()| prospect)
        }
        prospect => prospect,
    };
    let found_by = compiled.fused.iter().flat_map(|fused| &fused.found_by);
    let values = write.values();
    let is_null = |place: &usize| values.get(*place).is_none_or(Value::is_null);
    Look {
        prospect,
        sets: fit == Fit::Sure && !found_by.clone().any(is_null),
        touch,
    }
}

/// Returns how the unit of a row has to run, by the worst fit of its values and the column of that
/// value. Fails if Windrow itself refuses the write.
fn of_row(
    compiled: &Compiled,
    statement: &RowStatement,
    write: &Write,
    (fit, column): (&Fit, Option<&str>),
) -> Result<Prospect, Fault> {
    let table = &compiled.table.name;
    let (given, width) = (write.row().len(), statement.width());
    match &statement.trouble {
        Some(Trouble::Unparsable) => return Ok(Prospect::Apart(Mode::Probe)),
        Some(Trouble::Senseless(fault)) => return Err(fault.clone()),
        _ if given != width => {
            return Err(Fault::invalid(format!(
                "a request for a row of {table} has {given} values for {width} columns"
            )));
        }
        Some(Trouble::Doomed) => return Ok(Prospect::Apart(Mode::Fresh)),
        None => {}
    }
    match fit {
        Fit::Unwritable(why) => {
            let column = column.unwrap_or_default();
            let message = format!("the value of column \"{column}\" cannot be read: {why}");
            let fault = Fault::new(FaultClass::Value, "22P02", message);
            let table = table.table.as_ref();
            Err(fault.with_table(Some(table)).with_column(Some(column)))
        }
        Fit::Bad => Ok(Prospect::Apart(Mode::Fresh)),
        Fit::Sure | Fit::Unsure => Ok(Prospect::Good),
    }
}
