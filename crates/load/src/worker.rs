//! Writes portions: by the bulk form what it takes, through the lane all else. A load runs several
//! workers side by side.

use std::ops::Range;
use std::sync::Arc;

use tokio::sync::mpsc;
use windrow_core::{Fault, Loaded, Span};

use super::LoadError;
use super::bulk::{BulkOutcome, BulkWriter, Contents, Piece};
use super::cut::{cut, rows_in};
use super::lane::{Lane, Scene};
use super::lock::lock;
use super::parcel::{Parcel, lines, place};
use super::patience::Patience;
use super::rejects::Reject;
use super::shared::Shared;
use super::way::Way;
use crate::source::Portion;

/// Fewer rows than these, left over from an earlier run, are not worth a bulk statement of their
/// own.
const LEFTOVER_ROWS: usize = 64;

/// Writes portions.
pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    /// The bulk form; `None`: all rows go through the lane.
    pub(super) bulk_writer: Option<BulkWriter>,
    pub(super) lane: Lane,
}

/// Portions that were read and wait for a worker.
pub(super) type Full = Arc<tokio::sync::Mutex<mpsc::Receiver<Parcel>>>;

impl Worker {
    /// Writes portions until there are none or the load is halted.
    pub(super) async fn run(
        mut self,
        full: Full,
        free: mpsc::Sender<Portion>,
    ) -> Result<(), LoadError> {
        let halt = self.shared.halt.clone();
        loop {
            let next = async { full.lock().await.recv().await };
            let parcel = tokio::select! {
                biased;
                () = halt.cancelled() => break,
                parcel = next => parcel,
            };
            let Some(mut parcel) = parcel else { break };
            if let Err(error) = self.settle(&mut parcel).await {
                // The others finish what they have begun.
                halt.cancel();
                return Err(error);
            }
            // A reader that has ended needs no memory.
            free.try_send(parcel.portion).ok();
        }
        if let Some(bulk_writer) = self.bulk_writer {
            bulk_writer.close().await;
        }
        Ok(())
    }

    /// Writes the records of a portion that earlier runs have not written.
    pub(super) async fn settle(&mut self, parcel: &mut Parcel) -> Result<(), LoadError> {
        let shared = Arc::clone(&self.shared);
        let gaps = shared.done.gaps(parcel.span);
        let mut is_refused = false;
        if parcel.portion.csv().is_some() {
            if gaps == [parcel.span] && lock(&shared.ways).passes() {
                match self.pass(parcel).await? {
                    PassOutcome::Written => return Ok(()),
                    PassOutcome::Refused => is_refused = true,
                    PassOutcome::Not => {}
                }
            }
            parcel.portion.split();
        }
        if let Some(witness) = &shared.witness {
            lock(witness).see(&parcel.portion.rows);
        }
        note_bad(&shared, parcel)?;
        let open: u64 = gaps.iter().map(|gap| gap.end - gap.first).sum();
        shared
            .meter
            .before(parcel.span.end - parcel.span.first - open);
        // A record that is no row explains the refusal.
        let is_refused = is_refused && parcel.portion.bad.is_empty();
        let mut leftovers = Vec::new();
        for gap in gaps {
            let rows = rows_in(&parcel.portion, gap);
            if rows.len() < LEFTOVER_ROWS && gap != parcel.span {
                leftovers.extend(rows);
            } else if !rows.is_empty() {
                self.write(parcel, gap, rows, is_refused).await?;
            }
        }
        if !leftovers.is_empty() {
            self.lane.write(scene(&shared), parcel, leftovers).await?;
        }
        Ok(())
    }

    /// Writes the records of a portion as they stand in the file.
    async fn pass(&mut self, parcel: &Parcel) -> Result<PassOutcome, LoadError> {
        let shared = Arc::clone(&self.shared);
        let (Some(bulk_writer), Some(csv)) = (&mut self.bulk_writer, parcel.portion.csv()) else {
            return Ok(PassOutcome::Not);
        };
        let piece = Piece {
            contents: Contents::Csv(csv),
            records: &[],
            span: parcel.span,
        };
        let place = || lines(&shared.origin, parcel, &(0..csv.records));
        match bulk_writer.load(piece, &shared.halt, place).await? {
            BulkOutcome::Loaded(filtered) => {
                count(&shared, filtered.loaded);
                lock(&shared.ways).passed();
                Ok(PassOutcome::Written)
            }
            BulkOutcome::Refused(fault) => {
                tracing::debug!(%fault, rows = csv.records, "a portion is split into fields");
                lock(&shared.ways).pass_refused();
                Ok(PassOutcome::Refused)
            }
            BulkOutcome::Unread => {
                lock(&shared.ways).cannot_pass();
                Ok(PassOutcome::Not)
            }
            BulkOutcome::Unsupported(fault) => {
                self.give_up_bulk(fault);
                Ok(PassOutcome::Not)
            }
        }
    }

