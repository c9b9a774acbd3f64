//! One body of many rows against the database's own bulk load of the same rows.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use tempfile::TempDir;
use windrow_testkit::procfs;

use super::files::{self, Input};
use super::measure::Bed;
use crate::figures::{Meter, Metrics, Run};
use crate::generator::stream;
use crate::number::as_f64;
use crate::reading::Reading;
use crate::say;
use crate::servers::{Kind, Store};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Bulk {
    /// The database.
    #[arg(long, value_enum, default_value = "postgres")]
    pub to: Kind,
    /// Rows in the body.
    #[arg(long, default_value_t = 1_000_000)]
    pub rows: u64,
    /// Alternating repetitions.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// More arguments for `windrow serve`, behind `--`.
    #[arg(last = true)]
    pub windrow: Vec<String>,
}

/// The same rows in both forms.
struct Bodies {
    ndjson: PathBuf,
    csv: Input,
    _folder: TempDir,
}

const OWN: &str = "bulk load of the database";
const NDJSON: &str = "windrow, NDJSON";
const CSV: &str = "windrow, CSV";

impl Bulk {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, or a row is refused.
    pub fn run(&self, root: &Path) -> Result<()> {
        let to = self.to.as_str();
        let title = format!("One body of {} rows into {to}", self.rows);
        let mut run = Run::new(format!("bulk-{to}"), title);
        let store = Store::start(self.to)?;
        store.report_version(&mut run)?;
        let bodies = Bodies::write(self.rows)?;
        run.rounds(self.rounds, &[NDJSON, CSV, OWN], |run, round, arm| {
            let metrics = match arm {
                OWN => self.own(&store, &bodies)?,
                _ => self.gateway(&store, arm, &bodies)?,
            };
            run.add_all(round, arm, &metrics);
            Ok(())
        })?;
        for arm in [NDJSON, CSV] {
            let share = run.median(arm, "rows/s")? / run.median(OWN, "rows/s")?;
            run.remark(format!(
                "{arm}: {share:.2} of the rows per second of the {OWN}"
            ));
        }
        run.store(root)?;
        Ok(())
    }

    fn gateway(&self, store: &Store, arm: &str, bodies: &Bodies) -> Result<Metrics> {
        let extra: Vec<&str> = self.windrow.iter().map(String::as_str).collect();
        let bed = Bed::start(store, &extra)?;
        let (file, kind) = match arm {
            CSV => (&bodies.csv.csv, "text/csv"),
            _ => (&bodies.ndjson, "application/x-ndjson"),
        };
        let meter = bed.meter(store)(Meter::new("row"));
        let start = Instant::now();
        let reply = say::during(arm, Duration::from_secs(10), || {
            let body = File::open(file)?;
            let length = body.metadata()?.len();
            let target = "POST /v1/tables/readings/rows?results=none";
            stream::send(bed.windrow.address(), target, kind, Some(length), body)
        })?;
        let elapsed = start.elapsed();
        reply.succeeded(200)?;
        let peak = procfs::peak_resident_bytes(bed.windrow.pid())?;
        let metrics = self.metrics(bed.table.count()?, elapsed, &meter)?;
        Ok(metrics.with_mib("windrow peak RSS MiB", peak))
    }

    fn own(&self, store: &Store, bodies: &Bodies) -> Result<Metrics> {
        let table = store.table()?;
        let meter = Meter::new("row").of("database", || store.cpu_time());
        let mut program = files::own(&table, &bodies.csv)?;
        let took = say::during(OWN, Duration::from_secs(5), || {
            files::run_child(&mut program)
        })?;
        ensure!(took.status == Some(0), "{OWN}: {}", took.stderr);
        self.metrics(table.count()?, took.time, &meter)
    }

    fn metrics(&self, there: u64, elapsed: Duration, meter: &Meter<'_>) -> Result<Metrics> {
        let rows = self.rows;
        ensure!(there == rows, "{there} rows are there, not {rows}");
        Ok(Metrics::new()
            .with("rows/s", as_f64(rows) / elapsed.as_secs_f64())
            .with("seconds", elapsed.as_secs_f64())
            .and(meter.metrics(rows)))
    }
}

impl Bodies {
    /// Writes the same rows as NDJSON, and as CSV with a header.
    fn write(rows: u64) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name);
        let mut csv = BufWriter::new(File::create(path("rows.csv"))?);
        let mut ndjson = BufWriter::new(File::create(path("rows.ndjson"))?);
        let header = "id,device,at,temperature,note";
        writeln!(csv, "{header}")?;
        let mut line = Vec::new();
        for row in (0..rows).map(Reading::new) {
            line.clear();
            row.csv(&mut line);
            csv.write_all(&line)?;
            line.clear();
            row.json(&mut line);
            line.push(b'\n');
            ndjson.write_all(&line)?;
        }
        csv.flush()?;
        ndjson.flush()?;
        Ok(Self {
            ndjson: path("rows.ndjson"),
            csv: Input::csv("readings", path("rows.csv"), header, rows),
            _folder: folder,
        })
    }
}
