//! A portion on its way to a worker, and the place of its rows in messages.

use windrow_core::Span;

use super::rejects::Origin;
use crate::source::Portion;

/// A portion, and the records that it is made of.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) portion: Portion,
    pub(super) span: Span,
    /// True if an earlier run has sent rows of the span through its lane, of which some may still
    /// be on their way: each row goes through the lane with a mark of its own, as they did.
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
