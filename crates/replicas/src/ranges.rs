//! Compares a table range by range, if both databases compute checksums in the same way: only rows
//! of ranges with different checksums are read.
//!
//! Ranges are cut by keys of the primary, and the first and the last are unlimited, so that
//! together they also contain all rows of the replica. If the two order keys differently, more
//! ranges differ than necessary, which costs time.

use windrow_core::Row;
use windrow_core::{Fault, KeyRange, RowSums};

use crate::comparison::{Checked, Comparison, KEYS};
use crate::side_by_side::Sides;

/// The rows of the first ranges. A range that differs is cut into those of [`KEYS`].
const ROWS: usize = 50_000;

/// A table at both ends, each with its checksums.
pub(crate) struct SummedTable<'a> {
    pub(crate) sides: Sides<'a>,
    pub(crate) primary: &'a dyn RowSums,
    pub(crate) replica: &'a dyn RowSums,
}

impl SummedTable<'_> {
    /// Returns the number of rows of a range at the primary, if the checksums are equal.
    async fn same(&self, range: KeyRange<'_>) -> Result<Option<u64>, Fault> {
        let (sides, (_, table), (_, copy)) = (&self.sides, self.sides.primary, self.sides.replica);
        let (one, other) = futures_util::try_join!(
            self.primary.sum(table, sides.columns, range),
            self.replica.sum(copy, sides.columns, range)
        )?;
        Ok((one == other).then_some(one.rows))
    }

    /// Returns the end of the next range within a range.
    async fn cut(&self, range: KeyRange<'_>, rows: usize) -> Result<Option<Row>, Fault> {
        let (_, table) = self.sides.primary;
        self.primary.end_of(table, range, rows).await
    }

    /// Compares all rows.
    pub(crate) async fn compare(
        &self,
        comparison: &mut Comparison<'_>,
        checked: &mut Checked,
    ) -> Result<(), Fault> {
        let mut after: Option<Row> = None;
        loop {
            let rest = KeyRange {
                after: after.as_deref(),
                to: None,
            };
            let to = self.cut(rest, ROWS).await?;
            let range = KeyRange {
                to: to.as_deref(),
                ..rest
            };
            match self.same(range).await? {
                Some(rows) => checked.rows += rows,
                None => self.narrow(range, comparison, checked).await?,
            }
            match to {
                Some(to) => after = Some(to),
                None => return Ok(()),
            }
        }
    }

    /// Compares the rows in those parts of a range that differ.
    async fn narrow(
        &self,
        whole: KeyRange<'_>,
        comparison: &mut Comparison<'_>,
        checked: &mut Checked,
    ) -> Result<(), Fault> {
        let mut after: Option<Row> = whole.after.map(Into::into);
        loop {
            let rest = KeyRange {
                after: after.as_deref(),
                ..whole
            };
            let end = self.cut(rest, KEYS).await?;
            let range = KeyRange {
                to: end.as_deref().or(whole.to),
                ..rest
            };
            match self.same(range).await? {
                Some(rows) => checked.rows += rows,
                None => self.sides.compare(range, comparison, checked).await?,
            }
            match end {
                Some(end) => after = Some(end),
                None => return Ok(()),
            }
        }
    }
}
