//! Writes rows through a lane, each with its own outcome: for databases without a bulk form, and
//! for rows that a bulk form refuses.
//!
//! The lane waits for an unreachable database and for other sessions, and tries again
//! ([`RetryPolicy`]). Only rows whose outcome is unknown come back here: their marks are read
//! first.

mod outcome;

use std::collections::VecDeque;
use std::sync::Arc;

use windrow_core::intake::Receipt;
use windrow_core::{
    Fault, FaultClass, Field, Intake, LoadPlan, Mark, OnConflict, RetryPolicy, Row, Shape,
    SourceId, Span, Unit, Write,
};

use self::outcome::{RowOutcome, row_outcome};
use super::LoadError;
use super::parcel::{Parcel, place};
use super::retries::Retries;
use super::shared::Shared;

/// The most rows that are sent to the lane at once.
const CHUNK_ROWS: usize = 1000;

/// Bytes of a chunk after which no further row is added.
const CHUNK_BYTES: usize = 1 << 20;

/// Chunks under way at once, so that rows are encoded while others are written.
const CHUNKS_AHEAD: usize = 4;

/// Writes rows into one table through a lane.
pub(super) struct Lane {
    intake: Intake,
    shape: Arc<Shape>,
    mark_shape: Arc<Shape>,
    source: SourceId,
    shared: Arc<Shared>,
}

/// Rows that are under way together, by their places in the portion.
struct Chunk {
    rows: Vec<usize>,
    receipt: Receipt,
}

/// Rows whose marks are to be read because they may have been written, by their places in the
/// portion.
#[derive(Default)]
struct UnknownRows {
    rows: Vec<usize>,
    fault: Option<Fault>,
}

impl Lane {
    pub(super) fn new(intake: &Intake, plan: &LoadPlan, shared: Arc<Shared>) -> Self {
        Self {
            intake: intake.with_policy(RetryPolicy::background(shared.away_wait)),
            shape: Arc::new(plan.shape()),
            mark_shape: Arc::new(Mark::shape()),
            source: intake.new_source(),
            shared,
        }
    }

    /// Writes rows of a portion in order, given by their places in it. Returns the number of bad
    /// ones.
    pub(super) async fn write(
        &self,
        parcel: &Parcel,
        rows: Vec<usize>,
    ) -> Result<usize, LoadError> {
        let mut bad = 0;
        let mut pending = rows;
        let shared = &*self.shared;
        let mut retries = shared.retries();
        loop {
            let mut unknown = UnknownRows::default();
            let sent = self.pass(parcel, &pending, &mut unknown, &mut bad).await;
            // Rejects must be in their file before a mark covers their rows.
            let settled = shared.rejects.settle(&shared.origin);
            sent?;
            settled?;
            let Some(fault) = unknown.fault.take() else {
                return Ok(bad);
            };
            let first = unknown.rows.first().copied().unwrap_or_default();
            let place = || place(&shared.origin, parcel, first);
            retries.wait(fault, place).await?;
            pending = self.not_written(parcel, unknown.rows, &mut retries).await?;
        }
    }

