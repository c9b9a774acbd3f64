//! The units that leave together, and where each of them came from.

use tokio::time::Instant;
use windrow_core::Unit;

/// A batch before it leaves. The units go to the flight, the manifest stays with the lane.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) units: Vec<Unit>,
    pub(crate) manifest: Manifest,
}

/// The spans of a batch, from which the lane answers its units.
#[derive(Debug, Default)]
pub(crate) struct Manifest {
    /// Whose units they are, in the order of the batch.
    pub(crate) spans: Vec<Span>,
    /// The sources that have units in it, each once.
    pub(crate) sources: Vec<usize>,
    /// Hashes of the rows it touches, where more than one flight was possible.
    pub(crate) hashes: Vec<u64>,
    pub(crate) rows: usize,
    pub(crate) bytes: usize,
    /// True if a limit left units behind that could have come along.
    pub(crate) cut: bool,
    /// True if its units have been under way before.
    pub(crate) retry: bool,
    /// When it left.
    pub(crate) departed: Option<Instant>,
}

/// Neighbouring units of one submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) source: usize,
    pub(crate) ticket: usize,
    /// The index of the first of them in the submission.
    pub(crate) first: usize,
    pub(crate) count: usize,
    /// The number of times that they have been under way before.
    pub(crate) attempts: u32,
    pub(crate) arrived: Instant,
}

impl Manifest {
    /// Adds units of one submission; they join the last span where they follow it without a gap.
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
