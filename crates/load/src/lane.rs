//! Rows through a lane: each for itself, with its own outcome. For databases without a bulk form,
//! and for what a bulk form refuses.
//!
//! The lane waits for a database that is away and for other sessions, and tries again
//! ([`RetryPolicy`]). Only rows whose outcome is unknown come back: their marks are read first.

mod outcome;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windrow_core::intake::Receipt;
use windrow_core::{
    Fault, FaultClass, Field, Intake, LoadPlan, Mark, OnConflict, RetryPolicy, Row, RowDone,
    RowWrite, Shape, SourceId, Span, Unit,
};

use self::outcome::{RowOutcome, row_outcome};
use super::blame::{self, Target};
use super::marking::Marking;
use super::parcel::{Parcel, place};
use super::patience::Patience;
use super::rejects::{Origin, Reason, Reject, Rejects};
use super::{LoadError, Meter};

/// Rows that are handed to the lane at once at most.
const CHUNK_ROWS: usize = 1000;

/// Bytes of a chunk after which no further row is added.
const CHUNK_BYTES: usize = 1 << 20;

/// Chunks under way at once, so that rows are made while others are written.
const CHUNKS_AHEAD: usize = 4;

/// How rows get into one table through a lane.
pub(super) struct Lane {
    intake: Intake<RowWrite>,
    shape: Arc<Shape>,
    mark_shape: Arc<Shape>,
    source: SourceId,
    marking: Option<Marking>,
    away_wait: Duration,
}

/// What the rows of one file have in common.
#[derive(Clone, Copy)]
pub(super) struct Scene<'a> {
    pub(super) origin: &'a Origin,
    pub(super) rejects: &'a Rejects,
    pub(super) meter: &'a Meter,
    pub(super) halt: &'a CancellationToken,
    pub(super) targets: &'a [Target],
}

/// What became of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) rows: usize,
    pub(super) bad: usize,
}

/// Rows that are under way together, by their places in the portion.
struct Chunk {
    rows: Vec<usize>,
    receipt: Receipt<RowDone>,
}

/// Rows that may have been written, by their places in the portion: their marks tell.
#[derive(Default)]
struct Unknown {
    rows: Vec<usize>,
    fault: Option<Fault>,
}

impl Lane {
    pub(super) fn new(
        intake: &Intake<RowWrite>,
        plan: &LoadPlan,
        marking: Option<Marking>,
        away_wait: Duration,
    ) -> Self {
        Self {
            intake: intake.with_policy(RetryPolicy::background(away_wait)),
            shape: Arc::new(plan.shape()),
            mark_shape: Arc::new(Mark::shape()),
            source: intake.new_source(),
            marking,
            away_wait,
        }
    }

    /// Writes rows of a portion, given by their places in it, in order; gives back how many there
    /// were and how many were bad.
    pub(super) async fn write(
        &self,
        scene: Scene<'_>,
        parcel: &Parcel,
        rows: Vec<usize>,
    ) -> Result<Passed, LoadError> {
        let mut passed = Passed {
            rows: rows.len(),
            bad: 0,
        };
        let mut pending = rows;
        let mut patience = Patience::new(self.away_wait, scene.halt);
        loop {
            let mut unknown = Unknown::default();
            let sent = self
                .pass(scene, parcel, &pending, &mut unknown, &mut passed)
                .await;
            // Rejects are in their file before anything says that their rows are done.
            let settled = scene.rejects.settle(scene.origin);
            sent?;
            settled?;
            let Some(fault) = unknown.fault.take() else {
                return Ok(passed);
            };
            let first = unknown.rows.first().copied().unwrap_or_default();
            let place = || place(scene.origin, parcel, first);
            patience.wait(fault, place).await?;
            pending = self
                .not_written(scene, parcel, unknown.rows, &mut patience)
                .await?;
        }
    }

    /// Sends rows once.
    async fn pass(
        &self,
        scene: Scene<'_>,
        parcel: &Parcel,
        pending: &[usize],
        unknown: &mut Unknown,
        passed: &mut Passed,
    ) -> Result<(), LoadError> {
        let mut under_way = VecDeque::with_capacity(CHUNKS_AHEAD);
        let mut maker = Maker::new(self, parcel, pending);
        let mut ended = None;
        loop {
            let next = match ended {
                None => maker.chunk(),
                Some(_) => None,
            };
            let full = under_way.len() == CHUNKS_AHEAD;
            if (full || next.is_none())
                && let Some(chunk) = under_way.pop_front()
            {
                let taken = self.take_in(scene, parcel, chunk, unknown, passed).await;
                ended = ended.or(taken.err());
            }
            match next {
                Some((rows, units)) => match self.submit(units).await {
                    Ok(receipt) => under_way.push_back(Chunk { rows, receipt }),
                    Err(fault) => {
                        let at = rows.first().copied().unwrap_or_default();
                        let place = place(scene.origin, parcel, at);
                        ended = ended.or(Some(LoadError::Database { place, fault }));
                    }
                },
                None if under_way.is_empty() => break,
                None => {}
            }
        }
        ended.map_or(Ok(()), Err)
    }

    async fn submit(&self, units: Vec<Unit<RowWrite>>) -> Result<Receipt<RowDone>, Fault> {
        let bytes = units.iter().map(Unit::bytes).sum();
        let permit = self.intake.budget().take(bytes).await?;
        self.intake.submit(self.source, units, permit).await
    }

