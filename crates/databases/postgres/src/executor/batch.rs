//! A batch under way: its units, their writes matched with the tables' descriptions, and the state
//! of each unit.

pub(super) mod moments;
mod place;
mod steps;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use windrow_core::{Dones, Fault, Op, Unit, UnitFault, Verdict, Write, WriteDone};
use windrow_database::plan::Fence;
use windrow_database::sources::Sources;
use windrow_pgwire::wire::ServerError;

pub(crate) use self::steps::may_fuse;
use super::messages::KnownTypes;
use super::segment::{Mode, Prospect, Segment};
use super::sent::{Sent, SentTransaction};
use crate::catalog::check::Check;
use crate::catalog::table::{NOT_DESCRIBED, Table};
use crate::compiled::Compiled;
use crate::values::key::RowKey;

/// Number of writes of one shape from which one set-based statement is cheaper than single ones.
pub(crate) const FUSE_FROM: usize = 6;

/// A write of the batch, matched with its compiled statement.
#[derive(Clone, Debug)]
pub(crate) struct Placed {
    pub(crate) unit: u32,
    pub(crate) write: u32,
    /// The index of the write's shape in [`Batch::shapes`].
    pub(crate) shape: u32,
    /// True if the write may be sent in a set-based statement.
    pub(crate) sets: bool,
    pub(crate) order: Option<RowKey>,
    pub(crate) keys: std::ops::Range<usize>,
    pub(crate) fence: Fence,
}

/// A request that the server refused, and the units that need it.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) fault: Fault,
    /// The index of each unit in the batch, with that of its first write concerned.
    pub(crate) units: Vec<(u32, usize)>,
}

impl Refused {
    /// Builds the refusal for the units with a write for which `is_concerned` is true.
    pub(crate) fn of<'u>(
        fault: Fault,
        units: impl Iterator<Item = (u32, &'u Unit)>,
        is_concerned: impl Fn(&Write) -> bool,
    ) -> Self {
        let concerned = units.filter_map(|(place, unit)| {
            let at = unit.writes().iter().position(&is_concerned)?;
            Some((place, at))
        });
        Self {
            fault,
            units: concerned.collect(),
        }
    }
}

/// The units of a batch and the state of each.
pub(crate) struct Batch<'a> {
    pub(crate) units: &'a [Unit],
    pub(crate) sources: Sources,
    /// True if the writes are calls: their clients know the types of their statements, and get the
    /// server's messages unchanged. Lanes of SQL clients carry nothing else.
    pub(crate) is_of_calls: bool,
    pub(crate) shapes: Vec<Arc<Compiled>>,
    pub(crate) placed: Vec<Placed>,
    pub(crate) hashes: Vec<u64>,
    /// The index in `placed` at which each unit's writes begin.
    starts: Vec<usize>,
    /// Hashes of rows that are written with the time of the transaction.
    stamped: HashSet<u64, RandomState>,
    pub(crate) prospects: Vec<Prospect>,
    pub(crate) done: Vec<WriteDone>,
    pub(crate) verdicts: Vec<Option<Verdict>>,
    /// True if tables change faster than they can be described. Then no description is used, and
    /// every unit has a transaction of its own.
    pub(crate) distrusted: bool,
    /// The answers to the writes before a failed one, for units that are tried again: other units
    /// may overtake such a unit.
    attempts: Vec<(u32, Vec<WriteDone>)>,
}

impl<'a> Batch<'a> {
    pub(crate) fn new(units: &'a [Unit]) -> Self {
        let first = units.iter().flat_map(Unit::writes).next();
        Self {
            units,
            sources: Sources::of(units),
            is_of_calls: first.is_some_and(|write| write.call().is_some()),
            shapes: Vec::new(),
            placed: Vec::new(),
            hashes: Vec::new(),
            starts: Vec::new(),
            stamped: HashSet::default(),
            prospects: Vec::new(),
            done: Vec::new(),
            verdicts: vec![None; units.len()],
            distrusted: false,
            attempts: Vec::new(),
        }
    }

    /// Gives the verdict to all units that need what the server refused.
    pub(crate) fn conclude_refused(&mut self, refused: &Refused, verdict: &Verdict) {
        for (unit, at) in &refused.units {
            if let Some(slot) = self.verdicts.get_mut(*unit as usize) {
                slot.get_or_insert_with(|| verdict.for_write(*at));
            }
        }
    }

    /// Returns the units without a verdict that do not fit their tables.
    pub(crate) fn misfits(&self) -> impl Iterator<Item = u32> + Clone {
        let units = (0_u32..).zip(self.prospects.iter().zip(&self.verdicts));
        let open = units
            .filter(|(_, (prospect, verdict))| **prospect != Prospect::Good && verdict.is_none());
        open.map(|(unit, _)| unit)
    }

