//! A portion on its way to whoever writes it, and how messages say where its rows stand.

use std::ops::Range;

use windrow_core::Span;

use super::rejects::Origin;
use crate::source::Portion;

/// A portion, and the records that it is made of.
#[derive(Debug)]
pub(super) struct Parcel {
    pub(super) portion: Portion,
    pub(super) span: Span,
}

/// `file, line 7`.
pub(super) fn place(origin: &Origin, parcel: &Parcel, row: usize) -> String {
    let lines = parcel.portion.rows.lines();
    match lines.get(row) {
        Some(line) => format!("{}, line {line}", origin.file),
        None => origin.file.clone(),
    }
}

/// `file, lines 7 to 9`.
pub(super) fn lines(origin: &Origin, parcel: &Parcel, rows: &Range<usize>) -> String {
    let lines = parcel.portion.rows.lines();
    let last = rows.end.checked_sub(1).and_then(|at| lines.get(at));
    let ends = match lines.get(rows.start).zip(last) {
        Some((first, last)) => Some((*first, *last)),
        None => parcel.portion.lines(),
    };
    match ends {
        Some((first, last)) if first != last => {
            format!("{}, lines {first} to {last}", origin.file)
        }
        Some((line, _)) => format!("{}, line {line}", origin.file),
        None => origin.file.clone(),
    }
}
