//! A batch to another database: written there while the rows are locked here, deleted here once it
//! is committed there.
//!
//! What tells where a dead mover had come to, by the order of its commits:
//!
//! 1. in the destination: each row together with its marker, which names the batch;
//! 2. in the source: the rows deleted, the batch noted;
//! 3. in the destination: the batch's markers go; in the source: the batch is forgotten.
//!
//! A row that is in the source and has a marker: if the marker's batch is not noted, step 2 never
//! came, and the row only goes. If it is noted, the row that the marker was made for is gone, and
//! this is another one with the same key.
//!
//! A database without transactions has no markers. Step 1 writes rows by their keys, so that a row
//! whose step 2 never came is written again with the same values, and is one row all the same.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;

use windrow_core::moves::{Mover, PickMost, Picked, Rejected, Takes};
use windrow_core::{
    Fault, FaultClass, Name, RowDone, RowWrite, Shape, TableName, Unit, UnitOutcome, Value,
};

use super::batch::Batch;
use super::markers::Markers;
use super::order::{Elsewhere, Order};
use super::shapes::{of_key, shape, unfilled, values};
use super::trouble::{Trouble, is_of_row, is_retried};

/// Batches of dead movers that are cleaned up at once.
const MOST_OLD: usize = 1_000;

/// Tables that a mover remembers.
const MOST_KNOWN: usize = 10_000;

/// The write of a row failed on its marker.
const MARKER: usize = 0;

pub(super) struct Across {
    mover: Box<dyn Mover>,
    markers: Markers,
    elsewhere: Elsewhere,
    known: HashMap<TableName, Target>,
    /// Batches whose markers are gone, to be forgotten by the source.
    done: Vec<Box<str>>,
    /// What dead movers left was looked for.
    cleaned: bool,
}

/// A table that rows go to.
#[derive(Clone)]
struct Target {
    shape: Arc<Shape>,
    takers: Arc<[Taker]>,
}

/// The place of a value whose column takes it otherwise than it comes, and how the two columns have
/// it.
type Taker = (usize, Takes, Option<Takes>);

/// What becomes of the rows of a batch, by their places.
#[derive(Default)]
struct SortedRows {
    /// They are in their destinations.
    gone: Vec<usize>,
    /// Their markers were there before.
    met: Vec<usize>,
    /// They are refused: where, and why.
    refused: Vec<(usize, String, Fault)>,
    /// They were not written for no fault of their own.
    passing: Option<Fault>,
}

impl SortedRows {
    /// Every row was refused, and each for a value that it does not have.
    fn is_nothing_but_empty(&self) -> bool {
        let others = self.gone.is_empty() && self.met.is_empty() && self.passing.is_none();
        let mut faults = self.refused.iter().map(|(_, _, fault)| fault.class);
        others && faults.all(|class| class == FaultClass::NotNull)
    }
}

impl Across {
    pub(super) fn new(mover: Box<dyn Mover>, elsewhere: Elsewhere) -> Self {
        Self {
            mover,
            markers: Markers::new(&elsewhere),
            elsewhere,
            known: HashMap::new(),
            done: Vec::new(),
            cleaned: false,
        }
    }

    pub(super) fn mover(&mut self) -> &mut Box<dyn Mover> {
        &mut self.mover
    }

    pub(super) fn into_mover(self) -> Box<dyn Mover> {
        self.mover
    }

    /// Moves up to so many rows.
    pub(super) async fn batch(&mut self, order: &Order, rows: usize) -> Result<Batch, Trouble> {
        let source = order.plan.source.to_string();
        if self.elsewhere.transactional && !self.cleaned {
            let cleaned = self.clean().await;
            cleaned.map_err(|fault| Trouble::of(source.as_str(), fault))?;
            self.cleaned = true;
        }
        let moved = self.carry(order, rows, &source).await;
        if moved.is_err() {
            // An error here says that the connection is lost, which rolls back as well.
            self.mover.rollback().await.ok();
        }
        moved
    }

    async fn carry(&mut self, order: &Order, rows: usize, source: &str) -> Result<Batch, Trouble> {
        let trouble = |fault| Trouble::of(source, fault);
        let most = PickMost {
            rows,
            bytes: order.batch_bytes,
        };
        let mut picked = self.mover.pick(most).await.map_err(trouble)?;
        if picked.is_empty() {
            return Ok(Batch::default());
        }
        let batch = self.new_batch();
        let mut sorted = self.write(order, &mut picked, &batch).await?;
        self.meet(&picked, &mut sorted, &batch)
            .await
            .map_err(trouble)?;
        let taken_out = self.take_out(&sorted, &batch).await;
        taken_out.map_err(|fault| Trouble::of_leaving(order, fault))?;
        if self.elsewhere.transactional && !sorted.gone.is_empty() {
            let batch = [batch];
            match self.markers.remove(&batch).await {
                Ok(()) => self.done.extend(batch),
                // They are cleaned up by a later move, and do no harm until then.
                Err(fault) => tracing::debug!(%fault, "markers stay for now"),
            }
        }
        let moved = Batch {
            picked: picked.len() as u64,
            moved: sorted.gone.len() as u64,
            rejected: sorted.refused.len() as u64,
            last: false,
        };
        match sorted.passing {
            Some(fault) if moved.moved + moved.rejected == 0 => Err(Trouble::Retry(fault)),
            _ => Ok(moved),
        }
    }