    /// Gives the verdict to all units that use the table, and lets the later units of their sources
    /// wait. Returns the segments with the remaining units.
    pub(crate) fn without_table(
        &mut self,
        segments: Vec<Segment>,
        version: u64,
        verdict: &Verdict,
    ) -> Vec<Segment> {
        for unit in segments.iter().flat_map(|segment| &segment.units) {
            let tables = self.tables_of(&[*unit]);
            if tables.iter().any(|table| table.version == version) {
                self.conclude(*unit, verdict.clone());
            }
        }
        self.hold();
        let open = |unit: &u32| matches!(self.verdicts.get(*unit as usize), Some(None));
        let rest = segments.into_iter().filter_map(|mut segment| {
            segment.units.retain(open);
            let some = !segment.units.is_empty();
            some.then(|| Segment::new(segment.units, segment.mode))
        });
        rest.collect()
    }

    /// Returns the only write of the batch, if a sequence value has to be read after it.
    pub(crate) fn lone_asked(&self) -> Option<u32> {
        let [_] = self.placed.as_slice() else {
            return None;
        };
        let asks = self.compiled_at(0)?.generates.is_some();
        (self.units.len() == 1 && asks).then_some(0)
    }

    /// Returns the statement that checks a table after the writes, or `None` if the table cannot be
    /// checked.
    pub(crate) fn check_of(&self, table: &Table) -> Option<Check> {
        // Updates and deletes may affect other tables; reads and questions change nothing.
        let mut of_table = self
            .shapes
            .iter()
            .filter(|c| c.table.version == table.version);
        let changes = of_table.any(|compiled| compiled.op != Op::Get && !compiled.plain);
        Check::of(table, changes)
    }

    fn any_of(&self, units: &[u32], is: impl Fn(&Compiled) -> bool) -> bool {
        // Mostly no statement of the whole batch is.
        self.shapes.iter().any(|compiled| is(compiled))
            && units.iter().any(|unit| {
                let mut placed = self.placed_of(*unit);
                placed.any(|placed| self.compiled(placed).is_some_and(|compiled| is(compiled)))
            })
    }

    /// Returns true if some units may not share a transaction with others.
    pub(crate) fn has_apart(&self) -> bool {
        self.distrusted || self.shapes.iter().any(|c| c.apart.is_some())
    }

    /// Returns true if a segment has a transaction of its own, in which no description is relied
    /// on.
    pub(crate) fn is_apart(&self, segment: &Segment) -> bool {
        let apart = |compiled: &Compiled| compiled.apart.is_some();
        segment.runs() && (self.distrusted || self.any_of(&segment.units, apart))
    }

    /// Returns true if a segment has a transaction of its own (see [`Batch::is_apart`]), and its
    /// client already knows the columns of its rows.
    pub(crate) fn must_give_known_rows(&self, segment: &Segment) -> bool {
        let units = segment.units.iter();
        let mut whole = units.filter_map(|unit| self.units.get(*unit as usize));
        let has_rows = |write: &Write| KnownTypes::of(write).of_rows().is_some();
        self.is_apart(segment) && whole.any(|unit| unit.writes().iter().any(has_rows))
    }

    /// Returns true if units share a transaction and foreign keys of their tables are deferred.
    /// Such a transaction has them checked at once, so that no unit's violation is repaired by
    /// another unit, and each is found at its statement.
    pub(crate) fn checks_at_once(&self, units: &[u32]) -> bool {
        let defers = |compiled: &Compiled| {
            let proof = compiled.table.proof.as_ref();
            proof.is_some_and(|proof| proof.defers_references())
        };
        units.len() > 1 && self.any_of(units, defers)
    }

    /// Returns true if a segment runs code that is not proven safe.
    pub(crate) fn is_unproven(&self, segment: &Segment) -> bool {
        segment.runs() && (self.distrusted || self.any_of(&segment.units, Compiled::is_unproven))
    }

    /// Returns the range in `placed` of a unit's writes.
    pub(crate) fn writes_of(&self, unit: u32) -> std::ops::Range<usize> {
        let unit = unit as usize;
        let start = self.starts.get(unit).copied().unwrap_or_default();
        let end = self.starts.get(unit + 1).copied().unwrap_or(start);
        start..end
    }

    /// Returns a unit's writes.
    pub(crate) fn placed_of(&self, unit: u32) -> impl Iterator<Item = &Placed> {
        let placed = self.placed.get(self.writes_of(unit));
        placed.into_iter().flatten()
    }

    /// Returns the hashes of the rows that a write touches.
    pub(crate) fn keys_of(&self, placed: &Placed) -> &[u64] {
        self.hashes.get(placed.keys.clone()).unwrap_or_default()
    }

