//! The transactions of a round trip.

use windrow_core::Fault;

/// Units that run in one transaction, and the form in which they run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Indexes of units in the batch, ascending.
    pub(crate) units: Vec<u32>,
    pub(crate) mode: Mode,
}

/// The form in which a segment runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Set-based statements if they pay, single ones otherwise, in the planned order.
    Sets,
    /// As [`Mode::Sets`], but plain inserts leave out rows that would fail, and report them.
    Telling,
    /// Each write by its own statement, in the order of the batch.
    Grouped,
    /// One unit by prepared statements. A failure belongs to the unit, unless a stale description
    /// may have caused it.
    Own,
    /// One unit by statements that are parsed right before they run. A failure belongs to the unit.
    Fresh,
    /// One unit whose statement the server is expected not to parse. The statement is not executed.
    Probe,
    /// One unit that Windrow itself refuses, if the description that shows the fault still holds:
    /// the position of the write in the unit, and the fault.
    Refuse(usize, Fault),
}

/// The expected outcome of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Prospect {
    /// The unit is expected to succeed.
    Good,
    /// The unit runs in the given mode, in a transaction of its own.
    Apart(Mode),
}

impl Segment {
    pub(crate) fn new(units: Vec<u32>, mode: Mode) -> Self {
        // A group of one unit cannot fail because of another unit.
        let mode = match mode {
            Mode::Grouped if units.len() == 1 => Mode::Own,
            mode => mode,
        };
        Self { units, mode }
    }

    /// Returns true if the segment may have to run again, after later ones have run. The other
    /// modes answer each failure at once. (A failure of [`Mode::Own`] that a stale description may
    /// have caused is tried once more, and is nearly always the same.)
    pub(crate) fn may_come_back(&self) -> bool {
        matches!(self.mode, Mode::Sets | Mode::Telling | Mode::Grouped)
    }

    /// Returns the index of the segment's first unit, or 0 if it has no units.
    pub(crate) fn first_unit(&self) -> u32 {
        self.units.first().copied().unwrap_or_default()
    }

    /// Returns true if the segment's statements are executed.
    pub(crate) fn runs(&self) -> bool {
        !matches!(self.mode, Mode::Probe | Mode::Refuse(..))
    }

    pub(crate) fn one(unit: u32, mode: Mode) -> Self {
        Self::new(vec![unit], mode)
    }

    /// Cuts segments into pieces of at most `size` units, in the same order.
    pub(crate) fn cut(segments: Vec<Self>, size: usize) -> Vec<Self> {
        if segments.iter().all(|segment| segment.units.len() <= size) {
            return segments;
        }
        let pieces = segments
            .iter()
            .flat_map(|s| Self::pieces(&s.units, size, &s.mode));
        pieces.collect()
    }

    /// Cuts units into segments of at most `size` units.
    pub(crate) fn pieces(units: &[u32], size: usize, mode: &Mode) -> Vec<Self> {
        units
            .chunks(size.max(1))
            .map(|piece| Self::new(piece.to_vec(), mode.clone()))
            .collect()
    }
}