    /// Notes the outcomes of a chunk. What ends the load is told after all others are noted.
    async fn take_in(
        &self,
        scene: Scene<'_>,
        parcel: &Parcel,
        chunk: Chunk,
        unknown: &mut Unknown,
        passed: &mut Passed,
    ) -> Result<(), LoadError> {
        let outcomes = chunk.receipt.await;
        let mut ended = Ok(());
        for (row, outcome) in chunk.rows.into_iter().zip(outcomes) {
            match row_outcome(outcome, self.marking.is_some()) {
                RowOutcome::Written => scene.meter.done(1, 0),
                RowOutcome::Nothing if self.shape.on_conflict == OnConflict::Ignore => {
                    scene.meter.done(0, 1);
                }
                RowOutcome::Nothing => {
                    passed.bad += 1;
                    ended = ended.and(note(scene, parcel, row, &dropped()));
                }
                RowOutcome::WrittenBefore => scene.meter.before(1),
                RowOutcome::Bad(fault) => {
                    passed.bad += 1;
                    ended = ended.and(note(scene, parcel, row, &fault));
                }
                RowOutcome::Unknown(fault) if self.marking.is_some() => {
                    unknown.rows.push(row);
                    unknown.fault = Some(fault);
                }
                RowOutcome::Unknown(fault) => {
                    let place = place(scene.origin, parcel, row);
                    ended = ended.and(Err(LoadError::Unknown { place, fault }));
                }
                RowOutcome::Away(fault) => {
                    let (place, waited) = (place(scene.origin, parcel, row), self.away_wait);
                    ended = ended.and(Err(LoadError::Away {
                        place,
                        waited,
                        fault,
                    }));
                }
                RowOutcome::End(fault) => {
                    let place = place(scene.origin, parcel, row);
                    ended = ended.and(Err(LoadError::Database { place, fault }));
                }
            }
        }
        ended
    }

    /// Returns those of the rows that are not written, as their marks tell.
    async fn not_written(
        &self,
        scene: Scene<'_>,
        parcel: &Parcel,
        mut rows: Vec<usize>,
        patience: &mut Patience<'_>,
    ) -> Result<Vec<usize>, LoadError> {
        let Some(marking) = &self.marking else {
            return Ok(rows);
        };
        let first = rows.first().copied().unwrap_or_default();
        let at = || place(scene.origin, parcel, first);
        let done = marking.read(patience, at).await?;
        rows.retain(|row| {
            let record = parcel.portion.records.get(*row).copied();
            let is_written = record.is_some_and(|record| done.holds(record));
            if is_written {
                scene.meter.done(1, 0);
            }
            !is_written
        });
        Ok(rows)
    }

    fn unit(&self, row: Row, record: u64) -> Unit<RowWrite> {
        let write = RowWrite::new(Arc::clone(&self.shape), row);
        let Some(marking) = &self.marking else {
            return Unit::one(write);
        };
        let span = Span {
            first: record,
            end: record + 1,
        };
        let mark = marking.mark(span);
        Unit::of([
            write,
            RowWrite::new(Arc::clone(&self.mark_shape), mark.row()),
        ])
    }
}

/// Makes units of rows, a chunk at a time.
struct Maker<'a> {
    lane: &'a Lane,
    fields: windrow_core::load::Fields<'a>,
    /// The place of the row that `fields` is at.
    at: usize,
    columns: usize,
    records: &'a [u64],
    pending: std::slice::Iter<'a, usize>,
}

impl<'a> Maker<'a> {
    fn new(lane: &'a Lane, parcel: &'a Parcel, pending: &'a [usize]) -> Self {
        Self {
            lane,
            fields: parcel.portion.rows.fields(),
            at: 0,
            columns: parcel.portion.rows.columns(),
            records: &parcel.portion.records,
            pending: pending.iter(),
        }
    }

    fn chunk(&mut self) -> Option<(Vec<usize>, Vec<Unit<RowWrite>>)> {
        let expected = self.pending.len().min(CHUNK_ROWS);
        let (mut rows, mut units) = (Vec::with_capacity(expected), Vec::with_capacity(expected));
        let mut bytes = 0;
        while rows.len() < CHUNK_ROWS && bytes < CHUNK_BYTES {
            let Some(row) = self.pending.next().copied() else {
                break;
            };
            for _ in 0..(row - self.at) * self.columns {
                self.fields.next();
            }
            self.at = row + 1;
            let values: Row = self
                .fields
                .by_ref()
                .take(self.columns)
                .map(|field: Field<'_>| field.value())
                .collect();
            let record = self.records.get(row).copied().unwrap_or_default();
            let unit = self.lane.unit(values, record);
            bytes += unit.bytes();
            rows.push(row);
            units.push(unit);
        }
        (!rows.is_empty()).then_some((rows, units))
    }
}

/// What is said of a row that a trigger or a rule of the database has made nothing of.
fn dropped() -> Fault {
    Fault::new(
        FaultClass::Check,
        "02000",
        "the database took the row and wrote nothing: a trigger or a rule leaves it out",
    )
}

fn note(scene: Scene<'_>, parcel: &Parcel, row: usize, fault: &Fault) -> Result<(), LoadError> {
    let portion = &parcel.portion;
    let get = |numbers: &[u64]| numbers.get(row).copied().unwrap_or_default();
    scene.meter.rejected();
    let fields: Vec<Field<'_>> = portion.rows.row(row).collect();
    let blame = blame::find(fault, scene.targets, &fields);
    let reject = Reject {
        file: &scene.origin.file,
        line: get(portion.rows.lines()),
        record: get(&portion.records),
        raw: portion.raw(row),
        reason: Reason::Database(fault),
        column: blame.as_ref().map(|blame| blame.column),
        value: blame.as_ref().and_then(|blame| blame.value.as_deref()),
    };
    scene.rejects.note(scene.origin, &reject)
}
