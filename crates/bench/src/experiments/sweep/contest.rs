//! The point that Windrow's pace finds, against the best cell of the sweep.
//!
//! Both are measured again, one after the other, in each round: the best of many cells is partly
//! the luckiest of them. Beside them the same batches and flights are written directly: the loss
//! there is pace's, and the further loss through Windrow is its own cost.

use std::time::Duration;

use anyhow::Result;

use super::bend::{Cell, RATE, RELATIVE};
use super::cells::Field;
use super::library::{self, Found, Library};
use crate::figures::plot::Mark;
use crate::figures::{LIMIT, Metrics, Run, in_turn};

const WINDROW: &str = "windrow";
const POINT: &str = "pace's point, directly";
const BEST: &str = "best cell, once more";

const ROWS: &str = "mean batch, rows";
const FLIGHTS: &str = "mean flights";
const MOST_ROWS: &str = "largest batch that pace allows, rows";
const MOST_FLIGHTS: &str = "flights that pace allows";
const SHARE: &str = "of the best cell's rows/s";

/// The contest of one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contest {
    /// Tasks that write through Windrow.
    pub(super) streams: usize,
    /// The time that Windrow has to find its point.
    pub(super) find: Duration,
    /// The time of each of the three in a turn, and the number of turns.
    pub(super) time: Duration,
    pub(super) turns: u32,
}

/// Rows a second of the three, added up over the turns.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    windrow: f64,
    point: f64,
    best: f64,
}

/// The points that Windrow found in each turn.
struct Turns(Vec<Found>);

impl Contest {
    /// Lets Windrow find its point, and measures it, the point and the best cell in turns. Figures
    /// are reported as multiples of `base` too.
    pub(super) fn hold(
        self,
        field: &Field<'_>,
        best: Cell,
        base: f64,
        (run, round): (&mut Run, u32),
    ) -> Result<()> {
        let limit = library::limit(field.rows, self.time)?;
        let library = Library::open(field.table, self.streams)?;
        let found = field.through(&library, (self.find, self.time))?;
        let point = (whole(found.rows), whole(found.flights));
        let best = (best.batch, best.connections);
        let (sums, turns) = self.take_turns(field, &library, (point, best))?;
        library.close();
        let rates = |sum: f64| {
            let rate = sum / f64::from(self.turns);
            Metrics::new()
                .with(RATE, rate)
                .with(RELATIVE, rate / base)
                .with(SHARE, sum / sums.best)
        };
        let at = |sum: f64, (rows, flights): (u32, u32)| {
            rates(sum)
                .with(ROWS, rows.into())
                .with(FLIGHTS, flights.into())
        };
        let windrow = rates(sums.windrow).and(turns.means()).with(LIMIT, limit);
        run.add_all(round, WINDROW, &windrow);
        run.add_all(round, POINT, &at(sums.point, point));
        run.add_all(round, BEST, &at(sums.best, best));
        Ok(())
    }

    fn take_turns(
        self,
        field: &Field<'_>,
        library: &Library,
        (point, best): ((u32, u32), (u32, u32)),
    ) -> Result<(Sums, Turns)> {
        let (mut sums, mut turns) = (Sums::default(), Vec::new());
        for turn in 1..=self.turns {
            for arm in in_turn(turn, &[WINDROW, POINT, BEST]) {
                match arm {
                    WINDROW => {
                        let found = field.through(library, (field.warm_up, self.time))?;
                        sums.windrow += found.rate;
                        turns.push(found);
                    }
                    POINT => sums.point += field.cell(point, self.time)?,
                    _ => sums.best += field.cell(best, self.time)?,
                }
            }
        }
        Ok((sums, Turns(turns)))
    }
}

impl Turns {
    fn means(&self) -> Metrics {
        let turns = f64::from(u32::try_from(self.0.len()).unwrap_or(u32::MAX));
        let mean = |of: fn(&Found) -> f64| self.0.iter().map(of).sum::<f64>() / turns;
        Metrics::new()
            .with(ROWS, mean(|found| found.rows))
            .with(FLIGHTS, mean(|found| found.flights))
            .with(MOST_ROWS, mean(|found| found.most_rows))
            .with(MOST_FLIGHTS, mean(|found| found.most_flights))
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
