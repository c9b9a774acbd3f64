//! One body of many rows against the database's own bulk load of the same rows.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use tempfile::TempDir;

use crate::baseline::copy;
use crate::figures::Run;
use crate::http::stream;
use crate::number::as_f64;
use crate::reading::Reading;
use crate::say;
use crate::servers::{self, Kind, Store, Table};

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

struct Files {
    ndjson: PathBuf,
    csv: PathBuf,
    plain: PathBuf,
    _folder: TempDir,
}

const OWN: &str = "bulk load of the database";
const FORMS: [(&str, &str); 2] = [
    ("windrow, NDJSON", "application/x-ndjson"),
    ("windrow, CSV", "text/csv"),
];

impl Bulk {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, or a row is refused.
    pub fn run(&self, root: &Path) -> Result<()> {
        let to = self.to.as_str();
        let mut run = Run::new(
            format!("bulk-{to}"),
            format!("One body of {} rows into {to}", self.rows),
        );
        let store = Store::start(self.to)?;
        store.tell_version(&mut run)?;
        let files = Files::write(self.rows)?;
        for round in 1..=self.rounds {
            for (arm, content_type) in FORMS {
                let file = match content_type {
                    "text/csv" => &files.csv,
                    _ => &files.ndjson,
                };
                self.gateway(&store, &mut run, round, arm, file, content_type)?;
            }
            self.own(&store, &mut run, round, &files)?;
        }
        for (arm, _) in FORMS {
            let share = run.median(arm, "rows/s")? / run.median(OWN, "rows/s")?;
            run.remark(format!(
                "{arm}: {share:.2} of the rows per second of the {OWN}"
            ));
        }
        run.store(root)?;
        Ok(())
    }

    fn gateway(
        &self,
        store: &Store,
        run: &mut Run,
        round: u32,
        arm: &str,
        file: &Path,
        content_type: &str,
    ) -> Result<()> {
        let table = store.table()?;
        let extra: Vec<&str> = self.windrow.iter().map(String::as_str).collect();
        let windrow = servers::windrow(&table.url(), &extra)?;
        let before = store.cpu_time();
        let start = Instant::now();
        let reply = say::during(arm, Duration::from_secs(10), || {
            let body = File::open(file)?;
            let length = body.metadata()?.len();
            let target = "/v1/tables/readings/rows?results=none";
            stream::post(windrow.address(), target, content_type, Some(length), body)
        })?;
        let elapsed = start.elapsed();
        anyhow::ensure!(reply.status == 200, "{} {}", reply.status, reply.body);
        let mut metrics = self.metrics(&table, elapsed, before, store)?;
        metrics.push(("windrow CPU us/row", self.micros(windrow.cpu_time()?)));
        let peak = windrow_testkit::procfs::peak_resident_bytes(windrow.pid())?;
        metrics.push(("windrow peak RSS MiB", as_f64(peak) / 1_048_576.0));
        run.add_all(round, arm, &metrics);
        Ok(())
    }

    fn own(&self, store: &Store, run: &mut Run, round: u32, files: &Files) -> Result<()> {
        let table = store.table()?;
        let before = store.cpu_time();
        let elapsed = say::during(OWN, Duration::from_secs(5), || match &table {
            Table::Postgres(url) => copy::psql(url, &files.plain),
            Table::Sqlite(file) => copy::sqlite(file, self.rows),
            Table::MariaDb(_) | Table::CrateDb(_) => {
                anyhow::bail!("bulk loads are compared on PostgreSQL and SQLite only")
            }
        })?;
        run.add_all(round, OWN, &self.metrics(&table, elapsed, before, store)?);
        Ok(())
    }

    fn metrics(
        &self,
        table: &Table,
        elapsed: Duration,
        before: Option<Duration>,
        store: &Store,
    ) -> Result<Vec<(&'static str, f64)>> {
        let there = table.count()?;
        anyhow::ensure!(
            there == self.rows,
            "{there} rows are there, not {}",
            self.rows
        );
        let mut metrics = vec![
            ("rows/s", as_f64(self.rows) / elapsed.as_secs_f64()),
            ("seconds", elapsed.as_secs_f64()),
        ];
        if let (Some(before), Some(after)) = (before, store.cpu_time()) {
            metrics.push(("database CPU us/row", self.micros(after - before)));
        }
        Ok(metrics)
    }

    fn micros(&self, time: Duration) -> f64 {
        time.as_secs_f64() * 1e6 / as_f64(self.rows)
    }
}

impl Files {
    /// The same rows in all forms: NDJSON, CSV with a header for Windrow, and without one for
    /// `\copy`.
    fn write(rows: u64) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name);
        let mut csv = BufWriter::new(File::create(path("rows.csv"))?);
        let mut plain = BufWriter::new(File::create(path("plain.csv"))?);
        let mut ndjson = BufWriter::new(File::create(path("rows.ndjson"))?);
        csv.write_all(b"id,device,at,temperature,note\n")?;
        let mut line = Vec::new();
        for row in (0..rows).map(Reading::new) {
            line.clear();
            row.csv(&mut line);
            csv.write_all(&line)?;
            plain.write_all(&line)?;
            line.clear();
            row.json(&mut line);
            line.push(b'\n');
            ndjson.write_all(&line)?;
        }
        for file in [&mut csv, &mut plain, &mut ndjson] {
            file.flush()?;
        }
        Ok(Self {
            ndjson: path("rows.ndjson"),
            csv: path("rows.csv"),
            plain: path("plain.csv"),
            _folder: folder,
        })
    }
}
