//! Moves a batch to another database: its rows are written there while they are locked here, and
//! deleted here once they are committed there.
//!
//! The order of commits shows how far a dead mover had come:
//!
//! 1. in the destination: each row together with its marker, which names the batch;
//! 2. in the source: the rows deleted, the batch noted;
//! 3. in the destination: the batch's markers are removed; in the source: the batch is forgotten.
//!
//! This decides about a row that is in the source and has a marker: if the marker's batch is not
//! noted, step 2 was never committed, and the row is only deleted. If it is noted, the row that the
//! marker was made for is gone, and this is another one with the same key: it is written, and its
//! marker replaces the old one in the same transaction. No other marker of the old batch is
//! touched.
//!
//! A mover that is killed may have sent step 1 to a server that reads it only after another mover
//! has done all three. [`Claims`] say how long markers stay for its sake.
//!
//! A database without transactions has no markers. Step 1 writes rows by their keys, so that a row
//! without step 2 is written again with the same values, and is one row all the same.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::Arc;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windrow_bookkeeping::{forget_batches, note_batch, noted_batches};
use windrow_core::moves::{Mover, PickMost, Picked, Takes};
use windrow_core::{Fault, FaultClass, Name, Shape, TableName, Unit, Value, Write};

use super::batch::{Batch, Refusal, Remembered, reject};
use super::claims::Claims;
use super::markers::Markers;
use super::order::{Elsewhere, Order};
use super::shapes::{shape, unfilled, values};
use super::sorted_rows::SortedRows;
use super::trouble::{Trouble, is_retried, unknown};

pub(super) struct Across {
    mover: Box<dyn Mover>,
    markers: Markers,
    elsewhere: Elsewhere,
    known: Remembered<TableName, Target>,
    claims: Claims,
    /// The batches of old markers that must be replaced, by the names of their rows.
    old: Remembered<Box<str>, Box<str>>,
    /// Batches whose markers are gone, and that the source should forget.
    done: Vec<Box<str>>,
    /// True if writes may be on their way whose outcomes are unknown.
    is_unsure: bool,
    /// True once it was checked for batches of dead movers.
    is_cleaned: bool,
}

/// A table that rows go to.
#[derive(Clone)]
struct Target {
    shape: Arc<Shape>,
    takers: Arc<[Taker]>,
}

/// The place of a value that its column needs in another form, and the forms of both columns.
type Taker = (usize, Takes, Option<Takes>);

impl Across {
    pub(super) fn new(mover: Box<dyn Mover>, elsewhere: Elsewhere) -> Self {
        Self {
            mover,
            markers: Markers::new(&elsewhere),
            claims: Claims::new(&elsewhere.relocation, &elsewhere.batches),
            elsewhere,
            known: Remembered::default(),
            old: Remembered::default(),
            done: Vec::new(),
            is_unsure: false,
            is_cleaned: false,
        }
    }

    pub(super) fn mover(&mut self) -> &mut Box<dyn Mover> {
        &mut self.mover
    }

    pub(super) fn into_mover(self) -> Box<dyn Mover> {
        self.mover
    }

    /// Moves at most `rows` rows.
    pub(super) async fn batch(&mut self, order: &Order, rows: usize) -> Result<Batch, Trouble> {
        let source = order.plan.source.to_string();
        if self.elsewhere.transactional && !self.is_cleaned {
            let cleaned = self.clean().await;
            cleaned.map_err(|fault| Trouble::of(source.as_str(), fault))?;
            self.is_cleaned = true;
        }
        let moved = self.carry(order, rows, &source).await;
        if moved.is_err() {
            // An error here means that the connection is lost, which rolls back as well.
            self.mover.rollback().await.ok();
            if !self.is_unsure {
                self.claims.close(&mut *self.mover).await;
            }
        }
        moved
    }

