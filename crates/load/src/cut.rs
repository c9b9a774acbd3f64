//! Parts of portions.

use std::ops::Range;

use windrow_core::{Rows, Span};

use crate::source::Portion;

/// Returns the places of the rows whose records lie in a span.
pub(super) fn rows_in(portion: &Portion, span: Span) -> Range<usize> {
    let place = |record| portion.records.partition_point(|r| *r < record);
    place(span.first)..place(span.end)
}

/// Copies some rows, given by their places.
pub(super) fn cut(all: &Rows, rows: Range<usize>) -> Rows {
    let columns = all.columns();
    let mut part = Rows::new(columns);
    let mut fields = all.fields().skip(rows.start * columns);
    for line in all.lines().get(rows).unwrap_or_default() {
        // The rows of one portion fit into another.
        part.push(*line, fields.by_ref().take(columns));
    }
    part
}

#[cfg(test)]
mod tests {
    use windrow_core::Field;

    use super::*;

    #[test]
    fn a_part_is_cut_out_of_a_portion() {
        let mut portion = Portion::new(2);
        for n in 0..6_u64 {
            let text = n.to_string();
            portion.rows.push(n + 2, [Field::Plain(&text), Field::Null]);
            portion.records.push(n * 2);
        }
        let rows = rows_in(&portion, Span { first: 3, end: 9 });
        assert_eq!(rows, 2..5);
        let part = cut(&portion.rows, rows);
        assert_eq!((part.len(), part.lines()), (3, &[4, 5, 6][..]));
        assert_eq!(part.fields().nth(2), Some(Field::Plain("3")));
        assert!(rows_in(&portion, Span { first: 3, end: 4 }).is_empty());
    }
}