    /// A name that no other batch has.
    fn new_batch(&self) -> Box<str> {
        // The keys of each new state are random.
        let [a, b] = [0, 1].map(|word: u8| RandomState::new().hash_one(word));
        format!("{}{a:016x}{b:016x}", self.elsewhere.batches).into()
    }

    /// Writes the rows to the destination.
    async fn write(
        &mut self,
        order: &Order,
        picked: &mut [Picked],
        batch: &str,
    ) -> Result<SortedRows, Trouble> {
        let mut sorted = SortedRows::default();
        let (mut units, mut places) = (Vec::new(), Vec::new());
        // No row lacks a value.
        let mut whole = true;
        for (place, row) in picked.iter_mut().enumerate() {
            let named = order.template.name(row.route.as_deref(), order.name_limit);
            if let Some(fault) = row.unfit.take() {
                let table = named.map_or(String::new(), |table| table.to_string());
                sorted.refused.push((place, table, fault));
                continue;
            }
            match named {
                Ok(table) => {
                    whole &= !row.values.iter().any(Value::is_null);
                    let target = self.target(order, &table).await?;
                    match self.unit(order, target, row, batch) {
                        Ok(unit) => {
                            units.push(unit);
                            places.push((place, table));
                        }
                        Err(fault) => sorted.refused.push((place, table.to_string(), fault)),
                    }
                }
                Err(fault) => sorted.refused.push((place, String::new(), fault)),
            }
        }
        let outcomes = self.markers.run(units).await;
        let outcomes = outcomes.map_err(|fault| Trouble::of("the destination", fault))?;
        let routed = order.plan.route.is_some();
        for ((place, table), outcome) in places.into_iter().zip(outcomes) {
            self.sort(&mut sorted, place, &table, outcome, order)?;
        }
        match sorted.refused.first() {
            Some((_, table, fault))
                if whole
                    && !routed
                    && self.elsewhere.described.is_none()
                    && sorted.is_nothing_but_empty() =>
            {
                Err(Trouble::of(table.as_str(), unfilled(fault)))
            }
            _ => Ok(sorted),
        }
    }

    async fn target(&mut self, order: &Order, table: &TableName) -> Result<Target, Trouble> {
        if let Some(known) = self.known.get(table) {
            return Ok(known.clone());
        }
        let target = Target {
            shape: Arc::new(shape(order, table, &self.elsewhere)),
            takers: self.takers(order, table).await?,
        };
        if self.known.len() >= MOST_KNOWN {
            self.known.clear();
        }
        self.known.insert(table.clone(), target.clone());
        Ok(target)
    }

    /// Looks for columns of the table that take values otherwise than the source gives them.
    async fn takers(&mut self, order: &Order, table: &TableName) -> Result<Arc<[Taker]>, Trouble> {
        let Some(there) = &self.elsewhere.described else {
            return Ok([].into());
        };
        let facts = match there.describe(table).await {
            Ok(facts) => facts.unwrap_or_default(),
            Err(fault) if is_retried(&fault) => return Err(Trouble::Retry(fault)),
            // Whoever writes to it is told.
            Err(_) => return Ok([].into()),
        };
        let columns = order.plan.columns.iter().enumerate();
        let gives = &self.elsewhere.gives;
        let taker = |(place, column): (usize, &Name)| {
            let lower = column.to_lowercase();
            let mut takes = facts.takes.iter();
            let (_, takes) = takes.find(|(name, _)| name.to_lowercase() == lower)?;
            let given = gives.iter().find(|(name, _)| name == column);
            Some((place, *takes, given.map(|(_, gives)| *gives)))
        };
        Ok(columns.filter_map(taker).collect())
    }

    fn unit(
        &self,
        order: &Order,
        target: Target,
        row: &mut Picked,
        batch: &str,
    ) -> Result<Unit<RowWrite>, Fault> {
        let mut given = std::mem::take(&mut row.values);
        for (place, takes, gives) in &*target.takers {
            let Some(value) = given.get_mut(*place) else {
                continue;
            };
            let taken = takes.taken(*gives, std::mem::replace(value, Value::Null));
            *value = taken.map_err(|what| misfit(order.plan.columns.get(*place), what))?;
        }
        let write = RowWrite::new(
            target.shape,
            values(&order.plan.columns, &self.elsewhere, &row.name, given),
        );
        Ok(match self.elsewhere.transactional {
            true => self.markers.marked(&row.name, batch, write),
            false => Unit::one(write),
        })
    }