    async fn carry(&mut self, order: &Order, rows: usize, source: &str) -> Result<Batch, Trouble> {
        let trouble = |fault| Trouble::of(source, fault);
        let most = PickMost {
            rows,
            bytes: order.batch_bytes,
        };
        let marks = self.elsewhere.transactional;
        if marks && !self.claims.is_open() {
            let claim = self.claims.name(&self.new_batch());
            let opened = self.claims.open(&mut *self.mover, claim).await;
            if !opened.map_err(trouble)? {
                return Ok(self.idle().await);
            }
        }
        let mut picked = self.mover.pick(most).await.map_err(trouble)?;
        if picked.is_empty() {
            self.claims.close(&mut *self.mover).await;
            return Ok(self.idle().await);
        }
        let batch = self.new_batch();
        let mut sorted = self.write(order, &mut picked, &batch).await?;
        self.meet(&picked, &mut sorted, &batch)
            .await
            .map_err(trouble)?;
        let taken_out = self.take_out(&sorted, &batch).await;
        taken_out.map_err(|fault| Trouble::of_leaving(order, fault))?;
        if marks && !sorted.gone.is_empty() {
            self.claims.committed(batch, Instant::now());
        }
        if marks && self.claims.needs_look(Instant::now()) {
            self.look().await;
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

    /// Uses the time without rows to remove markers. Returns an empty batch.
    async fn idle(&mut self) -> Batch {
        if self.claims.has_marked() {
            self.look().await;
        }
        self.forget_done().await;
        Batch::default()
    }

    /// Returns a name that no other batch has.
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
        // True while no row lacks a value.
        let mut whole = true;
        for (place, row) in picked.iter_mut().enumerate() {
            let named = order.template.name(row.route.as_deref(), order.name_limit);
            if let Some(fault) = row.unfit.take() {
                let table = named.map_or(String::new(), |table| table.to_string());
                sorted.refused.push(Refusal::new(place, table, fault));
                continue;
            }
            match named {
                Ok(table) => {
                    whole &= !row.values.iter().any(Value::is_null);
                    let target = self.target(order, &table).await?;
                    match self.unit(order, target, row, batch) {
                        Ok((unit, markers)) => {
                            units.push(unit);
                            places.push((place, table, markers));
                        }
                        Err(fault) => {
                            sorted
                                .refused
                                .push(Refusal::new(place, table.to_string(), fault));
                        }
                    }
                }
                Err(fault) => sorted
                    .refused
                    .push(Refusal::new(place, String::new(), fault)),
            }
        }
        self.is_unsure = true;
        let outcomes = self.markers.run(units).await;
        let outcomes = outcomes.map_err(|fault| Trouble::of("the destination", fault))?;
        if let Some(fault) = unknown(&outcomes).filter(|_| self.elsewhere.transactional) {
            // The next check of the markers shows which rows were written. Until then the batch
            // must not be noted: a marker of a noted batch proves nothing about a row. The same
            // holds for markers that are assigned to the batch.
            return Err(Trouble::Retry(fault));
        }
        self.is_unsure = false;
        let routed = order.plan.route.is_some();
        for ((place, table, markers), outcome) in places.into_iter().zip(outcomes) {
            sorted.add(place, &table, outcome, order, markers)?;
        }
        match sorted.refused.first() {
            Some(refusal)
                if whole
                    && !routed
                    && self.elsewhere.described.is_none()
                    && sorted.is_nothing_but_empty() =>
            {
                Err(Trouble::of(&*refusal.destination, unfilled(&refusal.fault)))
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
        self.known.insert(table.clone(), target.clone());
        Ok(target)
    }

    /// Finds columns of the table that accept values in another form than the source returns them.
    async fn takers(&mut self, order: &Order, table: &TableName) -> Result<Arc<[Taker]>, Trouble> {
        let Some(there) = &self.elsewhere.described else {
            return Ok([].into());
        };
        let facts = match there.describe(table).await {
            Ok(facts) => facts.unwrap_or_default(),
            Err(fault) if is_retried(&fault) => return Err(Trouble::Retry(fault)),
            // The writes report the fault.
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

    /// Returns the unit of a row, and the number of writes of its marker, which come first.
    fn unit(
        &mut self,
        order: &Order,
        target: Target,
        row: &mut Picked,
        batch: &str,
    ) -> Result<(Unit, usize), Fault> {
        let mut given = std::mem::take(&mut row.values);
        for (place, takes, gives) in &*target.takers {
            let Some(value) = given.get_mut(*place) else {
                continue;
            };
            let taken = takes.taken(*gives, std::mem::replace(value, Value::Null));
            *value = taken.map_err(|what| misfit(order.plan.columns.get(*place), what))?;
        }
        let write = Write::new(
            target.shape,
            values(&order.plan.columns, &self.elsewhere, &row.name, given),
        );
        let mut writes = match self.elsewhere.transactional {
            true => {
                let old = self.old.take(&*row.name);
                self.markers.of_row(&row.name, batch, old.as_deref())
            }
            false => Vec::new(),
        };
        let markers = writes.len();
        writes.push(write);
        Ok((Unit::of(writes), markers))
    }

    /// Decides about rows whose markers existed before.
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
        let mut batches: Vec<Box<str>> = found.iter().flatten().cloned().collect();
        batches.sort_unstable();
        batches.dedup();
        let noted = noted_batches(&mut *self.mover, &batches).await?;
        let (mut places, mut written) = (Vec::new(), Vec::new());
        for ((place, name), found) in met.iter().zip(names).zip(found) {
            match found {
                // Another row with the same key. The next batch writes it.
                Some(old) if noted.contains(&old) => self.old.insert(name.into(), old),
                Some(old) => {
                    places.push(*place);
                    written.push((name, old));
                }
                None => {}
            }
        }
        self.is_unsure = true;
        let assigned = self.markers.assign(&written, batch).await?;
        self.is_unsure = false;
        let assigned = places.into_iter().zip(assigned).filter(|(_, done)| *done);
        sorted.gone.extend(assigned.map(|(place, _)| place));
        Ok(())
    }

    /// Deletes written rows from the source, and makes refused rows dead letters.
    async fn take_out(&mut self, sorted: &SortedRows, batch: &str) -> Result<(), Fault> {
        if !sorted.gone.is_empty() {
            self.mover.delete(&sorted.gone).await?;
            if self.elsewhere.transactional {
                note_batch(&mut *self.mover, batch).await?;
            }
        }
        // Other movers see that the outcomes of this batch are known.
        let renewed = self.claims.needs_renewal().then(|| self.claims.name(batch));
        let mut forgotten = self.done.clone();
        forgotten.extend(self.claims.dead(Instant::now()));
        if let Some(claim) = &renewed {
            note_batch(&mut *self.mover, claim).await?;
            forgotten.extend(self.claims.own());
        }
        reject(&mut *self.mover, &sorted.refused).await?;
        if !forgotten.is_empty() {
            forget_batches(&mut *self.mover, &forgotten).await?;
        }
        self.mover.commit().await?;
        self.done.clear();
        if let Some(renewed) = renewed {
            self.claims.replace(renewed);
        }
        Ok(())
    }

    /// Removes the markers that dead movers to this destination have left, and forgets their
    /// batches.
    async fn clean(&mut self) -> Result<(), Fault> {
        self.claims.find_left(&mut *self.mover).await?;
        self.claims.read(&mut *self.mover).await?;
        self.remove_markers().await;
        self.forget_done().await;
        Ok(())
    }

    /// Reads the claims of other movers, and removes the markers that nobody needs any more.
    async fn look(&mut self) {
        match self.claims.read(&mut *self.mover).await {
            Ok(()) => self.remove_markers().await,
            // The next statement shows if the connection is lost.
            Err(fault) => tracing::debug!(%fault, "the claims of other movers are unknown for now"),
        }
    }

    /// Removes markers that no mover needs any more. Markers that stay are cleaned up by a later
    /// move, and do no harm until then.
    async fn remove_markers(&mut self) {
        let unneeded = self.claims.take_unneeded(Instant::now());
        if unneeded.is_empty() {
            return;
        }
        match self.markers.remove(&unneeded).await {
            Ok(()) => self.done.extend(unneeded),
            Err(fault) => tracing::debug!(%fault, "markers stay for now"),
        }
    }

    /// Forgets batches without markers, outside a transaction. What is not forgotten does no harm.
    async fn forget_done(&mut self) {
        if self.done.is_empty() {
            return;
        }
        let forgotten = forget_batches(&mut *self.mover, &self.done).await;
        if let Err(fault) = forgotten {
            tracing::debug!(%fault, "a batch stays noted for now");
        }
        self.done.clear();
    }

    /// Removes the last markers and forgets the last batches. Waits for movers that have claims
    /// until they are known to be dead, or for a second if the move is to stop.
    pub(super) async fn finish(&mut self, stop: &CancellationToken) {
        if self.elsewhere.transactional {
            self.claims.close(&mut *self.mover).await;
            let ended = self.claims.settle(&mut *self.mover, stop).await;
            if let Err(fault) = ended {
                tracing::debug!(%fault, "markers and claims stay for now");
            }
        }
        self.remove_markers().await;
        self.forget_done().await;
    }
}

/// Returns the fault of a value that its column would read as another one.
fn misfit(column: Option<&Name>, what: &str) -> Fault {
    let name = column.map_or("", |name| name);
    let message =
        format!("the value of column {name} is {what}, which its column cannot hold as it is");
    let fault = Fault::new(FaultClass::Value, "22000", message);
    fault.with_column(column.map(|name| &**name))
}
