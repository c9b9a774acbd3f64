//! Rows by the size of a batch and the number of connections: where more of either brings nothing,
//! and the point that Windrow's pace finds by itself.

mod bend;
mod contest;
mod library;
mod place;
mod rows;

use std::path::Path;
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use self::bend::{Cell, RATE, RELATIVE};
use self::contest::{BEST, FLIGHTS, MOST_FLIGHTS, MOST_ROWS, POINT, ROWS, SHARE, WINDROW, whole};
use self::library::{Found, Library};
use self::place::{Place, Writer};
use self::rows::Rows;
use crate::figures::curve::{self, Mark, Scale};
use crate::figures::plot::Names;
use crate::figures::{LIMIT, Run};
use crate::servers::{Kind, Store};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Sweep {
    /// The database.
    #[arg(long, value_enum, default_value = "postgres")]
    pub to: Kind,
    /// A database that runs already instead, as postgres://.. (CockroachDB too) or mysql://..; the
    /// table `lineitem` is made and dropped there.
    #[arg(long, conflicts_with = "to")]
    pub url: Option<String>,
    /// Rows of a batch, which is one statement and its commit. 1 must be among them.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 50, 100, 500, 1_000, 5_000])]
    pub batches: Vec<u32>,
    /// Connections, each with one batch under way. 2 must be among them.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16])]
    pub concurrency: Vec<u32>,
    /// Milliseconds of each measurement, the same ones for all connections.
    #[arg(long, default_value_t = 1_000)]
    pub cell_ms: u64,
    /// Milliseconds before each measurement, in which the same is done.
    #[arg(long, default_value_t = 300)]
    pub warm_up_ms: u64,
    /// Milliseconds that Windrow has to find its point.
    #[arg(long, default_value_t = 10_000)]
    pub find_ms: u64,
    /// Tasks that write through Windrow's library, each as many rows as it may have under way.
    #[arg(long, default_value_t = 8)]
    pub streams: usize,
    /// How often Windrow, its point written directly and the best cell are measured in each round,
    /// one after the other.
    #[arg(long, default_value_t = 3)]
    pub turns: u32,
    /// Alternating repetitions: every second one goes from the last cell to the first.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
}

const BEND: &str = "rows of a batch at the bend";

/// What others have published, of a CockroachDB of four nodes: relative throughput by batch size.
const PUBLISHED: [(u32, f64); 2] = [(10, 2.0), (50, 7.0)];

/// The same of the bend: connections, and rows of a batch.
const PUBLISHED_BENDS: [(u32, f64); 2] = [(2, 100.0), (4, 50.0)];

impl Sweep {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, or a row is refused.
    pub fn run(&self, root: &Path) -> Result<()> {
        ensure!(
            self.batches.contains(&1) && self.concurrency.contains(&2),
            "--batches needs 1 and --concurrency 2 among them: all else is told as a multiple of that cell"
        );
        let is_whole = |numbers: &[u32]| numbers.iter().all(|n| *n > 0);
        ensure!(
            is_whole(&self.batches) && is_whole(&self.concurrency),
            "0 rows or connections write nothing"
        );
        let store = self
            .url
            .is_none()
            .then(|| Store::start(self.to))
            .transpose()?;
        let place = match (&store, &self.url) {
            (Some(store), _) => Place::private(store)?,
            (None, Some(url)) => Place::at(url)?,
            (None, None) => return Err(anyhow!("no database is named")),
        };
        let name = place.kind().as_str();
        let mut run = Run::new(
            format!("sweep-{name}"),
            format!("lineitem by batch size and concurrency, {name}"),
        );
        run.version("database", place.version()?);
        let rows = Arc::new(Rows::generate()?);
        for round in 1..=self.rounds {
            self.round(&place, &rows, &mut run, round)?;
        }
        place.remove()?;
        self.conclude(&mut run, place.kind())?;
        run.store(root)?;
        Ok(())
    }

    fn cells(&self) -> Vec<(u32, u32)> {
        let cells = self.concurrency.iter().flat_map(|connections| {
            let batches = self.batches.iter();
            batches.map(move |batch| (*batch, *connections))
        });
        cells.collect()
    }

    fn round(&self, place: &Place, rows: &Arc<Rows>, run: &mut Run, round: u32) -> Result<()> {
        let mut order = self.cells();
        if round.is_multiple_of(2) {
            order.reverse();
        }
        let mut cells = Vec::with_capacity(order.len());
        for (batch, connections) in order {
            let rate = self.cell(place, rows, (batch, connections), self.cell_ms);
            let rate = rate.with_context(|| arm(batch, connections))?;
            run.add_all(round, &arm(batch, connections), &[(RATE, rate)]);
            cells.push(Cell {
                batch,
                connections,
                rate,
            });
        }
        let base = cells
            .iter()
            .find(|cell| (cell.batch, cell.connections) == (1, 2));
        let base = base
            .context("the cell that all is relative to was not measured")?
            .rate;
        for Cell {
            batch,
            connections,
            rate,
        } in &cells
        {
            run.add(round, &arm(*batch, *connections), RELATIVE, rate / base);
        }
        for connections in &self.concurrency {
            if let Some(batch) = bend::bend(&cells, *connections) {
                run.add(round, &connected(*connections), BEND, f64::from(batch));
            }
        }
        self.contest(place, rows, &cells, (run, round))
    }