    /// Writes neighbouring rows of a portion. `is_refused`: the database has refused their records.
    async fn write(
        &mut self,
        parcel: &Parcel,
        span: Span,
        rows: Range<usize>,
        is_refused: bool,
    ) -> Result<(), LoadError> {
        let shared = Arc::clone(&self.shared);
        let all = &parcel.portion.rows;
        let part;
        let contents = match rows.len() == all.len() {
            true => all,
            false => {
                part = cut(all, rows.clone());
                &part
            }
        };
        let records = parcel.portion.records.get(rows.clone());
        let piece = |contents| Piece {
            contents,
            records: records.unwrap_or_default(),
            span,
        };
        let mut contents = match self.way(is_refused) {
            Way::Whole => Contents::Rows(contents),
            Way::WithoutBad => Contents::GoodRows(contents),
            Way::Lane => return self.one_by_one(parcel, span, rows).await,
        };
        loop {
            let Some(bulk_writer) = &mut self.bulk_writer else {
                return self.one_by_one(parcel, span, rows).await;
            };
            let place = || lines(&shared.origin, parcel, &rows);
            match bulk_writer
                .load(piece(contents), &shared.halt, place)
                .await?
            {
                BulkOutcome::Loaded(filtered) => {
                    count(&shared, filtered.loaded);
                    lock(&shared.ways).written(!filtered.left.is_empty());
                    let left = filtered.left.iter().map(|place| rows.start + place);
                    return self.by_lane(parcel, span, left.collect()).await.map(drop);
                }
                BulkOutcome::Refused(fault) => match contents {
                    Contents::Rows(rows) => {
                        tracing::debug!(%fault, rows = rows.len(), "a portion goes without its bad rows");
                        contents = Contents::GoodRows(rows);
                    }
                    Contents::GoodRows(_) | Contents::Csv(_) => {
                        tracing::debug!(%fault, rows = rows.len(), "a portion goes row by row");
                        lock(&shared.ways).refused();
                        return self.one_by_one(parcel, span, rows).await;
                    }
                },
                BulkOutcome::Unread => return Err(LoadError::Defect("rows were taken for CSV")),
                BulkOutcome::Unsupported(fault) => self.give_up_bulk(fault),
            }
        }
    }

    fn way(&self, is_refused: bool) -> Way {
        match self.bulk_writer {
            Some(_) => lock(&self.shared.ways).way(is_refused),
            None => Way::Lane,
        }
    }

    /// Writes all of these rows through the lane.
    async fn one_by_one(
        &mut self,
        parcel: &Parcel,
        span: Span,
        rows: Range<usize>,
    ) -> Result<(), LoadError> {
        let bad = self.by_lane(parcel, span, rows.collect()).await?;
        lock(&self.shared.ways).one_by_one(bad > 0);
        Ok(())
    }

    /// Writes rows of a span through the lane, then puts one mark of the span in the place of
    /// theirs. Returns the number of bad rows.
    async fn by_lane(
        &mut self,
        parcel: &Parcel,
        span: Span,
        rows: Vec<usize>,
    ) -> Result<usize, LoadError> {
        let Some(first) = rows.first().copied() else {
            return Ok(0);
        };
        let shared = &self.shared;
        let passed = self.lane.write(scene(shared), parcel, rows).await?;
        if let Some(marking) = &shared.marking {
            let mut patience = Patience::new(shared.away_wait, &shared.halt);
            let at = || place(&shared.origin, parcel, first);
            marking.merge(span, &mut patience, at).await?;
        }
        Ok(passed.bad)
    }

    /// Sends all further rows through the lane: the bulk form cannot do what the load asks for.
    fn give_up_bulk(&mut self, fault: Fault) {
        self.bulk_writer = None;
        let why = fault.message.into_string();
        lock(&self.shared.unsupported).get_or_insert(why);
    }
}

/// The outcome of records that were to be written as they stand in the file.
enum PassOutcome {
    Written,
    /// The database has refused them.
    Refused,
    /// The bulk form does not read them.
    Not,
}

fn count(shared: &Shared, loaded: Loaded) {
    shared.meter.done(loaded.written, loaded.ignored);
}

fn scene(shared: &Shared) -> Scene<'_> {
    Scene {
        origin: &shared.origin,
        rejects: &shared.rejects,
        meter: &shared.meter,
        halt: &shared.halt,
        targets: &shared.targets,
    }
}

/// Notes the records that could not be read as rejects, before the mark that covers them is
/// written.
fn note_bad(shared: &Shared, parcel: &Parcel) -> Result<(), LoadError> {
    let new = |record| !shared.done.holds(record);
    for bad in parcel.portion.bad.iter().filter(|bad| new(bad.record)) {
        shared.meter.rejected();
        let reject = Reject::bad(&shared.origin.file, bad);
        shared.rejects.note(&shared.origin, &reject)?;
    }
    shared.rejects.settle(&shared.origin)
}
