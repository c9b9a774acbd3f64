//! The point that Windrow's pace finds, against the best cell of the sweep.
//!
//! Both are measured anew, one after the other, in each round: the best of many cells is partly the
//! luckiest of them. Beside them the same batches and flights are written directly: what is lost
//! there is pace's, what else is lost through Windrow is the cost of its own.

use anyhow::Result;

use super::bend::{RATE, RELATIVE};
use crate::figures::Run;
use crate::figures::curve::Mark;

pub(super) const WINDROW: &str = "windrow";
pub(super) const POINT: &str = "pace's point, directly";
pub(super) const BEST: &str = "best cell, once more";

pub(super) const ROWS: &str = "mean batch, rows";
pub(super) const FLIGHTS: &str = "mean flights";
pub(super) const MOST_ROWS: &str = "largest batch that pace allows, rows";
pub(super) const MOST_FLIGHTS: &str = "flights that pace allows";
pub(super) const SHARE: &str = "of the best cell's rows/s";

/// A number of rows or flights, one at least.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a mean of small numbers"
)]
pub(super) fn whole(mean: f64) -> u32 {
    mean.round().max(1.0) as u32
}

pub(super) fn conclude(run: &mut Run) -> Result<()> {
    let median = |arm: &str, metric: &str| run.median(arm, metric);
    let (rows, flights) = (median(WINDROW, ROWS)?, median(WINDROW, FLIGHTS)?);
    let (rate, share) = (median(WINDROW, RATE)?, median(WINDROW, SHARE)?);
    let (batch, connections) = (median(BEST, ROWS)?, median(BEST, FLIGHTS)?);
    let directly = median(POINT, SHARE)?;
    run.remark(
        "Windrow writes the same rows in process, through its library, by the forms of its own; the point that its pace found is \
         written directly, and the best cell of the round measured once more, in turn with it",
    );
    run.remark(format!(
        "pace writes batches of {rows:.0} rows in {flights:.1} flights: {rate:.0} rows/s through Windrow, {share:.2} of the best cell \
         ({batch:.0} rows, concurrency {connections:.0}); written directly, its point has {directly:.2} of the best cell"
    ));
    Ok(())
}

/// Windrow's place in the plot.
pub(super) fn mark(run: &Run) -> Result<Mark> {
    let (x, y) = (run.median(WINDROW, ROWS)?, run.median(WINDROW, RELATIVE)?);
    Ok(Mark {
        name: format!("Windrow: {y:.1} times, batches of {x:.0}"),
        x,
        y,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_has_a_row_and_a_flight_at_least() {
        assert_eq!([0.2, 1.4, 841.6].map(whole), [1, 1, 842]);
    }
}