    /// Rows a second of so many connections, each of which writes such batches one after the other.
    fn cell(
        &self,
        place: &Place,
        rows: &Rows,
        (batch, connections): (u32, u32),
        millis: u64,
    ) -> Result<f64> {
        self.make_ready(place)?;
        let ready = Barrier::new(usize::try_from(connections)?);
        let begun = OnceLock::new();
        let window = || {
            let from = *begun.get_or_init(Instant::now) + Duration::from_millis(self.warm_up_ms);
            let until = from + Duration::from_millis(millis);
            Window { from, until }
        };
        let (inside, written) = thread::scope(|scope| {
            let writers: Vec<_> = (0..connections)
                .map(|_| {
                    scope.spawn(|| {
                        let writer = Writer::connect(place);
                        // Also where it failed: the others wait.
                        ready.wait();
                        window().fill(&mut writer?, rows, batch)
                    })
                })
                .collect();
            let (mut inside, mut all) = (0.0, 0);
            for writer in writers {
                let (its, written) = writer.join().map_err(|_| anyhow!("a writer panicked"))??;
                inside += its;
                all += written;
            }
            anyhow::Ok((inside, all))
        })?;
        let there = place.count()?;
        ensure!(
            there == written,
            "{written} rows were written, {there} are there"
        );
        Ok(inside / Duration::from_millis(millis).as_secs_f64())
    }

    /// Empties the table.
    fn make_ready(&self, place: &Place) -> Result<()> {
        place.empty()?;
        if let Place::Postgres(_) = place
            && self.url.is_none()
        {
            // What the last measurement left to be written is written before this one.
            place.execute("checkpoint")?;
        }
        Ok(())
    }

    fn conclude(&self, run: &mut Run, kind: Kind) -> Result<()> {
        run.remark(match kind {
            Kind::Sqlite => "a batch is one transaction of a prepared statement",
            _ => "a batch is one multi-row INSERT, sent as a text, and its own commit",
        });
        run.remark(bend::RULE);
        for connections in &self.concurrency {
            let at = run.median(&connected(*connections), BEND);
            let at = at.map_or("none up to the largest batch".to_owned(), |rows| {
                format!("{rows:.0} rows")
            });
            run.remark(format!("the bend with concurrency {connections}: {at}"));
        }
        for (batch, times) in PUBLISHED {
            if self.batches.contains(&batch) {
                run.published(&arm(batch, 2), RELATIVE, times);
            }
        }
        for (connections, batch) in PUBLISHED_BENDS {
            if self.concurrency.contains(&connections) {
                run.published(&connected(connections), BEND, batch);
            }
        }
        run.remark("what was published is of a CockroachDB of four nodes, where a statement travels between machines: it has more to save");
        contest::conclude(run)?;
        self.plot(run)
    }

    fn plot(&self, run: &mut Run) -> Result<()> {
        let curves: Vec<_> = self
            .concurrency
            .iter()
            .map(|connections| {
                let arms: Vec<_> = self
                    .batches
                    .iter()
                    .map(|batch| (f64::from(*batch), arm(*batch, *connections)))
                    .collect();
                run.curve(&connected(*connections), RELATIVE, &arms)
            })
            .collect();
        let mut marks = Vec::new();
        for (batch, times) in PUBLISHED {
            marks.push(Mark {
                name: format!("published: {times} times at {batch}"),
                x: f64::from(batch),
                y: times,
            });
        }
        marks.push(contest::mark(run)?);
        let names = Names {
            title: "Relative throughput by batch size",
            x: "rows of a batch",
            y: RELATIVE,
        };
        run.file(
            "sweep.svg",
            curve::curves(names, Scale::Log, &curves, &marks)?,
        );
        Ok(())
    }
}

fn arm(batch: u32, connections: u32) -> String {
    format!("batch {batch}, concurrency {connections}")
}

fn connected(connections: u32) -> String {
    format!("concurrency {connections}")
}

/// A turn is so many cells long: large batches are few.
const CELLS: u32 = 2;

/// Rows a second of the three, added up over the turns.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    windrow: f64,
    point: f64,
    best: f64,
}

impl Sweep {
    fn contest(
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

/// When a cell is measured: the same time for all of its connections. With a time of its own, one
/// that had to wait for the others would be measured when these are done.
#[derive(Clone, Copy, Debug)]
struct Window {
    from: Instant,
    until: Instant,
}

impl Window {
    /// How much of what took from `begun` to `ended` lies in it, of 1.
    fn share(&self, begun: Instant, ended: Instant) -> f64 {
        let inside = ended
            .min(self.until)
            .saturating_duration_since(begun.max(self.from));
        let took = ended.saturating_duration_since(begun);
        inside.as_secs_f64() / took.as_secs_f64().max(1e-9)
    }

    /// Writes batches until it is over, one at least. Gives back the rows that were written in it,
    /// of a batch at its edge a part, and all.
    fn fill(&self, writer: &mut Writer, rows: &Rows, batch: u32) -> Result<(f64, u64)> {
        let (mut inside, mut all) = (0.0, 0);
        loop {
            let begun = Instant::now();
            writer.batch(rows, rows.take(batch.into()))?;
            let ended = Instant::now();
            inside += f64::from(batch) * self.share(begun, ended);
            all += u64::from(batch);
            if ended >= self.until {
                return Ok((inside, all));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_batch_at_the_edge_a_part_counts() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let window = Window {
            from: at(100),
            until: at(200),
        };
        for (begun, ended, share) in [
            (120, 140, 1.0),
            (80, 120, 0.5),
            (190, 230, 0.25),
            (50, 250, 0.5),
            (0, 100, 0.0),
            (200, 300, 0.0),
        ] {
            let told = window.share(at(begun), at(ended));
            assert!((told - share).abs() < 1e-9, "{begun} {ended}: {told}");
        }
    }
}
