//! Documents in batches of HTTP requests, against one request for each: what a batch saves, by its
//! size, the size of a document and the number of clients.

mod job;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use self::job::{Api, Documents};
use crate::experiments::measure::{Bed, Measured, Offer};
use crate::experiments::outcomes;
use crate::figures::plot::{self, Curve, Mark, Names, Scale};
use crate::figures::{Metrics, Run, in_turn};
use crate::generator::{Outcome, Until};
use crate::number::as_f64;
use crate::servers::{Kind, Store};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct BatchApi {
    /// The database.
    #[arg(long, value_enum, default_value = "sqlite")]
    pub to: Kind,
    /// Documents whose time is reported. A measurement ends before all of them are written if its
    /// own time is over; the time of all then follows from its rate.
    #[arg(long, default_value_t = 500_000)]
    pub documents: u32,
    /// Attributes of a document, beside its key.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100])]
    pub attributes: Vec<u32>,
    /// Operations of a batch. Beside them all is measured without a batch.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16, 32, 64, 128])]
    pub batches: Vec<u32>,
    /// Clients, each with one request under way.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8, 16])]
    pub concurrency: Vec<u32>,
    /// Milliseconds of each measurement at most.
    #[arg(long, default_value_t = 500)]
    pub cell_ms: u64,
    /// Milliseconds before each measurement, in which the same is done.
    #[arg(long, default_value_t = 150)]
    pub warm_up_ms: u64,
    /// Alternating repetitions: every second one goes from the last cell to the first.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
}

/// The same as [`LESS`], in the form that a plot shows best: a loss may be a multiple.
const SHARE: &str = "time, % of that without a batch";

const LESS: &str = "% less time than without a batch";

/// The least gain that others have published: operations in a batch without concurrency, and the
/// percentage of time that they save.
const PUBLISHED: (u32, f64) = (64, 80.0);

/// One measurement.
#[derive(Clone, Copy, Debug)]
struct Cell {
    api: Api,
    attributes: u32,
    batch: Option<u32>,
    connections: u32,
}

impl Cell {
    fn arm(self) -> String {
        let Self {
            api,
            attributes,
            connections,
            ..
        } = self;
        let batch = self
            .batch
            .map_or("no batch".to_owned(), |batch| format!("batch {batch}"));
        format!(
            "{}: {attributes} attr., {batch}, {connections} conn.",
            api.name()
        )
    }
}

impl BatchApi {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, or a document is refused.
    pub fn run(&self, root: &Path) -> Result<()> {
        ensure!(
            self.batches.iter().all(|batch| *batch > 0),
            "--batches: a batch has one operation at least"
        );
        let title = format!("Documents in batches of requests, {}", self.to.as_str());
        let mut run = Run::new(format!("batch-api-{}", self.to.as_str()), title);
        let store = Store::start(self.to)?;
        store.report_version(&mut run)?;
        run.rounds(self.rounds, &self.attributes, |run, round, attributes| {
            self.round(&store, run, (round, attributes))
        })?;
        self.conclude(&mut run)?;
        run.store(root)?;
        Ok(())
    }

    /// All measurements with documents of one size.
    fn round(&self, store: &Store, run: &mut Run, (round, attributes): (u32, u32)) -> Result<()> {
        let bed = bed(store, attributes)?;
        let cells = in_turn(round, &self.cells(attributes));
        let mut rates = Vec::with_capacity(cells.len());
        for cell in cells {
            let report = self.measure(&bed, cell).with_context(|| cell.arm())?.report;
            let rate = report.rate() * as_f64(Documents::of(cell, 0).rows());
            rates.push((cell, rate, report.latency_ms(50.0)));
        }
        for (cell, rate, p50) in &rates {
            let alone = rates.iter().find(|(other, ..)| {
                other.batch.is_none()
                    && (other.api, other.connections) == (cell.api, cell.connections)
            });
            let alone = alone.context("it was not measured without a batch")?.1;
            let share = cell.batch.map(|_| 100.0 * alone / rate);
            let seconds = format!("s for {} documents", self.documents);
            let metrics = Metrics::new()
                .with(seconds, f64::from(self.documents) / rate)
                .maybe(LESS, share.map(|share| 100.0 - share))
                .maybe(SHARE, share)
                .with("p50 of a request, ms", *p50);
            run.add_all(round, &cell.arm(), &metrics);
        }
        bed.table.remove("documents");
        Ok(())
    }

    fn cells(&self, attributes: u32) -> Vec<Cell> {
        let mut cells = Vec::new();
        for api in Api::ALL {
            for connections in &self.concurrency {
                let batches = std::iter::once(None).chain(self.batches.iter().copied().map(Some));
                cells.extend(batches.map(|batch| Cell {
                    api,
                    attributes,
                    batch,
                    connections: *connections,
                }));
            }
        }
        cells
    }