    /// Returns the identity of a write's table.
    pub(crate) fn identity_of(&self, placed: &Placed) -> u64 {
        let shape = self.shapes.get(placed.shape as usize);
        shape.map_or(u64::MAX, |compiled| {
            compiled.table.identity(compiled.table.version)
        })
    }

    /// Returns the client's write.
    pub(crate) fn write(&self, placed: &Placed) -> Option<&'a Write> {
        let unit = self.units.get(placed.unit as usize)?;
        unit.writes().get(placed.write as usize)
    }

    /// Returns true if the client's own text of a unit gives a better error.
    pub(crate) fn asks_origin(&self, unit: u32, error: &ServerError) -> bool {
        let unit = self.units.get(unit as usize);
        unit.is_some_and(|unit| asks_origin(unit, error))
    }

    /// Returns the write at this index of `placed`.
    pub(crate) fn write_at(&self, item: u32) -> Option<&'a Write> {
        self.write(self.placed.get(item as usize)?)
    }

    /// Returns true if the statement at this place of a transaction was sent by the name of a
    /// prepared statement, which the server may have lost. If the statement was sent as text, an
    /// error about a missing prepared statement comes from a function or a trigger.
    pub(crate) fn goes_by_name(&self, sent: &SentTransaction, at: usize) -> bool {
        let by_text = sent.segment.mode == Mode::Fresh || self.is_apart(&sent.segment);
        !by_text || !matches!(sent.statements.get(at), Some(Sent::Single(_)))
    }

    /// Returns the compiled statement of a write.
    pub(crate) fn compiled(&self, placed: &Placed) -> Option<&Arc<Compiled>> {
        self.shapes.get(placed.shape as usize)
    }

    /// Returns true if the call at this index of `placed` is a question, which writes nothing.
    pub(crate) fn is_question(&self, item: u32) -> bool {
        let asks = |compiled: &Arc<Compiled>| compiled.op == Op::Get;
        self.is_of_calls && self.compiled_at(item).is_some_and(asks)
    }

    /// Returns true if a segment holds nothing but questions.
    pub(crate) fn is_of_questions(&self, segment: &Segment) -> bool {
        let mut items = segment.units.iter().flat_map(|unit| self.writes_of(*unit));
        self.is_of_calls && items.all(|item| u32::try_from(item).is_ok_and(|i| self.is_question(i)))
    }

    /// Returns the compiled statement of the write at this index of `placed`.
    pub(crate) fn compiled_at(&self, item: u32) -> Option<&Arc<Compiled>> {
        self.compiled(self.placed.get(item as usize)?)
    }

    /// Returns the version of the table of the write at this index of `placed`.
    pub(crate) fn version_of(&self, item: u32) -> u64 {
        let compiled = self.compiled_at(item);
        compiled.map_or(NOT_DESCRIBED, |compiled| compiled.table.version)
    }

    /// Returns the described tables that units use, each once.
    pub(crate) fn tables_of(&self, units: &[u32]) -> Vec<&Arc<Table>> {
        let mut tables: Vec<&Arc<Table>> = Vec::new();
        let mut last = None;
        for unit in units {
            for placed in self.placed_of(*unit) {
                if last.replace(placed.shape) == Some(placed.shape) {
                    continue;
                }
                let Some(compiled) = self.shapes.get(placed.shape as usize) else {
                    continue;
                };
                let version = compiled.table.version;
                let described = version != NOT_DESCRIBED;
                if described && !tables.iter().any(|t| t.version == version) {
                    tables.push(&compiled.table);
                }
            }
        }
        tables
    }

    /// Counts the writes of units by shape. Returns the shape, the number of its writes that may be
    /// sent in sets, and the number of the others.
    pub(crate) fn counts(&self, units: &[u32]) -> Vec<(usize, usize, usize)> {
        let mut counts = vec![(0, 0); self.shapes.len()];
        for unit in units {
            for placed in self.placed_of(*unit) {
                match counts.get_mut(placed.shape as usize) {
                    Some((sets, _)) if placed.sets => *sets += 1,
                    Some((_, singles)) => *singles += 1,
                    None => {}
                }
            }
        }
        let counted = counts.into_iter().enumerate();
        counted
            .filter(|(_, (sets, singles))| sets + singles > 0)
            .map(|(shape, (sets, singles))| (shape, sets, singles))
            .collect()
    }

    /// Returns true if set-based statements can leave out and report the failing rows of these
    /// units. Such rows must be single plain inserts with a key, and no other write of these units
    /// may use their tables.
    ///
    /// Rows that are left out run after all others. If a table has several unique keys, leaving out
    /// one row can change whether later rows are duplicates, so no two rows may share a key. If
    /// several units are of one source, all must use one table, so that their answers show the
    /// order of that source.
    pub(crate) fn can_tell(&self, units: &[u32]) -> bool {
        let mut plain: HashMap<u64, bool> = HashMap::new();
        let mut rows = HashSet::new();
        for unit in units {
            let writes = self.writes_of(*unit);
            let alone = writes.len() == 1;
            for placed in self.placed.get(writes).into_iter().flatten() {
                let Some(compiled) = self.shapes.get(placed.shape as usize) else {
                    return false;
                };
                if self.is_of_calls && compiled.op == Op::Get {
                    continue;
                }
                let table = &compiled.table;
                let tells = compiled.telling.is_some();
                let same = *plain.entry(table.identity(table.version)).or_insert(tells);
                let several = tells && (table.hidden_unique || table.uniques.len() > 1);
                let keys = self.hashes.get(placed.keys.clone()).unwrap_or_default();
                let shared = several && keys.iter().any(|key| !rows.insert(*key));
                if same != tells || (tells && !alone) || shared {
                    return false;
                }
            }
        }
        let tables = !self.sources.any() || plain.len() == 1;
        tables && plain.values().any(|tells| *tells)
    }

    /// Gives the unit the answers of its writes as the verdict.
    pub(crate) fn succeed(&mut self, unit: u32) {
        let writes = self.writes_of(unit);
        let dones: Dones = self
            .done
            .get_mut(writes)
            .map(|dones| dones.iter_mut().map(std::mem::take).collect())
            .unwrap_or_default();
        self.conclude(unit, Verdict::Final(Ok(dones)));
    }

    /// Keeps the answers to the writes before the failed one, for a unit that is tried again.
    pub(crate) fn remember(&mut self, unit: u32, before: Vec<WriteDone>) {
        if !before.is_empty() {
            self.attempts.push((unit, before));
        }
    }

    /// Returns the answers that were kept of a unit, if they are as many as `now`; otherwise `now`.
    pub(crate) fn recall(&mut self, unit: u32, now: Vec<WriteDone>) -> Vec<WriteDone> {
        let is_kept = |(of, before): &(u32, Vec<_>)| *of == unit && before.len() == now.len();
        match self.attempts.iter().position(is_kept) {
            Some(place) => self.attempts.swap_remove(place).1,
            None => now,
        }
    }

    /// Gives the unit a failure as the verdict.
    pub(crate) fn fail(&mut self, unit: u32, fault: impl Into<UnitFault>) {
        self.conclude(unit, Verdict::Final(Err(fault.into())));
    }

    /// Sets the verdict of the unit.
    pub(crate) fn conclude(&mut self, unit: u32, verdict: Verdict) {
        if let Some(slot) = self.verdicts.get_mut(unit as usize) {
            *slot = Some(verdict);
        }
    }

    /// Lets the later units of a source wait if an earlier one is to run again or waits for a lock.
    pub(crate) fn hold(&mut self) {
        if !self.sources.any() {
            return;
        }
        for unit in 0_u32.. {
            match self.verdicts.get(unit as usize) {
                Some(Some(Verdict::RolledBack(_) | Verdict::WaitsForLock(_))) => {
                    self.hold_behind(unit);
                }
                Some(_) => {}
                None => return,
            }
        }
    }

    /// Lets the later units of a unit's source wait for this unit.
    pub(crate) fn hold_behind(&mut self, unit: u32) {
        for follower in self.sources.followers(unit) {
            if let Some(slot) = self.verdicts.get_mut(follower as usize) {
                slot.get_or_insert(Verdict::NotTried);
            }
        }
    }

    /// Returns the units without a verdict.
    pub(crate) fn pending(&self) -> Vec<u32> {
        let numbered = (0_u32..).zip(&self.verdicts);
        let pending = numbered.filter(|(_, verdict)| verdict.is_none());
        pending.map(|(unit, _)| unit).collect()
    }

    /// Gives this verdict to all units without one.
    pub(crate) fn conclude_rest(&mut self, verdict: &Verdict) {
        for slot in &mut self.verdicts {
            slot.get_or_insert_with(|| verdict.clone());
        }
    }
}

/// The SQLSTATE class of errors in values. The server raises them wherever it computes constants.
const DATA_EXCEPTION: &str = "22";

/// Returns true if a failed unit has to run again with its clients' own texts. A call whose
/// literals were lifted runs as the template first. Only the client's own text shows where in it
/// an error is, and whether a prepared statement fails at Bind or at Execute.
fn asks_origin(unit: &Unit, error: &ServerError) -> bool {
    let says_where = error.position.is_some() || error.context.is_some();
    let is_of_value = error.code.starts_with(DATA_EXCEPTION);
    let calls = unit.writes().iter().filter_map(Write::call);
    let mut origins = calls.filter_map(|call| call.origin.as_ref());
    origins.any(|origin| says_where || (is_of_value && origin.own.is_some()))
}
