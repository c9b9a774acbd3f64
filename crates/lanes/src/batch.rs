//! The units that leave together, and where each of them came from.

use tokio::time::Instant;
use windrow_core::Unit;

/// A batch before it leaves. The units go to the connection; the manifest stays with the lane.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) units: Vec<Unit>,
    pub(crate) manifest: Manifest,
}

/// The spans of a batch, from which the lane answers its units.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    /// The submissions that the units belong to, in the order of the batch.
    pub(crate) spans: Vec<Span>,
    /// The sources that have units in the batch, each once.
    pub(crate) sources: Vec<usize>,
    /// Hashes of the rows that the batch touches, if more than one flight was possible.
    pub(crate) hashes: Vec<u64>,
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
    /// True if a limit kept units out of the batch that could have been part of it.
    pub(crate) cut: bool,
    /// True if the units have been in a flight before.
    pub(crate) retry: bool,
    /// The time at which the batch left.
    pub(crate) departed: Option<Instant>,
}

/// Consecutive units of one submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) source: usize,
    pub(crate) ticket: usize,
    /// The index of the first of these units in the submission.
    pub(crate) first: usize,
    pub(crate) count: usize,
    /// The number of times that these units have been in a flight before.
    pub(crate) attempts: u32,
    pub(crate) arrived: Instant,
}

impl Manifest {
    /// Adds units of one submission, to the last span if they directly follow it.
    pub(crate) fn add(&mut self, span: Span) {
        if let Some(last) = self.spans.last_mut()
            && last.ticket == span.ticket
            && last.first + last.count == span.first
            && last.attempts == span.attempts
        {
            last.count += span.count;
        } else {
            self.spans.push(span);
        }
    }
}
