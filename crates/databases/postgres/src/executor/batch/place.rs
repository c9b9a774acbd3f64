//! Joins every write with its table: checks that the write fits, and finds the rows that it
//! touches.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use windrow_core::Unit;
use windrow_database::plan::Fence;

use super::{Batch, Placed};
use crate::compiled::Compiled;
use crate::executor::form::{DoneOf, Look, WorkKind};
use crate::executor::segment::{Mode, Prospect};
use crate::moment::Moment;

/// The index of a unit, and the index of a write in it.
#[derive(Clone, Copy, Debug)]
struct Place(u32, u32);

/// Statements that were compiled for this batch: indexes into [`Batch::shapes`].
struct Known<'a, F: WorkKind> {
    shapes: HashMap<F::Alike<'a>, Option<u32>, RandomState>,
    /// The last one. Most writes are like the one before.
    last: Option<(F::Alike<'a>, Option<u32>)>,
}

impl<'a, F: WorkKind> Known<'a, F> {
    fn shape(
        &mut self,
        shapes: &mut Vec<Arc<Compiled<F>>>,
        write: &'a F::Work,
        compile: &mut impl FnMut(&'a F::Work) -> Option<Arc<Compiled<F>>>,
    ) -> Option<u32> {
        let alike = F::alike(write);
        if let Some((_, shape)) = self.last.filter(|(last, _)| *last == alike) {
            return shape;
        }
        let known = self.shapes.entry(alike);
        let shape = *known.or_insert_with(|| Some(add_shape(shapes, compile(write)?)));
        self.last = Some((alike, shape));
        shape
    }
}

impl<'a, F: WorkKind> Batch<'a, F> {
    /// Joins all writes with the descriptions. Runs again if a description has changed.
    pub(crate) fn place(
        &mut self,
        mut compile: impl FnMut(&'a F::Work) -> Option<Arc<Compiled<F>>>,
    ) {
        self.shapes.clear();
        self.placed.clear();
        self.hashes.clear();
        self.starts.clear();
        self.stamped.clear();
        self.prospects.clear();
        let mut known = Known::<F> {
            shapes: HashMap::default(),
            last: None,
        };
        let mut scratch = Vec::new();
        for (number, unit) in (0_u32..).zip(self.units) {
            self.starts.push(self.placed.len());
            let mut prospect = Prospect::Good;
            for (place, write) in (0_u32..).zip(unit.work()) {
                let shape = known.shape(&mut self.shapes, write, &mut compile);
                let found = match shape {
                    Some(shape) => self.look(Place(number, place), shape, write, &mut scratch),
                    None => Prospect::Apart(Mode::Probe),
                };
                // The first problem of a unit is the one that the server would have reported.
                if prospect == Prospect::Good {
                    prospect = found;
                }
            }
            self.prospects.push(prospect);
        }
        self.starts.push(self.placed.len());
        self.done = vec![DoneOf::<F>::default(); self.placed.len()];
    }

    /// Checks the values of a write and adds it to the batch. Returns how to begin with its unit.
    fn look(&mut self, at: Place, shape: u32, write: &F::Work, scratch: &mut Vec<u8>) -> Prospect {
        let Some(compiled) = self.shapes.get(shape as usize).cloned() else {
            return Prospect::Apart(Mode::Probe);
        };
        let compiled = &*compiled;
        let from = self.hashes.len();
        let look = F::look(compiled, write, scratch, &mut self.hashes);
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

    /// Returns a write with its place. Its keys begin at `from`.
    fn put(
        &self,
        at: Place,
        shape: u32,
        compiled: &Compiled<F>,
        look: &Look,
        from: usize,
    ) -> Placed {
        let touch = look.touch;
        // The row count of a plain insert shows that all rows were written. All other statements
        // must be sure that no row is written twice.
        let told = compiled.plain || !touch.unknown;
        // All writes of a unit have the same time, so one statement could not tell their rows from
        // one another.
        let several = |unit: &Unit<F::Work>| unit.work().len() > 1;
        let alike =
            compiled.moment == Moment::Own && self.units.get(at.0 as usize).is_some_and(several);
        Placed {
            unit: at.0,
            write: at.1,
            shape,
            sets: look.sets && told && !alike && compiled.fused.is_some(),
            order: touch.order,
            keys: from..self.hashes.len(),
            fence: match touch.unknown {
                true => compiled.fence.max(Fence::Table),
                false => compiled.fence,
            },
        }
    }
}

fn add_shape<F>(shapes: &mut Vec<Arc<Compiled<F>>>, compiled: Arc<Compiled<F>>) -> u32 {
    let is_it = |known: &Arc<Compiled<F>>| known.numbers.id == compiled.numbers.id;
    let place = shapes.iter().position(is_it).unwrap_or_else(|| {
        shapes.push(compiled);
        shapes.len() - 1
    });
    u32::try_from(place).unwrap_or(u32::MAX)
}
