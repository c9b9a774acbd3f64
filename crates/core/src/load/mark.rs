//! The progress of a load, kept in the database that the load fills.

use async_trait::async_trait;

use crate::fault::Fault;
use crate::name::{Name, TableName};
use crate::shape::{Key, OnConflict, Op, Returning, Shape, ShapeParts};
use crate::value::Value;

/// Rows of one file, counted from 0: from `first` up to but not including `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first row.
    pub first: u64,
    /// The first row after the span.
    pub end: u64,
}

/// A record that some rows of a load are done, written in the transaction that writes the rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The name of the load; at most [`Mark::NAME_BYTES`] bytes of ASCII.
    pub load: Box<str>,
    /// The rows.
    pub span: Span,
}

impl Mark {
    /// The table that holds marks: `load`, `first_row` (its key together), `end_row`. It is in the
    /// schema of the connection's own tables.
    pub const TABLE: &'static str = "windrow_loads";
    /// The column for [`Mark::load`].
    pub const LOAD: &'static str = "load";
    /// The column for [`Span::first`].
    pub const FIRST: &'static str = "first_row";
    /// The column for [`Span::end`].
    pub const END: &'static str = "end_row";
    /// The most bytes of a load's name: the longest key that every database can hold.
    pub const NAME_BYTES: usize = 128;

    /// Returns the shape of a write of a mark. The write is executed in one unit with a row.
    pub fn shape() -> Shape {
        Shape::new(ShapeParts {
            op: Op::Insert,
            table: TableName {
                schema: None,
                table: Name::from(Self::TABLE),
            },
            columns: [Self::LOAD, Self::FIRST, Self::END].map(Name::from).into(),
            key: Key::Primary,
            on_conflict: OnConflict::Error,
            returning: Returning::Nothing,
        })
    }

    /// Returns the row of a write of [`Mark::shape`].
    pub fn row(&self) -> [Value; 3] {
        let number = |n: u64| Value::Int(i64::try_from(n).unwrap_or(i64::MAX));
        [
            Value::text(&*self.load),
            number(self.span.first),
            number(self.span.end),
        ]
    }
}

/// The mark that a portion gets. If rows are left out, several marks take its place.
#[derive(Clone, Copy, Debug)]
pub struct Claim<'a> {
    /// The mark of the whole portion.
    pub mark: &'a Mark,
    /// The record of each row of the portion: a number within the mark's span, each larger than
    /// the one before. Empty if no row can be left out.
    pub records: &'a [u64],
}

impl Claim<'_> {
    /// Returns the spans that may be marked if some rows are left out, given by their positions in
    /// order: all rows between them.
    pub fn spans(&self, left: &[usize]) -> Vec<Span> {
        let mut spans = Vec::with_capacity(left.len() + 1);
        let mut first = self.mark.span.first;
        for record in left.iter().filter_map(|place| self.records.get(*place)) {
            if first < *record {
                spans.push(Span {
                    first,
                    end: *record,
                });
            }
            first = record + 1;
        }
        if first < self.mark.span.end {
            spans.push(Span {
                first,
                end: self.mark.span.end,
            });
        }
        spans
    }
}

/// Access to the marks in a database.
#[async_trait]
pub trait Marks: Send + Sync + 'static {
    /// Creates the table unless it exists. Several processes may do that at the same time. Cancel
    /// safe.
    ///
    /// # Errors
    /// The error of the database.
    async fn prepare(&self) -> Result<(), Fault>;

    /// Returns the rows of a load that are done, in the order of [`Span::first`]. Cancel safe.
    ///
    /// # Errors
    /// The error of the database.
    async fn read(&self, load: &str) -> Result<Vec<Span>, Fault>;

    /// Replaces all marks of its load that lie within a mark by it, in one transaction. Cancel
    /// safe.
    ///
    /// # Errors
    /// The error of the database.
    async fn merge(&self, mark: &Mark) -> Result<(), Fault>;

    /// Deletes all marks of a load. Cancel safe.
    ///
    /// # Errors
    /// The error of the database.
    async fn forget(&self, load: &str) -> Result<(), Fault>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_the_rows_that_are_left_out_is_marked() {
        let mark = Mark {
            load: "l".into(),
            span: Span { first: 10, end: 20 },
        };
        // Records 12 and 17 could not be read.
        let records = [10, 11, 13, 14, 15, 16, 18, 19];
        let claim = Claim {
            mark: &mark,
            records: &records,
        };
        let spans = |left: &[usize]| {
            let spans = claim.spans(left).into_iter();
            spans.map(|s| (s.first, s.end)).collect::<Vec<_>>()
        };
        assert_eq!(spans(&[]), [(10, 20)]);
        assert_eq!(spans(&[0]), [(11, 20)]);
        assert_eq!(spans(&[2, 3, 6]), [(10, 13), (15, 18), (19, 20)]);
        assert_eq!(spans(&[7]), [(10, 19)]);
        assert_eq!(spans(&[0, 1, 2, 3, 4, 5, 6, 7]), [(12, 13), (17, 18)]);
    }
}
