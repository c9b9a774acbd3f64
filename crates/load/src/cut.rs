//! Parts of portions.

use std::ops::Range;

use windrow_core::load::Fields;
use windrow_core::{Rows, Span};

use crate::source::Portion;

/// The places of the rows whose records lie in a span.
pub(super) fn rows_in(portion: &Portion, span: Span) -> Range<usize> {
    let place = |record| portion.records.partition_point(|r| *r < record);
    place(span.first)..place(span.end)
}

/// Cuts pieces out of a portion, one behind the other.
pub(super) struct Cutter<'a> {
    all: &'a Rows,
    fields: Fields<'a>,
    at: usize,
}

impl<'a> Cutter<'a> {
    pub(super) fn new(all: &'a Rows) -> Self {
        Self {
            all,
            fields: all.fields(),
            at: 0,
        }
    }

    pub(super) fn cut<'b>(&mut self, rows: Range<usize>, into: &'b mut Rows) -> &'b Rows {
        let columns = self.all.columns();
        if into.columns() == columns {
            into.clear();
        } else {
            *into = Rows::new(columns);
        }
        for _ in 0..rows.start.saturating_sub(self.at) * columns {
            self.fields.next();
        }
        self.at = rows.end;
        for line in self.all.lines().get(rows).unwrap_or_default() {
            // What was in one portion fits into another.
            into.push(*line, self.fields.by_ref().take(columns));
        }
        into
    }
}

#[cfg(test)]
mod tests {
    use windrow_core::Field;

    use super::*;

    #[test]
    fn a_piece_is_cut_out_of_a_portion() {
        let mut portion = Portion::new(2);
        for n in 0..6_u64 {
            let text = n.to_string();
            portion.rows.push(n + 2, [Field::Plain(&text), Field::Null]);
            portion.records.push(n * 2);
        }
        let rows = rows_in(&portion, Span { first: 3, end: 9 });
        assert_eq!(rows, 2..5);
        let (mut piece, mut cutter) = (Rows::default(), Cutter::new(&portion.rows));
        cutter.cut(rows, &mut piece);
        assert_eq!((piece.len(), piece.lines()), (3, &[4, 5, 6][..]));
        assert_eq!(piece.fields().nth(2), Some(Field::Plain("3")));
        cutter.cut(5..6, &mut piece);
        assert_eq!(
            (piece.lines(), piece.fields().next()),
            (&[7][..], Some(Field::Plain("5")))
        );
        assert!(rows_in(&portion, Span { first: 3, end: 4 }).is_empty());
    }
}
