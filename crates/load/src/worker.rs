//! One of those that write portions, side by side.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;
use windrow_core::{Rows, Span};

use super::LoadError;
use super::bulk::{BulkOutcome, BulkWriter, Contents, Manner, Piece};
use super::cut::{Cutter, rows_in};
use super::form::Form;
use super::lane::{Lane, Scene};
use super::lock::lock;
use super::parcel::{Parcel, lines, place};
use super::patience::Patience;
use super::rejects::Reject;
use super::shared::Shared;
use super::verbatim::{self, Verbatim};
use super::way::Way;
use crate::source::Portion;

/// Fewer rows than these, left over from an earlier run, are not worth a bulk statement of their
/// own.
const LEFTOVER_ROWS: usize = 64;

/// Writes portions.
pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) bulk_writer: Option<BulkWriter>,
    pub(super) lane: Lane,
    /// Rows of a piece that is not a whole portion.
    pub(super) scratch: Rows,
}

/// The portions that have been read, for whoever is free.
pub(super) type Full = Arc<tokio::sync::Mutex<mpsc::Receiver<Parcel>>>;

impl Worker {
    /// Writes portions until there are none or somebody asks for the end.
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

    /// Writes what of a portion is not done yet.
    pub(super) async fn settle(&mut self, parcel: &mut Parcel) -> Result<(), LoadError> {
        let shared = Arc::clone(&self.shared);
        let gaps = shared.done.gaps(parcel.span);
        let mut refused = false;
        if parcel.portion.csv().is_some() {
            if gaps == [parcel.span] {
                match verbatim::write(&shared, &mut self.bulk_writer, parcel).await? {
                    Verbatim::Written => return Ok(()),
                    Verbatim::Refused => refused = true,
                    Verbatim::Not => {}
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
        // What was wrong with it is known where a record is no row.
        let refused = refused && parcel.portion.bad.is_empty();
        let mut leftovers = Vec::new();
        for gap in gaps {
            let rows = rows_in(&parcel.portion, gap);
            if rows.len() < LEFTOVER_ROWS && gap != parcel.span {
                leftovers.extend(rows);
            } else if !rows.is_empty() {
                self.write(parcel, gap, rows, refused).await?;
            }
        }
        if !leftovers.is_empty() {
            self.lane.write(scene(&shared), parcel, leftovers).await?;
        }
        Ok(())
    }

    /// Writes rows that lie behind each other, the way that looks cheapest. `refused`: the bulk
    /// form has refused them.
    async fn write(
        &mut self,
        parcel: &Parcel,
        gap: Span,
        rows: Range<usize>,
        refused: bool,
    ) -> Result<(), LoadError> {
        let way = match &self.bulk_writer {
            Some(bulk_writer) if refused && bulk_writer.filters() => Way::Filter,
            Some(_) => self.shared.costs().way(),
            None => Way::Lane,
        };
        let (most, manner) = match way {
            Way::Bulk(most) => (most, Manner::Whole),
            Way::Filter => (rows.len(), Manner::Filter),
            Way::Lane => return self.by_lane(parcel, gap, rows, false).await,
        };
        let all = &parcel.portion.rows;
        let mut cutter = Cutter::new(all);
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut from = rows.start;
        while from < rows.end {
            let to = (from + most).min(rows.end);
            let record = |row| parcel.portion.records.get(row).copied();
            let span = Span {
                first: match from == rows.start {
                    true => gap.first,
                    false => record(from).unwrap_or(gap.first),
                },
                end: match to == rows.end {
                    true => gap.end,
                    false => record(to).unwrap_or(gap.end),
                },
            };
            let piece = Piece {
                contents: Contents::Rows(match to - from == all.len() {
                    true => all,
                    false => cutter.cut(from..to, &mut scratch),
                }),
                records: parcel.portion.records.get(from..to).unwrap_or_default(),
                span,
            };
            self.by_bulk(parcel, from..to, piece, manner, refused)
                .await?;
            from = to;
        }
        self.scratch = scratch;
        Ok(())
    }

    async fn by_bulk(
        &mut self,
        parcel: &Parcel,
        rows: Range<usize>,
        piece: Piece<'_>,
        mut manner: Manner,
        mut refused: bool,
    ) -> Result<(), LoadError> {
        let shared = Arc::clone(&self.shared);
        loop {
            let Some(bulk_writer) = &mut self.bulk_writer else {
                return self.by_lane(parcel, piece.span, rows, false).await;
            };
            let filters = bulk_writer.filters();
            let started = Instant::now();
            let place = || lines(&shared.origin, parcel, &rows);
            match bulk_writer.load(piece, manner, &shared.halt, place).await? {
                BulkOutcome::Loaded(filtered) => {
                    let loaded = filtered.loaded;
                    shared.meter.done(loaded.written, loaded.ignored);
                    if manner == Manner::Whole {
                        self.shared.costs().loaded(rows.len(), started.elapsed());
                        let whole = rows.len() == parcel.portion.rows.len();
                        shared.written(Form::Split, rows.len(), whole);
                        return Ok(());
                    }
                    lock(&shared.forms).disturbed();
                    let left = filtered
                        .left
                        .iter()
                        .map(|place| rows.start + place)
                        .collect();
                    let bad = self.rest_by_lane(parcel, piece.span, left).await?;
                    self.shared
                        .costs()
                        .filtered(rows.len(), bad, started.elapsed(), refused);
                    return Ok(());
                }
                BulkOutcome::Refused(fault) if manner == Manner::Whole && filters => {
                    tracing::debug!(%fault, rows = rows.len(), "a piece is filtered");
                    (manner, refused) = (Manner::Filter, true);
                }
                BulkOutcome::Refused(fault) => {
                    tracing::debug!(%fault, rows = rows.len(), "a piece goes row by row");
                    let (count, span) = (rows.len(), piece.span);
                    self.by_lane(parcel, span, rows, true).await?;
                    if manner == Manner::Filter {
                        self.shared
                            .costs()
                            .filtered_in_vain(count, started.elapsed());
                    }
                    return Ok(());
                }
                BulkOutcome::Unread => return Err(LoadError::Defect("rows were taken for CSV")),
                BulkOutcome::Unsupported(fault) => {
                    shared.give_up_bulk(&mut self.bulk_writer, fault);
                }
            }
        }
    }

    /// Writes what was left out of a piece; gives back how many of those are bad.
    async fn rest_by_lane(
        &mut self,
        parcel: &Parcel,
        span: Span,
        left: Vec<usize>,
    ) -> Result<usize, LoadError> {
        if left.is_empty() {
            return Ok(0);
        }
        let shared = Arc::clone(&self.shared);
        let first = left.first().copied().unwrap_or_default();
        let passed = self.lane.write(scene(&shared), parcel, left).await?;
        self.merge(parcel, span, first).await?;
        Ok(passed.bad)
    }

    /// One mark in the place of many.
    async fn merge(&mut self, parcel: &Parcel, span: Span, row: usize) -> Result<(), LoadError> {
        let shared = Arc::clone(&self.shared);
        let Some(marking) = &shared.marking else {
            return Ok(());
        };
        let mut patience = Patience::new(shared.away_wait, &shared.halt);
        let at = || place(&shared.origin, parcel, row);
        marking.merge(span, &mut patience, at).await
    }

    async fn by_lane(
        &mut self,
        parcel: &Parcel,
        span: Span,
        rows: Range<usize>,
        refused: bool,
    ) -> Result<(), LoadError> {
        let shared = Arc::clone(&self.shared);
        let started = Instant::now();
        let passed = self
            .lane
            .write(scene(&shared), parcel, rows.clone().collect())
            .await?;
        self.shared
            .costs()
            .written(passed.rows, passed.bad, started.elapsed(), refused);
        self.merge(parcel, span, rows.start).await
    }
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

/// Records that could not be read are rejects, before the mark that covers them is written.
fn note_bad(shared: &Shared, parcel: &Parcel) -> Result<(), LoadError> {
    let new = |record| !shared.done.holds(record);
    for bad in parcel.portion.bad.iter().filter(|bad| new(bad.record)) {
        shared.meter.rejected();
        let reject = Reject::bad(&shared.origin.file, bad);
        shared.rejects.note(&shared.origin, &reject)?;
    }
    shared.rejects.settle(&shared.origin)
}
