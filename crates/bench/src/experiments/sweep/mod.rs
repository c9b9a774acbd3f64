//! Rows by the size of a batch and the number of connections: where more of either brings nothing,
//! and the point that Windrow's pace finds by itself.

mod bend;
mod cells;
mod contest;
mod library;
mod rows;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use self::bend::{Cell, RATE, RELATIVE};
use self::cells::Field;
use self::contest::Contest;
use self::rows::Rows;
use crate::experiments::files::LINEITEM;
use crate::figures::plot::{self, Mark, Names, Scale};
use crate::figures::{Metrics, Run, in_turn};
use crate::servers::{Kind, Store, Table};

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
    /// Measurements in each round of Windrow, its point written directly and the best cell, one
    /// after the other.
    #[arg(long, default_value_t = 3)]
    pub turns: u32,
    /// Alternating repetitions: every second one goes from the last cell to the first.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
}

const BEND: &str = "rows of a batch at the bend";

/// Figures that others have published, of a CockroachDB of four nodes: relative throughput by batch
/// size.
const PUBLISHED: [(u32, f64); 2] = [(10, 2.0), (50, 7.0)];

/// The same of the bend: connections, and rows of a batch.
const PUBLISHED_BENDS: [(u32, f64); 2] = [(2, 100.0), (4, 50.0)];

/// A turn of the contest is so many cells long: large batches are few.
const CELLS: u32 = 2;

impl Sweep {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, or a row is refused.
    pub fn run(&self, root: &Path) -> Result<()> {
        ensure!(
            self.batches.contains(&1) && self.concurrency.contains(&2),
            "--batches needs 1 and --concurrency 2 among them: all else is reported as a multiple of that cell"
        );
        let is_whole = |numbers: &[u32]| numbers.iter().all(|n| *n > 0);
        ensure!(
            is_whole(&self.batches) && is_whole(&self.concurrency),
            "0 rows or connections write nothing"
        );
        let (store, table) = match &self.url {
            None => {
                let store = Store::start(self.to)?;
                let table = store.database(LINEITEM)?;
                (Some(store), table)
            }
            Some(url) => (None, at(url)?),
        };
        let name = table.kind.as_str();
        let mut run = Run::new(
            format!("sweep-{name}"),
            format!("lineitem by batch size and concurrency, {name}"),
        );
        match &store {
            Some(store) => store.report_version(&mut run)?,
            None => run.version("database", table.query("select version()")?),
        }
        let field = Field {
            table: &table,
            rows: &Arc::new(Rows::generate()?),
            warm_up: Duration::from_millis(self.warm_up_ms),
            store: store.as_ref(),
        };
        for round in 1..=self.rounds {
            self.round(&field, &mut run, round)?;
        }
        table.remove("lineitem");
        self.conclude(&mut run, table.kind)?;
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

    fn round(&self, field: &Field<'_>, run: &mut Run, round: u32) -> Result<()> {
        let order = in_turn(round, &self.cells());
        let time = Duration::from_millis(self.cell_ms);
        let mut cells = Vec::with_capacity(order.len());
        for (batch, connections) in order {
            let rate = field.cell((batch, connections), time);
            let rate = rate.with_context(|| arm(batch, connections))?;
            run.add_all(
                round,
                &arm(batch, connections),
                &Metrics::new().with(RATE, rate),
            );
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
        for cell in &cells {
            let arm = arm(cell.batch, cell.connections);
            run.add(round, &arm, RELATIVE, cell.rate / base);
        }
        for connections in &self.concurrency {
            if let Some(batch) = bend::bend(&cells, *connections) {
                run.add(round, &connected(*connections), BEND, f64::from(batch));
            }
        }
        let best = cells
            .into_iter()
            .max_by(|one, two| one.rate.total_cmp(&two.rate));
        let best = best.context("no cell was measured")?;
        self.contest().hold(field, best, base, (run, round))
    }

    fn contest(&self) -> Contest {
        Contest {
            streams: self.streams,
            find: Duration::from_millis(self.find_ms),
            time: Duration::from_millis(self.cell_ms) * CELLS,
            turns: self.turns,
        }
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
            plot::curves(names, Scale::Log, &curves, &marks)?,
        );
        Ok(())
    }
}

/// Makes the table in a database that runs already. One that is there is left alone, by an error.
fn at(url: &str) -> Result<Table> {
    let table = match url.split_once("://") {
        Some(("postgres" | "postgresql", _)) => Table::at(Kind::Postgres, url.to_owned()),
        Some(("mysql" | "mariadb", rest)) => Table::at(Kind::MariaDb, format!("mysql://{rest}")),
        _ => bail!(
            "--url names a database as postgres://.. (CockroachDB too) or mysql://.., not as {url}"
        ),
    };
    table.query(LINEITEM).context("making the table lineitem")?;
    Ok(table)
}

fn arm(batch: u32, connections: u32) -> String {
    format!("batch {batch}, concurrency {connections}")
}

fn connected(connections: u32) -> String {
    format!("concurrency {connections}")
}
