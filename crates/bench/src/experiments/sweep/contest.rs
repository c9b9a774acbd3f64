//! The point that Windrow's pace finds, against the best cell of the sweep.
//!
//! Both are measured anew, one after the other, in each round: the best of many cells is partly the
//! luckiest of them. Beside them the same batches and flights are written directly: what is lost
//! there is pace's, what else is lost through Windrow is the cost of its own.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::bend::Cell;
use super::library::{self, Found, Library};
use super::place::Place;
use super::rows::Rows;
use super::{RATE, RELATIVE, Sweep};
use crate::figures::curve::Mark;
use crate::figures::{LIMIT, Run};

const WINDROW: &str = "windrow";
const POINT: &str = "pace's point, directly";
const BEST: &str = "best cell, once more";

const ROWS: &str = "mean batch, rows";
const FLIGHTS: &str = "mean flights";
const MOST_ROWS: &str = "largest batch that pace allows, rows";
const MOST_FLIGHTS: &str = "flights that pace allows";
const SHARE: &str = "of the best cell's rows/s";

/// A turn is so many cells long: large batches are few.
const CELLS: u32 = 2;

/// Rows a second of the three, each the mean of its turns.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    windrow: f64,
    point: f64,
    best: f64,
}

impl Sweep {
    pub(super) fn contest(
        &self,
        place: &Place,
        rows: &Arc<Rows>,
        cells: &[Cell],
        (run, round): (&mut Run, u32),
    ) -> Result<()> {
        let best = cells
            .iter()
            .max_by(|one, two| one.rate.total_cmp(&two.rate));
        let best = best.context("no cell was measured")?;
        let base = cells
            .iter()
            .find(|cell| (cell.batch, cell.connections) == (1, 2));
        let base = base
            .context("the cell that all is relative to was not measured")?
            .rate;
        let limit = library::limit(rows, Duration::from_millis(self.cell_ms))?;
        let library = Library::open(place, self.streams)?;
        let found = self.through(&library, (place, rows), Duration::from_millis(self.find_ms))?;
        let (batch, flights) = (whole(found.rows), whole(found.flights));
        let mut sums = Sums::default();
        let mut found = Vec::new();
        for turn in 0..self.turns {
            let mut order = [WINDROW, POINT, BEST];
            if turn % 2 == 1 {
                order.reverse();
            }
            for arm in order {
                match arm {
                    WINDROW => {
                        let warm_up = Duration::from_millis(self.warm_up_ms);
                        let one = self.through(&library, (place, rows), warm_up)?;
                        sums.windrow += one.rate;
                        found.push(one);
                    }
                    POINT => {
                        let of = (batch, flights);
                        sums.point += self.cell(place, rows, of, self.turn_ms())?;
                    }
                    _ => {
                        let of = (best.batch, best.connections);
                        sums.best += self.cell(place, rows, of, self.turn_ms())?;
                    }
                }
            }
        }
        library.close();
        let turns = f64::from(self.turns);
        let mean = |of: fn(&Found) -> f64| found.iter().map(of).sum::<f64>() / turns;
        let told = |sum: f64| {
            let rate = sum / turns;
            [
                (RATE, rate),
                (RELATIVE, rate / base),
                (SHARE, sum / sums.best),
            ]
        };
        let mut windrow = told(sums.windrow).to_vec();
        windrow.extend([
            (ROWS, mean(|found| found.rows)),
            (FLIGHTS, mean(|found| found.flights)),
            (MOST_ROWS, mean(|found| found.most_rows)),
            (MOST_FLIGHTS, mean(|found| found.most_flights)),
            (LIMIT, limit),
        ]);
        run.add_all(round, WINDROW, &windrow);
        let at = |batch: u32, flights: u32| [(ROWS, batch.into()), (FLIGHTS, flights.into())];
        let point = [&told(sums.point)[..], &at(batch, flights)].concat();
        run.add_all(round, POINT, &point);
        let again = [&told(sums.best)[..], &at(best.batch, best.connections)].concat();
        run.add_all(round, BEST, &again);
        Ok(())
    }

    fn turn_ms(&self) -> u64 {
        self.cell_ms * u64::from(CELLS)
    }

    /// Rows through Windrow's library into the emptied table, measured behind a while.
    fn through(
        &self,
        library: &Library,
        (place, rows): (&Place, &Arc<Rows>),
        before: Duration,
    ) -> Result<Found> {
        self.make_ready(place)?;
        let time = Duration::from_millis(self.turn_ms());
        let found = library.write(rows, (before, time))?;
        let there = place.count()?;
        ensure!(
            found.written == there,
            "{} rows were written through Windrow, {there} are there",
            found.written
        );
        Ok(found)
    }
}

/// A number of rows or flights, one at least.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a mean of small numbers"
)]
fn whole(mean: f64) -> u32 {
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
