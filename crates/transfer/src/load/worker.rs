//! One of those that write portions, side by side.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use windrow_core::load::Fields;
use windrow_core::{Rows, Span};

use super::bulk::{Manner, Piece, Press, Pressed};
use super::lane::{Lane, Scene, place};
use super::marking::Marking;
use super::patience::Patience;
use super::reader::Parcel;
use super::rejects::{Origin, Reject, Rejects};
use super::spans::Spans;
use super::way::{Sight, Way};
use super::{LoadError, Meter};
use crate::source::Portion;

/// Fewer rows than these, left over from an earlier run, are not worth a bulk statement of their own.
const LEFTOVER_ROWS: usize = 64;

/// What the workers of one file share.
pub(super) struct Shared {
    pub(super) origin: Origin,
    pub(super) done: Arc<Spans>,
    pub(super) rejects: Arc<Rejects>,
    pub(super) meter: Arc<Meter>,
    pub(super) marking: Option<Marking>,
    pub(super) sight: Mutex<Sight>,
    /// Why the bulk form is not used, once that is known.
    pub(super) unsupported: Mutex<Option<String>>,
    pub(super) away_wait: std::time::Duration,
    pub(super) halt: CancellationToken,
}

/// Writes portions.
pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) press: Option<Press>,
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
            let Some(parcel) = parcel else { break };
            if let Err(error) = self.settle(&parcel).await {
                // The others finish what they have begun.
                halt.cancel();
                return Err(error);
            }
            // A reader that has ended needs no memory.
            free.try_send(parcel.portion).ok();
        }
        if let Some(press) = self.press {
            press.close().await;
        }
        Ok(())
    }

    /// Writes what of a portion is not done yet.
    pub(super) async fn settle(&mut self, parcel: &Parcel) -> Result<(), LoadError> {
        let shared = Arc::clone(&self.shared);
        note_bad(&shared, parcel)?;
        let gaps = shared.done.gaps(parcel.span);
        let open: u64 = gaps.iter().map(|gap| gap.end - gap.first).sum();
        shared
            .meter
            .before(parcel.span.end - parcel.span.first - open);
        let mut leftovers = Vec::new();
        for gap in gaps {
            let rows = rows_in(&parcel.portion, gap);
            if rows.len() < LEFTOVER_ROWS && gap != parcel.span {
                leftovers.extend(rows);
            } else if !rows.is_empty() {
                self.write(parcel, gap, rows).await?;
            }
        }
        if !leftovers.is_empty() {
            self.lane.write(scene(&shared), parcel, leftovers).await?;
        }
        Ok(())
    }

    /// Writes rows that lie behind each other, the way that looks cheapest.
    async fn write(
        &mut self,
        parcel: &Parcel,
        gap: Span,
        rows: Range<usize>,
    ) -> Result<(), LoadError> {
        let way = match &self.press {
            Some(_) => self.sight().way(),
            None => Way::Lane,
        };
        let (most, manner) = match way {
            Way::Bulk(most) => (most, Manner::Whole),
            Way::Sift => (rows.len(), Manner::Sift),
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
                rows: match to - from == all.len() {
                    true => all,
                    false => cutter.cut(from..to, &mut scratch),
                },
                records: parcel.portion.records.get(from..to).unwrap_or_default(),
                span,
            };
            self.by_bulk(parcel, from..to, piece, manner).await?;
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
    ) -> Result<(), LoadError> {
        let shared = Arc::clone(&self.shared);
        let mut refused = false;
        loop {
            let Some(press) = &mut self.press else {
                return self.by_lane(parcel, piece.span, rows, false).await;
            };
            let sifts = press.sifts();
            let started = Instant::now();
            let place = || lines(&shared.origin, parcel, &rows);
            match press.load(piece, manner, &shared.halt, place).await? {
                Pressed::Loaded(sifted) => {
                    let loaded = sifted.loaded;
                    shared.meter.done(loaded.written, loaded.ignored);
                    if manner == Manner::Whole {
                        self.sight().loaded(rows.len(), started.elapsed());
                        return Ok(());
                    }
                    let left = sifted.left.iter().map(|place| rows.start + place).collect();
                    let bad = self.rest_by_lane(parcel, piece.span, left).await?;
                    self.sight()
                        .sifted(rows.len(), bad, started.elapsed(), refused);
                    return Ok(());
                }
                Pressed::Refused(fault) if manner == Manner::Whole && sifts => {
                    tracing::debug!(%fault, rows = rows.len(), "a piece is sifted");
                    (manner, refused) = (Manner::Sift, true);
                }
                Pressed::Refused(fault) => {
                    tracing::debug!(%fault, rows = rows.len(), "a piece goes row by row");
                    let (count, span) = (rows.len(), piece.span);
                    self.by_lane(parcel, span, rows, true).await?;
                    if manner == Manner::Sift {
                        self.sight().sifted_in_vain(count, started.elapsed());
                    }
                    return Ok(());
                }
                Pressed::Unsupported(fault) => {
                    self.press = None;
                    let why = fault.message.into_string();
                    lock(&shared.unsupported).get_or_insert(why);
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
        self.sight()
            .written(passed.rows, passed.bad, started.elapsed(), refused);
        self.merge(parcel, span, rows.start).await
    }

    fn sight(&self) -> MutexGuard<'_, Sight> {
        lock(&self.shared.sight)
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn scene(shared: &Shared) -> Scene<'_> {
    Scene {
        origin: &shared.origin,
        rejects: &shared.rejects,
        meter: &shared.meter,
        halt: &shared.halt,
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

/// The places of the rows whose records lie in a span.
fn rows_in(portion: &Portion, span: Span) -> Range<usize> {
    let place = |record| portion.records.partition_point(|r| *r < record);
    place(span.first)..place(span.end)
}

/// Cuts pieces out of a portion, one behind the other.
struct Cutter<'a> {
    all: &'a Rows,
    fields: Fields<'a>,
    at: usize,
}

impl<'a> Cutter<'a> {
    fn new(all: &'a Rows) -> Self {
        Self {
            all,
            fields: all.fields(),
            at: 0,
        }
    }

    fn cut<'b>(&mut self, rows: Range<usize>, into: &'b mut Rows) -> &'b Rows {
        let columns = self.all.columns();
        if into.columns() == columns {
            into.clear();
        } else {
            *into = Rows::new(columns);
        }
        for _ in 0..rows.start.saturating_sub(self.at) * columns {
            self.fields.next();
        }
        self.at = rows.end;
        for line in self.all.lines().get(rows).unwrap_or_default() {
            // What was in one portion fits into another.
            into.push(*line, self.fields.by_ref().take(columns));
        }
        into
    }
}

/// `file, lines 7 to 9`.
fn lines(origin: &Origin, parcel: &Parcel, rows: &Range<usize>) -> String {
    let lines = parcel.portion.rows.lines();
    let last = rows.end.checked_sub(1).and_then(|at| lines.get(at));
    match (lines.get(rows.start), last) {
        (Some(first), Some(last)) if first != last => {
            format!("{}, lines {first} to {last}", origin.file)
        }
        _ => place(origin, parcel, rows.start),
    }
}

#[cfg(test)]
mod tests {
    use windrow_core::Field;

    use super::*;

    #[test]
    fn a_piece_is_cut_out_of_a_portion() {
        let mut portion = Portion::new(2);
        for n in 0..6_u64 {
            let text = n.to_string();
            portion.rows.push(n + 2, [Field::Plain(&text), Field::Null]);
            portion.records.push(n * 2);
        }
        let rows = rows_in(&portion, Span { first: 3, end: 9 });
        assert_eq!(rows, 2..5);
        let (mut piece, mut cutter) = (Rows::default(), Cutter::new(&portion.rows));
        cutter.cut(rows, &mut piece);
        assert_eq!((piece.len(), piece.lines()), (3, &[4, 5, 6][..]));
        assert_eq!(piece.fields().nth(2), Some(Field::Plain("3")));
        cutter.cut(5..6, &mut piece);
        assert_eq!(
            (piece.lines(), piece.fields().next()),
            (&[7][..], Some(Field::Plain("5")))
        );
        assert!(rows_in(&portion, Span { first: 3, end: 4 }).is_empty());
    }
}
