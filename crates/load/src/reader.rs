//! The thread that reads a file into portions.

use std::sync::{Arc, Mutex};

use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use windrow_core::{CsvStyle, Span};

use super::lock::lock;
use super::meter::Meter;
use super::parcel::Parcel;
use super::spans::Spans;
use super::way::Ways;
use crate::source::{Portion, PortionLimits, Source, SourceFault};

/// Reads one file. Portions that workers give back are filled again, so memory is allocated once.
pub(super) struct Reader {
    pub(super) source: Box<dyn Source>,
    pub(super) most: PortionLimits,
    /// The style of records that can be passed on as they stand.
    pub(super) style: Option<Arc<CsvStyle>>,
    /// Says whether they are to be passed on.
    pub(super) ways: Arc<Mutex<Ways>>,
    /// The most records that are read.
    pub(super) limit: u64,
    /// Records that earlier runs have done; they are not handed out.
    pub(super) done: Arc<Spans>,
    pub(super) meter: Arc<Meter>,
    /// Bytes of the files before this one.
    pub(super) bytes_before: u64,
    pub(super) halt: CancellationToken,
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
    /// The number of empty lines passed over, and the first of them.
    pub(super) empty: (u64, u64),
    /// The line of the first backslash that may be an escape, in a file between tabs.
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
        loop {
            if self.halt.is_cancelled() {
                return Ok(self.end(records, false));
            }
            let left = self.limit.saturating_sub(records);
            if left == 0 {
                return Ok(self.end(records, true));
            }
            self.most.records = self.most.records.min(left.try_into().unwrap_or(usize::MAX));
            let Some(mut portion) = free.blocking_recv() else {
                return Ok(self.end(records, false));
            };
            let mut outcome = self.read(&mut portion);
            while matches!(outcome, Ok(true)) && self.is_done(records, &portion) {
                self.meter.before(portion.end - records);
                records = portion.end;
                outcome = self.read(&mut portion);
            }
            self.meter
                .bytes_at(self.bytes_before + self.source.read_bytes());
            if !portion.is_empty() {
                let span = Span {
                    first: records,
                    end: portion.end,
                };
                records = portion.end;
                if full.blocking_send(Parcel { portion, span }).is_err() {
                    return Ok(self.end(records, false));
                }
            }
            // Records read before a fault are handed out all the same.
            if !outcome? {
                return Ok(self.end(records, true));
            }
        }
    }

    fn read(&mut self, portion: &mut Portion) -> Result<bool, SourceFault> {
        match &self.style {
            Some(style) if lock(&self.ways).reads_unsplit() => {
                self.source.read_unsplit(style, portion, self.most)
            }
            _ => self.source.read(portion, self.most),
        }
    }

    /// Returns true if earlier runs have done all of the portion; false once the load is halted.
    fn is_done(&self, first: u64, portion: &Portion) -> bool {
        let span = Span {
            first,
            end: portion.end,
        };
        !self.halt.is_cancelled() && first < portion.end && self.done.hold_all(span)
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
