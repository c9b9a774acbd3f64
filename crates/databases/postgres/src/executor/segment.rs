//! The transactions of a round trip.

use windrow_core::Fault;

/// Units that run in one transaction, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Places in the batch, ascending.
    pub(crate) units: Vec<u32>,
    pub(crate) mode: Mode,
}

/// How a segment runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Set-based statements where they pay, single ones elsewhere, in the planned order.
    Sets,
    /// As [`Mode::Sets`], but plain inserts leave duplicates out and tell which they are.
    Telling,
    /// Each write by its own statement, in the order of the batch.
    Grouped,
    /// One unit by prepared statements: a failure is its own, unless a stale description may have
    /// caused it.
    Own,
    /// One unit by statements that are parsed anew: a failure is its own.
    Fresh,
    /// One unit whose statement the server is expected not to parse; it is not executed.
    Probe,
    /// One unit that Windrow itself refuses, if the description that it is refused by is still
    /// true: which of its writes, and why.
    Refuse(usize, Fault),
}

/// What is to be done with a unit at first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Prospect {
    /// It will succeed, as far as is known.
    Good,
    /// As the mode says, in a transaction of its own.
    Apart(Mode),
}

impl Segment {
    pub(crate) fn new(units: Vec<u32>, mode: Mode) -> Self {
        // A group of one has nobody to be set apart from: what it fails with is its own.
        let mode = match mode {
            Mode::Grouped if units.len() == 1 => Mode::Own,
            mode => mode,
        };
        Self { units, mode }
    }

    /// Whether it may have to run again, after those behind it: not where each failure is told at
    /// once. (A failure of [`Mode::Own`] that a stale description may have caused is looked at
    /// once more, and is the same nearly always.)
    pub(crate) fn may_come_back(&self) -> bool {
        matches!(self.mode, Mode::Sets | Mode::Telling | Mode::Grouped)
    }

    /// The place of its first unit; 0 where nobody's statements are sent.
    pub(crate) fn first_unit(&self) -> u32 {
        self.units.first().copied().unwrap_or_default()
    }

    /// Whether its statements are executed.
    pub(crate) fn runs(&self) -> bool {
        !matches!(self.mode, Mode::Probe | Mode::Refuse(..))
    }

    pub(crate) fn one(unit: u32, mode: Mode) -> Self {
        Self::new(vec![unit], mode)
    }

    /// Segments of no more than `size` units. Those that follow each other on the same rows stay in
    /// their order.
    pub(crate) fn cut(segments: Vec<Self>, size: usize) -> Vec<Self> {
        if segments.iter().all(|segment| segment.units.len() <= size) {
            return segments;
        }
        let pieces = segments
            .iter()
            .flat_map(|s| Self::pieces(&s.units, size, &s.mode));
        pieces.collect()
    }

    /// The units in pieces of at most `size`.
    pub(crate) fn pieces(units: &[u32], size: usize, mode: &Mode) -> Vec<Self> {
        units
            .chunks(size.max(1))
            .map(|piece| Self::new(piece.to_vec(), mode.clone()))
            .collect()
    }
}
