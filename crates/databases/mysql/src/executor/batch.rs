//! A batch under way: its units, their writes joined with their tables, and their verdicts.

mod steps;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use mysql_async::Value as Cell;
use windrow_core::{Dones, Fault, Op, Shape, TableName, Unit, UnitFault, Verdict, WriteDone};
use windrow_database::plan::Fence;
use windrow_database::shape_faults::no_table;
use windrow_database::sources::Sources;

use super::plan::Compiled;
use crate::catalog::table::Table;
use crate::values::key::{Canon, RowKey};

/// Descriptions of the tables of a batch; `None`: there is no such table.
pub(crate) type Tables<'n> = HashMap<&'n TableName, Option<Arc<Table>>>;

/// A function that joins a shape with its table.
pub(crate) type Compile<'c> = dyn Fn(&Arc<Shape>, &Arc<Table>) -> Arc<Compiled> + Sync + 'c;

/// One write, joined with its table.
#[derive(Debug)]
pub(crate) struct BoundWrite {
    pub(crate) unit: u32,
    /// The write's number in its unit.
    pub(crate) write: u32,
    pub(crate) compiled: Arc<Compiled>,
    /// The place of its shape in [`Batch::shapes`].
    shape: u32,
    pub(crate) row: Box<[Cell]>,
    pub(crate) canon: Option<Canon>,
    /// True if no row can have the write's key.
    pub(crate) nothing: bool,
    /// True if the write may be one of several in a statement.
    pub(crate) sets: bool,
    keys: std::ops::Range<usize>,
    fence: Fence,
}

impl BoundWrite {
    /// Returns the same write, found by another key; `None` if its row cannot be named by that key.
    pub(crate) fn by_key(&self, compiled: &Arc<Compiled>) -> Option<Self> {
        let places = compiled.finds.as_ref()?;
        let RowKey::Row(canon) = compiled.found(&self.row, places) else {
            return None;
        };
        Some(Self {
            unit: self.unit,
            write: self.write,
            compiled: compiled.clone(),
            shape: self.shape,
            row: self.row.clone(),
            canon: Some(canon),
            nothing: false,
            sets: false,
            keys: 0..0,
            fence: self.fence,
        })
    }
}

