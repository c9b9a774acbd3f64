//! Every write in its place: joined with its table, does it fit, which rows does it touch.

use std::collections::HashMap;
use std::sync::Arc;

use windrow_core::{Call, Done, Fault, FaultClass, Shape, UnitFault, Write};
use windrow_database::plan::Fence;

use super::{Batch, Placed, Prospect};
use crate::ladder::form::{Compiled, Form};
use crate::ladder::segment::Mode;
use crate::rows::row_statement::{RowStatement, Trouble};
use crate::touch::Touch;
use crate::values::fit::Fit;

/// What is to be compiled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked<'a> {
    Write(&'a Write),
    Call(&'a Call),
}

/// A unit's number, and the number of a write in it.
#[derive(Clone, Copy, Debug)]
struct Place(u32, u32);

/// What has been compiled for this batch already.
#[derive(Default)]
struct Known<'a> {
    shapes: HashMap<*const Shape, Option<u32>>,
    calls: Vec<(&'a Call, Option<u32>)>,
    /// The place in `calls` of the last one: most calls are like the one before.
    last: usize,
}

impl<'a> Known<'a> {
    fn shape(
        &mut self,
        shapes: &mut Vec<Arc<Compiled>>,
        write: &Write,
        compile: &mut dyn FnMut(Asked<'_>) -> Option<Arc<Compiled>>,
    ) -> Option<u32> {
        let known = self.shapes.entry(Arc::as_ptr(&write.shape));
        *known.or_insert_with(|| Some(add_shape(shapes, compile(Asked::Write(write))?)))
    }

    fn call(
        &mut self,
        shapes: &mut Vec<Arc<Compiled>>,
        call: &'a Call,
        compile: &mut dyn FnMut(Asked<'_>) -> Option<Arc<Compiled>>,
    ) -> Option<u32> {
        let alike = |known: &(&Call, Option<u32>)| {
            Arc::ptr_eq(&known.0.statement, &call.statement)
                && known.0.formats == call.formats
                && known.0.results == call.results
                && (known.0.fresh == call.fresh || !call.statement.is_retired())
        };
        match self.calls.get(self.last) {
            Some(known) if alike(known) => return known.1,
            _ => {}
        }
        self.last = match self.calls.iter().position(alike) {
            Some(place) => place,
            None => {
                let shape = compile(Asked::Call(call)).map(|compiled| add_shape(shapes, compiled));
                self.calls.push((call, shape));
                self.calls.len() - 1
            }
        };
        self.calls.get(self.last).and_then(|known| known.1)
    }
}

impl<'a> Batch<'a> {
    /// Joins all writes with the descriptions. May be done again when a description has changed.
    pub(crate) fn place(&mut self, compile: &mut dyn FnMut(Asked<'_>) -> Option<Arc<Compiled>>) {
        self.shapes.clear();
        self.placed.clear();
        self.hashes.clear();
        self.starts.clear();
        self.prospects.clear();
        let mut known = Known::default();
        let mut scratch = Vec::new();
        for (number, unit) in (0_u32..).zip(self.units) {
            self.starts.push(self.placed.len());
            let mut prospect = Prospect::Good;
            // The first trouble of a unit is the one that it would have met.
            let mut note = |found| {
                if prospect == Prospect::Good {
                    prospect = found;
                }
            };
            for (place, write) in (0_u32..).zip(unit.writes()) {
                let at = Place(number, place);
                let shape = known.shape(&mut self.shapes, write, compile);
                note(match shape {
                    Some(shape) => self.place_write(at, shape, write, &mut scratch),
                    None => Prospect::Apart(Mode::Probe),
                });
            }
            for (place, call) in (0_u32..).zip(unit.calls()) {
                let at = Place(number, place);
                let shape = known.call(&mut self.shapes, call, compile);
                note(match shape {
                    Some(shape) => self.place_call(at, shape, call, &mut scratch),
                    None => unknown(at),
                });
            }
            self.prospects.push(prospect);
        }
        self.starts.push(self.placed.len());
        self.done = vec![Done::default(); self.placed.len()];
    }

    fn place_write(
        &mut self,
        at: Place,
        shape: u32,
        write: &Write,
        scratch: &mut Vec<u8>,
    ) -> Prospect {
        let Some(compiled) = self.shapes.get(shape as usize) else {
            return Prospect::Apart(Mode::Probe);
        };
        let Form::Write(row_statement) = &compiled.form else {
            return Prospect::Apart(Mode::Probe);
        };
        let from = self.hashes.len();
        let touch = row_statement.touch(&compiled.table, write, scratch, &mut self.hashes);
        let (fit, column) = row_statement.fit(&compiled.table, write);
        let prospect = prospect(
            compiled,
            row_statement,
            write,
            at.1,
            &fit,
            column.map(|c| &*c.name),
        );
        // Parsed anew each time: a rule may have made nothing of a statement that is prepared, and
        // nobody would notice that it is gone.
        let apart = self.distrusted || compiled.apart.is_some();
        let apart = apart || self.creates && row_statement.outgrows(&compiled.table, write);
        let prospect = match prospect {
            Prospect::Good if apart => Prospect::Apart(Mode::Fresh),
            prospect => prospect,
        };
        self.put(at, shape, fit == Fit::Sure, touch, from);
        prospect
    }

    fn place_call(
        &mut self,
        at: Place,
        shape: u32,
        call: &Call,
        scratch: &mut Vec<u8>,
    ) -> Prospect {
        let bound = self.shapes.get(shape as usize).and_then(|c| c.bound_call());
        let Some(bound) = bound else {
            return unknown(at);
        };
        let from = self.hashes.len();
        let look = bound.look(call, scratch, &mut self.hashes);
        let prospect = match (&bound.trouble, look.fit) {
            (Some(fault), _) => refuse(at, fault.clone()),
            // Whoever would spoil the batch for all others runs by itself. A simple query is tried
            // as its statement first: only that tells what it takes from a sequence.
            (None, Fit::Bad | Fit::Unwritable(_)) if call.origin.is_some() => {
                Prospect::Apart(Mode::Own)
            }
            (None, Fit::Bad | Fit::Unwritable(_)) => Prospect::Apart(Mode::Fresh),
            (None, Fit::Sure | Fit::Unsure) if bound.stale || self.distrusted => {
                Prospect::Apart(Mode::Fresh)
            }
            (None, Fit::Sure | Fit::Unsure) => Prospect::Good,
        };
        self.put(at, shape, look.sets, look.touch, from);
        prospect
    }

    /// Takes a write in, whose keys begin at `from`.
    fn put(&mut self, at: Place, shape: u32, sets: bool, touch: Touch, from: usize) {
        let Some(compiled) = self.shapes.get(shape as usize) else {
            return;
        };
        // A plain insert counts itself; all others must know that no row is meant twice.
        let told = compiled.plain || !touch.unknown;
        self.placed.push(Placed {
            unit: at.0,
            write: at.1,
            shape,
            sets: sets && told && compiled.fused.is_some(),
            order: touch.order,
            keys: from..self.hashes.len(),
            fence: if touch.unknown {
                compiled.fence.max(Fence::Table)
            } else {
                compiled.fence
            },
        });
    }
}

fn add_shape(shapes: &mut Vec<Arc<Compiled>>, compiled: Arc<Compiled>) -> u32 {
    let place = shapes.iter().position(|known| known.id == compiled.id);
    let place = place.unwrap_or_else(|| {
        shapes.push(compiled);
        shapes.len() - 1
    });
    u32::try_from(place).unwrap_or(u32::MAX)
}

/// What a write means for its unit.
fn prospect(
    compiled: &Compiled,
    row_statement: &RowStatement,
    write: &Write,
    at: u32,
    fit: &Fit,
    column: Option<&str>,
) -> Prospect {
    let refuse = |fault| refuse(Place(0, at), fault);
    match &row_statement.trouble {
        Some(Trouble::Unparsable) => return Prospect::Apart(Mode::Probe),
        Some(Trouble::Senseless(fault)) => return refuse(fault.clone()),
        _ if write.row.len() != row_statement.width() => {
            return refuse(Fault::invalid(format!(
                "a write to {} has {} values for {} columns",
                compiled.table.name,
                write.row.len(),
                row_statement.width()
            )));
        }
        Some(Trouble::Doomed) => return Prospect::Apart(Mode::Fresh),
        None => {}
    }
    match fit {
        Fit::Unwritable(why) => {
            let column = column.unwrap_or_default();
            let message = format!("the value of column \"{column}\" cannot be read: {why}");
            let fault = Fault::new(FaultClass::Value, "22P02", message);
            let table = compiled.table.name.table.as_ref();
            refuse(fault.with_table(Some(table)).with_column(Some(column)))
        }
        Fit::Bad => Prospect::Apart(Mode::Fresh),
        Fit::Sure | Fit::Unsure => Prospect::Good,
    }
}

fn refuse(at: Place, fault: Fault) -> Prospect {
    Prospect::Apart(Mode::Refuse(UnitFault {
        at: at.1 as usize,
        fault,
        before: Vec::new(),
    }))
}

/// A statement that was described by another database.
fn unknown(at: Place) -> Prospect {
    refuse(
        at,
        Fault::internal("a statement was sent to a database that has not described it"),
    )
}