    fn measure(&self, bed: &Bed, cell: Cell) -> Result<Measured> {
        bed.table.empty("documents")?;
        let rows = Documents::of(cell, 0).rows();
        let each = rows * u64::from(cell.connections);
        let offer = Offer {
            warm_up: Duration::from_millis(self.warm_up_ms),
            until: Until {
                // Requests of each connection at most.
                calls: u64::from(self.documents).div_ceil(each.max(1)),
                ..Until::after(Duration::from_millis(self.cell_ms))
            },
            ..Offer::closed(&cell.arm(), cell.connections as usize, Duration::ZERO)
        };
        let job = |first| Arc::new(Documents::of(cell, first)) as _;
        let measured = offer.measure(&bed.target(), |meter| meter, job)?;
        measured.report.all(Outcome::Success)?;
        let there = bed.table.count_of("documents")?;
        outcomes::all_there(measured.written() * rows, there)?;
        Ok(measured)
    }

    fn conclude(&self, run: &mut Run) -> Result<()> {
        let (batch, least) = PUBLISHED;
        let without = self.concurrency.contains(&1);
        for (api, attributes) in self.documents_by_api() {
            let cell = |batch| Cell {
                api,
                attributes,
                batch: Some(batch),
                connections: 1,
            };
            if without && self.batches.contains(&batch) {
                let less = run.median(&cell(batch).arm(), LESS)?;
                run.published(&cell(batch).arm(), LESS, least);
                run.remark(format!(
                    "{}, {attributes} attributes, without concurrency: {less:.0} % less time at {batch} operations a batch (published: more than {least:.0} %)",
                    api.name()
                ));
            }
            if without && self.batches.contains(&1) {
                let less = run.median(&cell(1).arm(), LESS)?;
                run.remark(format!(
                    "{}, {attributes} attributes, without concurrency: a batch of one takes {:.0} % {} time than none (published: a loss)",
                    api.name(),
                    less.abs(),
                    if less < 0.0 { "more" } else { "less" }
                ));
            }
        }
        self.plot(run)
    }

    fn documents_by_api(&self) -> Vec<(Api, u32)> {
        let all = Api::ALL
            .iter()
            .flat_map(|api| self.attributes.iter().map(|attributes| (*api, *attributes)));
        all.collect()
    }

    /// One plot for each number of clients.
    fn plot(&self, run: &mut Run) -> Result<()> {
        for connections in &self.concurrency {
            let curves: Vec<Curve> = self
                .documents_by_api()
                .into_iter()
                .map(|(api, attributes)| {
                    let arm = |batch: u32| {
                        Cell {
                            api,
                            attributes,
                            batch: Some(batch),
                            connections: *connections,
                        }
                        .arm()
                    };
                    let arms: Vec<_> = self
                        .batches
                        .iter()
                        .map(|batch| (f64::from(*batch), arm(*batch)))
                        .collect();
                    run.curve(
                        &format!("{}, {attributes} attributes", api.name()),
                        SHARE,
                        &arms,
                    )
                })
                .collect();
            let (batch, most) = (PUBLISHED.0, 100.0 - PUBLISHED.1);
            let published = Mark {
                name: format!("published: below {most:.0} % at {batch}"),
                x: f64::from(batch),
                y: most,
            };
            let marks: Vec<_> = (*connections == 1)
                .then_some(published)
                .into_iter()
                .collect();
            let title = format!("Time by size of a batch, concurrency {connections}");
            let names = Names {
                title: &title,
                x: "operations of a batch",
                y: SHARE,
            };
            let svg = plot::curves(names, Scale::Log, &curves, &marks)?;
            run.file(&format!("concurrency-{connections:02}.svg"), svg);
        }
        Ok(())
    }
}

impl Documents {
    fn of(cell: Cell, first: u64) -> Self {
        Self {
            api: cell.api,
            attributes: cell.attributes,
            batch: cell.batch,
            first,
        }
    }
}

/// Starts Windrow before an empty table of documents.
fn bed(store: &Store, attributes: u32) -> Result<Bed> {
    let quote = match store {
        Store::MariaDb(_) => '`',
        _ => '"',
    };
    let columns: Vec<_> = (0..attributes)
        .map(|n| format!("a{n} varchar(32)"))
        .collect();
    let table = store.database(&format!(
        "create table documents ({quote}_key{quote} varchar(64) primary key, {})",
        columns.join(", ")
    ))?;
    Bed::before(table, &[])
}