/// The units of a batch, their writes and their verdicts.
pub(crate) struct Batch<'a> {
    pub(crate) units: &'a [Unit],
    pub(crate) sources: Sources,
    shapes: Vec<Arc<Compiled>>,
    pub(crate) bound: Vec<BoundWrite>,
    hashes: Vec<u64>,
    /// The place in `bound` of each unit's first write.
    starts: Vec<usize>,
    /// Faults of units that Windrow refuses without the server.
    pub(crate) refused: Vec<Option<UnitFault>>,
    /// Outcomes of the writes of the transaction under way.
    pub(crate) done: Vec<Option<WriteDone>>,
    pub(crate) verdicts: Vec<Option<Verdict>>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(units: &'a [Unit]) -> Self {
        Self {
            units,
            sources: Sources::of(units),
            shapes: Vec::new(),
            bound: Vec::new(),
            hashes: Vec::new(),
            starts: Vec::new(),
            refused: Vec::new(),
            done: Vec::new(),
            verdicts: vec![None; units.len()],
        }
    }

    /// Returns the names of the batch's tables, each once.
    pub(crate) fn tables(&self) -> Vec<&'a TableName> {
        let mut seen = HashSet::new();
        let mut last: Option<&Arc<Shape>> = None;
        let mut tables = Vec::new();
        for write in self.units.iter().flat_map(Unit::writes) {
            if last.is_some_and(|shape| Arc::ptr_eq(shape, &write.shape)) {
                continue;
            }
            last = Some(&write.shape);
            if seen.insert(&write.shape.table) {
                tables.push(&write.shape.table);
            }
        }
        tables
    }

    /// Joins all writes with the descriptions. May be done again when a description has changed.
    pub(crate) fn bind(&mut self, tables: &Tables<'_>, compile: &Compile<'_>) {
        self.shapes.clear();
        self.bound.clear();
        self.hashes.clear();
        self.starts.clear();
        self.refused.clear();
        let mut known: HashMap<*const Shape, u32> = HashMap::new();
        for (number, unit) in (0_u32..).zip(self.units) {
            self.starts.push(self.bound.len());
            let refused = self.bind_unit(number, unit, tables, &mut known, compile);
            self.refused.push(refused.err());
        }
        self.starts.push(self.bound.len());
        self.done.clear();
        self.done.resize_with(self.bound.len(), || None);
    }

    /// Joins the writes of a unit with their tables.
    ///
    /// # Errors
    /// The fault of its first write that is refused.
    fn bind_unit(
        &mut self,
        number: u32,
        unit: &Unit,
        tables: &Tables<'_>,
        known: &mut HashMap<*const Shape, u32>,
        compile: &Compile<'_>,
    ) -> Result<(), UnitFault> {
        for (at, write) in unit.writes().iter().enumerate() {
            let refuse = |fault| UnitFault {
                at,
                fault,
                before: Vec::new(),
            };
            let table = tables.get(&write.shape.table).and_then(Option::as_ref);
            let table = table.ok_or_else(|| refuse(no_table(&write.shape.table)))?;
            let shape = *known
                .entry(Arc::as_ptr(&write.shape))
                .or_insert_with(|| add_shape(&mut self.shapes, compile(&write.shape, table)));
            let Some(compiled) = self.shapes.get(shape as usize) else {
                continue;
            };
            if let Some(fault) = &compiled.trouble {
                return Err(refuse(fault.clone()));
            }
            let from = self.hashes.len();
            let encoded = compiled.encode(write, &mut self.hashes).map_err(refuse)?;
            let fence = match encoded.unknown {
                true => compiled.fence.max(Fence::Table),
                false => compiled.fence,
            };
            self.bound.push(BoundWrite {
                unit: number,
                write: u32::try_from(at).unwrap_or(u32::MAX),
                compiled: compiled.clone(),
                shape,
                row: encoded.row,
                canon: encoded.canon,
                nothing: encoded.nothing,
                sets: encoded.sets,
                keys: from..self.hashes.len(),
                fence,
            });
        }
        Ok(())
    }

    /// Sets the verdict of the units that Windrow refuses.
    pub(crate) fn conclude_refused(&mut self) {
        for (refused, verdict) in self.refused.iter().zip(&mut self.verdicts) {
            if let (Some(fault), None) = (refused, &verdict) {
                *verdict = Some(Verdict::Final(Err(fault.clone())));
            }
        }
    }

    /// Returns the places in `bound` of a unit's writes.
    pub(crate) fn writes_of(&self, unit: u32) -> std::ops::Range<usize> {
        let unit = unit as usize;
        let start = self.starts.get(unit).copied().unwrap_or_default();
        let end = self.starts.get(unit + 1).copied().unwrap_or(start);
        start..end
    }

    /// Returns the tables of units, each once.
    pub(crate) fn tables_of(&self, units: &[u32]) -> Vec<Arc<Table>> {
        let mut tables: Vec<Arc<Table>> = Vec::new();
        let mut last = None;
        for bound in units.iter().flat_map(|unit| self.bound_of(*unit)) {
            if last.replace(bound.shape) == Some(bound.shape) {
                continue;
            }
            let table = &bound.compiled.table;
            if !tables.iter().any(|t| t.version == table.version) {
                tables.push(table.clone());
            }
        }
        tables
    }

    /// Returns the writes of a unit.
    pub(crate) fn bound_of(&self, unit: u32) -> impl Iterator<Item = &BoundWrite> {
        self.bound.get(self.writes_of(unit)).into_iter().flatten()
    }

    /// Returns true if a unit shares no transaction with others.
    pub(crate) fn is_apart(&self, unit: u32) -> bool {
        self.bound_of(unit).any(|p| p.compiled.apart.is_some())
    }

    /// Returns true if triggers or functions run for one of these units whose effects are unknown.
    pub(crate) fn any_runs_unproven(&self, units: &[u32]) -> bool {
        let mut writes = units.iter().flat_map(|unit| self.bound_of(*unit));
        writes.any(|bound| {
            let apart = bound.compiled.apart.as_ref();
            apart.is_some_and(|apart| apart.unproven)
        })
    }

    /// Returns true if the server may number rows of these units: it remembers the last number.
    pub(crate) fn takes_numbers(&self, units: &[u32]) -> bool {
        let mut bound = units.iter().flat_map(|unit| self.bound_of(*unit));
        bound.any(|p| {
            let mut columns = p.compiled.table.columns.iter();
            p.compiled.action.fires().0 == Op::Insert && columns.any(|column| column.auto)
        })
    }

    /// Returns true if the tables of a unit can undo its writes.
    pub(crate) fn undoes(&self, unit: u32) -> bool {
        self.bound_of(unit).all(|p| p.compiled.table.transactional)
    }

    /// Returns true if a unit is a single write.
    pub(crate) fn is_single(&self, unit: u32) -> bool {
        self.writes_of(unit).len() == 1
    }

    /// Returns true if units only read.
    pub(crate) fn only_read(&self, units: &[u32]) -> bool {
        let mut all = units.iter().flat_map(|unit| self.bound_of(*unit));
        all.all(|bound| bound.compiled.shape.op == Op::Get)
    }

    /// Has the units that follow a unit of their source wait for it, if it is to run again.
    pub(crate) fn hold(&mut self) {
        for unit in 0_u32.. {
            let verdict = match self.verdicts.get(unit as usize) {
                Some(verdict) if self.sources.any() => verdict,
                _ => return,
            };
            if !matches!(
                verdict,
                Some(Verdict::RolledBack(_) | Verdict::WaitsForLock(_))
            ) {
                continue;
            }
            for follower in self.sources.followers(unit) {
                if let Some(slot) = self.verdicts.get_mut(follower as usize) {
                    slot.get_or_insert(Verdict::NotTried);
                }
            }
        }
    }

    /// Concludes a unit with the outcomes of its writes.
    pub(crate) fn succeed(&mut self, unit: u32) {
        let writes = self.writes_of(unit);
        let dones: Option<Dones> = self
            .done
            .get_mut(writes)
            .and_then(|dones| dones.iter_mut().map(Option::take).collect());
        let outcome = dones.ok_or_else(|| Fault::internal("a write got no answer").into());
        self.conclude(unit, Verdict::Final(outcome));
    }

    /// Returns true if a unit has no verdict.
    pub(crate) fn is_open(&self, unit: u32) -> bool {
        let verdict = self.verdicts.get(unit as usize);
        verdict.is_some_and(Option::is_none)
    }

    /// Sets the verdict of a unit.
    pub(crate) fn conclude(&mut self, unit: u32, verdict: Verdict) {
        if let Some(slot) = self.verdicts.get_mut(unit as usize) {
            *slot = Some(verdict);
        }
    }

    /// Sets the verdict of all units of a table that have none.
    pub(crate) fn conclude_table(&mut self, table: &TableName, verdict: &Verdict) {
        for (unit, slot) in self.units.iter().zip(&mut self.verdicts) {
            let mut writes = unit.writes().iter();
            if let Some(at) = writes.position(|w| w.shape.table == *table) {
                slot.get_or_insert_with(|| verdict.for_write(at));
            }
        }
    }

    /// Sets the verdict of all units that have none.
    pub(crate) fn conclude_rest(&mut self, verdict: &Verdict) {
        for slot in &mut self.verdicts {
            slot.get_or_insert_with(|| verdict.clone());
        }
    }

    /// Returns the units without a verdict.
    pub(crate) fn pending(&self) -> Vec<u32> {
        let numbered = (0_u32..).zip(&self.verdicts);
        let pending = numbered.filter(|(_, verdict)| verdict.is_none());
        pending.map(|(unit, _)| unit).collect()
    }
}

fn add_shape(shapes: &mut Vec<Arc<Compiled>>, compiled: Arc<Compiled>) -> u32 {
    let place = shapes
        .iter()
        .position(|known| known.shape == compiled.shape);
    let place = place.unwrap_or_else(|| {
        shapes.push(compiled);
        shapes.len() - 1
    });
    u32::try_from(place).unwrap_or(u32::MAX)
}
