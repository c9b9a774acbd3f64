//! A portion for a worker, and the place of its rows in messages.

use windrow_core::Span;

use super::rejects::Origin;
use crate::source::Portion;

/// A portion, and the records that it consists of.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) portion: Portion,
    pub(super) span: Span,
    /// True if an earlier run sent rows of the span through its lane, some of which may still be
    /// under way. Each row then goes through the lane with its own mark, as in that run.
    pub(super) by_lane: bool,
}

/// Returns `file, line 7`.
pub(super) fn place(origin: &Origin, parcel: &Parcel, row: usize) -> String {
    let lines = parcel.portion.rows.lines();
    match lines.get(row) {
        Some(line) => format!("{}, line {line}", origin.file),
        None => origin.file.clone(),
    }
}

/// Returns `file, lines 7 to 9`.
pub(super) fn lines(origin: &Origin, parcel: &Parcel) -> String {
    match parcel.portion.lines() {
        Some((first, last)) if first != last => {
            format!("{}, lines {first} to {last}", origin.file)
        }
        Some((line, _)) => format!("{}, line {line}", origin.file),
        None => origin.file.clone(),
    }
}