    /// Sends rows once.
    async fn pass(
        &self,
        parcel: &Parcel,
        pending: &[usize],
        unknown: &mut UnknownRows,
        bad: &mut usize,
    ) -> Result<(), LoadError> {
        let shared = &*self.shared;
        let mut under_way = VecDeque::with_capacity(CHUNKS_AHEAD);
        let mut maker = UnitMaker::new(self, parcel, pending);
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
                let taken = self.take_in(parcel, chunk, unknown, bad).await;
                ended = ended.or(taken.err());
            }
            match next {
                Some((rows, units)) => match self.submit(units).await {
                    Ok(receipt) => under_way.push_back(Chunk { rows, receipt }),
                    Err(fault) => {
                        let at = rows.first().copied().unwrap_or_default();
                        let place = place(&shared.origin, parcel, at);
                        ended = ended.or(Some(LoadError::Database { place, fault }));
                    }
                },
                None if under_way.is_empty() => break,
                None => {}
            }
        }
        ended.map_or(Ok(()), Err)
    }

    async fn submit(&self, units: Vec<Unit>) -> Result<Receipt, Fault> {
        let bytes = units.iter().map(Unit::bytes).sum();
        let permit = self.intake.budget().take(bytes).await?;
        self.intake.submit(self.source, units, permit).await
    }

    /// Notes the outcomes of a chunk. Returns a fault that ends the load after all outcomes are
    /// noted.
    async fn take_in(
        &self,
        parcel: &Parcel,
        chunk: Chunk,
        unknown: &mut UnknownRows,
        bad: &mut usize,
    ) -> Result<(), LoadError> {
        let shared = &*self.shared;
        let outcomes = chunk.receipt.await;
        let mut ended = Ok(());
        for (row, outcome) in chunk.rows.into_iter().zip(outcomes) {
            match row_outcome(outcome, shared.marking.is_some()) {
                RowOutcome::Written => shared.meter.done(1, 0),
                RowOutcome::Nothing if self.shape.on_conflict == OnConflict::Ignore => {
                    shared.meter.done(0, 1);
                }
                RowOutcome::Nothing => {
                    *bad += 1;
                    ended = ended.and(shared.reject(parcel, row, &dropped()));
                }
                RowOutcome::WrittenBefore => shared.meter.before(1),
                RowOutcome::Bad(fault) => {
                    *bad += 1;
                    ended = ended.and(shared.reject(parcel, row, &fault));
                }
                RowOutcome::Unknown(fault) if shared.marking.is_some() => {
                    unknown.rows.push(row);
                    unknown.fault = Some(fault);
                }
                RowOutcome::Unknown(fault) => {
                    let place = place(&shared.origin, parcel, row);
                    ended = ended.and(Err(LoadError::Unknown { place, fault }));
                }
                RowOutcome::Away(fault) => {
                    let (place, waited) = (place(&shared.origin, parcel, row), shared.away_wait);
                    ended = ended.and(Err(LoadError::Away {
                        place,
                        waited,
                        fault,
                    }));
                }
                RowOutcome::End(fault) => {
                    let place = place(&shared.origin, parcel, row);
                    ended = ended.and(Err(LoadError::Database { place, fault }));
                }
            }
        }
        ended
    }

    /// Reads the marks of rows, and returns the rows that are not written.
    async fn not_written(
        &self,
        parcel: &Parcel,
        mut rows: Vec<usize>,
        retries: &mut Retries<'_>,
    ) -> Result<Vec<usize>, LoadError> {
        let shared = &*self.shared;
        let Some(marking) = &shared.marking else {
            return Ok(rows);
        };
        let first = rows.first().copied().unwrap_or_default();
        let at = || place(&shared.origin, parcel, first);
        let done = marking.read(retries, at).await?;
        rows.retain(|row| {
            let record = parcel.portion.records.get(*row).copied();
            let is_written = record.is_some_and(|record| done.holds(record));
            if is_written {
                shared.meter.done(1, 0);
            }
            !is_written
        });
        Ok(rows)
    }

    fn unit(&self, row: Row, record: u64) -> Unit {
        let write = Write::new(Arc::clone(&self.shape), row);
        let Some(marking) = &self.shared.marking else {
            return Unit::one(write);
        };
        let span = Span {
            first: record,
            end: record + 1,
        };
        let mark = Write::new(Arc::clone(&self.mark_shape), marking.mark(span).row());
        // The mark comes first, so that another run's mark of this row waits for the end of this
        // unit.
        Unit::of([mark, write])
    }
}

/// Makes units of rows, a chunk at a time.
struct UnitMaker<'a> {
    lane: &'a Lane,
    fields: windrow_core::load::Fields<'a>,
    /// The place of the next row of `fields`.
    at: usize,
    columns: usize,
    records: &'a [u64],
    pending: std::slice::Iter<'a, usize>,
}

impl<'a> UnitMaker<'a> {
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

    fn chunk(&mut self) -> Option<(Vec<usize>, Vec<Unit>)> {
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

/// Returns the fault of a row that a trigger or a rule of the database did not write.
fn dropped() -> Fault {
    Fault::new(
        FaultClass::Check,
        "02000",
        "the database took the row and wrote nothing: a trigger or a rule leaves it out",
    )
}
