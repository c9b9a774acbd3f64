//! The thread that reads a file into portions.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use windrow_core::{CsvStyle, Span};

use super::meter::Meter;
use super::parcel::Parcel;
use super::spans::Spans;
use super::way::Ways;
use crate::source::{Portion, PortionLimits, Source, SourceFault};

/// Reads one file. Portions that workers return are filled again, so memory is allocated once.
pub(super) struct Reader {
    pub(super) source: Box<dyn Source>,
    pub(super) most: PortionLimits,
    /// The style of the records, if they can be passed on as in the file.
    pub(super) style: Option<Arc<CsvStyle>>,
    /// Tells whether they are passed on so.
    pub(super) ways: Arc<Mutex<Ways>>,
    /// The most records that are read.
    pub(super) limit: u64,
    pub(super) earlier: Arc<EarlierRuns>,
    pub(super) meter: Arc<Meter>,
    /// Bytes of the files before this one.
    pub(super) bytes_before: u64,
    pub(super) halt: CancellationToken,
}

/// The records of a file that earlier runs of its load have processed.
#[derive(Debug, Default)]
pub(super) struct EarlierRuns {
    /// The records that need no work: those with a mark, and those in the file of rejects.
    pub(super) done: Spans,
    /// The records of portions whose rows were sent through the lane.
    pub(super) by_lane: Spans,
}

/// The counts at the end of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ReadEnd {
    /// The number of records read.
    pub(super) records: u64,
    /// Bytes that were read.
    pub(super) bytes: u64,
    /// True if the file was read to its end.
    pub(super) whole: bool,
    /// The line of a last record without its end, which was not read.
    pub(super) left: Option<u64>,
    /// The number of empty lines that were skipped, and the line of the first.
    pub(super) empty: (u64, u64),
    /// The line of the first backslash that may be an escape, in a tab-separated file.
    pub(super) backslashes: Option<u64>,
}

impl Reader {
    /// Reads until the file ends, the limit is reached or the load is halted. Blocks.
    pub(super) fn run(
        mut self,
        mut free: mpsc::Receiver<Portion>,
        full: &mpsc::Sender<Parcel>,
    ) -> Result<ReadEnd, SourceFault> {
        let mut records = 0;
        // The memory of records that were skipped.
        let mut spare = None;
        loop {
            if self.halt.is_cancelled() {
                return Ok(self.end(records, false));
            }
            let left = self.limit.saturating_sub(records);
            if left == 0 {
                return Ok(self.end(records, true));
            }
            // A portion holds either records that are done or others, and either records that
            // earlier runs have sent through the lane or others.
            let (is_done, done_until) = self.earlier.done.at(records);
            let (by_lane, lane_until) = self.earlier.by_lane.at(records);
            let until = [done_until, lane_until].into_iter().flatten().min();
            let left = until.map_or(left, |until| left.min(until - records));
            let Some(mut portion) = spare.take().or_else(|| free.blocking_recv()) else {
                return Ok(self.end(records, false));
            };
            let outcome = self.read(&mut portion, left);
            self.meter
                .bytes_at(self.bytes_before + self.source.read_bytes());
            if !portion.is_empty() {
                let span = Span {
                    first: records,
                    end: portion.end,
                };
                records = portion.end;
                if is_done {
                    self.meter.before(span.end - span.first);
                    spare = Some(portion);
                } else {
                    let parcel = Parcel {
                        portion,
                        span,
                        by_lane,
                    };
                    if full.blocking_send(parcel).is_err() {
                        return Ok(self.end(records, false));
                    }
                }
            }
            // Records that were read before a fault are still passed on.
            if !outcome? {
                return Ok(self.end(records, true));
            }
        }
    }

    /// Reads at most so many records.
    fn read(&mut self, portion: &mut Portion, left: u64) -> Result<bool, SourceFault> {
        let most = PortionLimits {
            records: self.most.records.min(left.try_into().unwrap_or(usize::MAX)),
            ..self.most
        };
        match &self.style {
            Some(style) if self.ways.lock().reads_unsplit() => {
                self.source.read_unsplit(style, portion, most)
            }
            _ => self.source.read(portion, most),
        }
    }

    fn end(&self, records: u64, whole: bool) -> ReadEnd {
        ReadEnd {
            records,
            bytes: self.source.read_bytes(),
            whole,
            left: self.source.left(),
            empty: self.source.empty_lines(),
            backslashes: self.source.backslashes(),
        }
    }
}