    fn sort(
        &self,
        sorted: &mut SortedRows,
        place: usize,
        table: &TableName,
        outcome: UnitOutcome<RowDone>,
        order: &Order,
    ) -> Result<(), Trouble> {
        let Err(failed) = outcome else {
            sorted.gone.push(place);
            return Ok(());
        };
        let fault = match self.elsewhere.transactional {
            true => failed.fault,
            false => of_key(failed.fault, order),
        };
        let routed = order.plan.route.is_some();
        let of_marker = self.elsewhere.transactional && failed.at == MARKER;
        if is_retried(&fault) {
            sorted.passing = Some(fault);
        } else if of_marker && fault.class == FaultClass::Unique {
            sorted.met.push(place);
        } else if !of_marker && is_of_row(&fault, routed) {
            sorted.refused.push((place, table.to_string(), fault));
        } else {
            return Err(Trouble::of(table.to_string(), fault));
        }
        Ok(())
    }

    /// Judges rows whose markers were there before.
    async fn meet(
        &mut self,
        picked: &[Picked],
        sorted: &mut SortedRows,
        batch: &str,
    ) -> Result<(), Fault> {
        if sorted.met.is_empty() {
            return Ok(());
        }
        let met = std::mem::take(&mut sorted.met);
        let name = |place: &usize| picked.get(*place).map_or("", |row| &*row.name);
        let names: Vec<&str> = met.iter().map(name).collect();
        let found = self.markers.batches(&names).await?;
        let mut named: Vec<Box<str>> = found.iter().flatten().cloned().collect();
        named.sort_unstable();
        named.dedup();
        let noted = self.mover.noted(&named).await?;
        let (old, live): (Vec<_>, Vec<_>) = named.into_iter().zip(noted).partition(|(_, n)| *n);
        let old: Vec<Box<str>> = old.into_iter().map(|(batch, _)| batch).collect();
        // Rows that only have the key of one that was moved before: their turn comes with the next
        // batch.
        self.markers.remove(&old).await?;
        let is_live = |batch: &str| live.iter().any(|(name, _)| **name == *batch);
        let mine: Vec<usize> = met
            .iter()
            .zip(&found)
            .filter(|(_, found)| found.as_deref().is_some_and(is_live))
            .map(|(place, _)| *place)
            .collect();
        let names: Vec<&str> = mine.iter().map(name).collect();
        let adopted = self.markers.adopt(&names, batch).await?;
        let adopted = mine.into_iter().zip(adopted).filter(|(_, done)| *done);
        sorted.gone.extend(adopted.map(|(place, _)| place));
        Ok(())
    }

    /// What was written goes from the source, what was refused goes to the dead letters.
    async fn take_out(&mut self, sorted: &SortedRows, batch: &str) -> Result<(), Fault> {
        if !sorted.gone.is_empty() {
            self.mover.delete(&sorted.gone).await?;
            if self.elsewhere.transactional {
                self.mover.note(batch).await?;
            }
        }
        if !sorted.refused.is_empty() {
            let rejected: Vec<Rejected<'_>> = sorted
                .refused
                .iter()
                .map(|(row, destination, fault)| Rejected {
                    row: *row,
                    destination,
                    fault,
                })
                .collect();
            self.mover.reject(&rejected).await?;
        }
        if !self.done.is_empty() {
            self.mover.forget(&self.done).await?;
        }
        self.mover.commit().await?;
        self.done.clear();
        Ok(())
    }

    /// Takes out what dead movers to this destination left: the markers of batches that are noted.
    async fn clean(&mut self) -> Result<(), Fault> {
        let prefix = &*self.elsewhere.batches;
        let mut old = self.mover.batches(MOST_OLD).await?;
        old.retain(|batch| batch.starts_with(prefix));
        if old.is_empty() {
            return Ok(());
        }
        self.markers.remove(&old).await?;
        self.mover.forget(&old).await
    }

    /// Forgets the last batches. What is not forgotten does no harm.
    pub(super) async fn finish(&mut self) {
        if self.done.is_empty() {
            return;
        }
        if let Err(fault) = self.mover.forget(&self.done).await {
            tracing::debug!(%fault, "a batch stays noted for now");
        }
        self.done.clear();
    }
}

/// What is said of a value that its column would take for another one.
fn misfit(column: Option<&Name>, what: &str) -> Fault {
    let name = column.map_or("", |name| name);
    let message =
        format!("the value of column {name} is {what}, which its column cannot hold as it is");
    let fault = Fault::new(FaultClass::Value, "22000", message);
    fault.with_column(column.map(|name| &**name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passing_faults_concern_no_row() {
        let away = Fault::unavailable("x");
        assert!(is_retried(&away) && !is_of_row(&away, true));
        let unknown = Fault::unknown("x");
        assert!(is_retried(&unknown) && !is_of_row(&unknown, true));
    }
}
