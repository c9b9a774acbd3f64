//! The forms in which rows can be written, by the size of a batch: the measurement behind the
//! thresholds by which Windrow chooses among them.

mod form;
mod writer;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use windrow_testkit::procfs;

use self::form::Form;
use self::writer::FormWriter;
use crate::experiments::outcomes;
use crate::figures::plot::{self, Names, Scale};
use crate::figures::{Meter, Metrics, Run, in_turn};
use crate::number::as_f64;
use crate::servers::{Kind, Store};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Forms {
    /// The database.
    #[arg(long, value_enum, default_value = "postgres")]
    pub to: Kind,
    /// Rows of a batch.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 6, 8, 16, 64, 256, 1_000, 4_000, 10_000])]
    pub sizes: Vec<u32>,
    /// Milliseconds of each measurement, longer where one batch takes longer.
    #[arg(long, default_value_t = 1_000)]
    pub cell_ms: u64,
    /// Milliseconds before each measurement, in which the same is done.
    #[arg(long, default_value_t = 200)]
    pub warm_up_ms: u64,
    /// Alternating repetitions: every second one goes from the last form to the first.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
}

const RATE: &str = "rows/s";
const CPU: &str = "database CPU us/row";

/// From so many writes of a shape on, Windrow writes to PostgreSQL by one statement over arrays
/// (`FUSE_FROM` of its sink).
const FUSE_FROM: u32 = 6;

/// From so many on, it writes to MariaDB by one statement with several rows (`SET_FROM`), which
/// has at most so many placeholders (`MOST_PLACEHOLDERS`).
const SET_FROM: u32 = 2;
const SET_PLACEHOLDERS: u32 = 8_192;

/// Rows of a portion of `windrow load`, which goes by COPY or LOAD DATA (`PORTION_ROWS`).
const PORTION_ROWS: u32 = 10_000;

impl Forms {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// The database cannot be started or refuses a row.
    pub fn run(&self, root: &Path) -> Result<()> {
        ensure!(
            self.sizes.iter().all(|size| *size > 0),
            "--sizes: a batch has one row at least"
        );
        let title = format!(
            "Forms of writing rows, one connection, {}",
            self.to.as_str()
        );
        let mut run = Run::new(format!("forms-{}", self.to.as_str()), title);
        let store = Store::start(self.to)?;
        store.report_version(&mut run)?;
        for round in 1..=self.rounds {
            self.round(&store, &mut run, round)?;
        }
        self.conclude(&mut run)?;
        run.store(root)?;
        Ok(())
    }

    fn round(&self, store: &Store, run: &mut Run, round: u32) -> Result<()> {
        let table = store.table()?;
        let mut writer = FormWriter::connect(&table)?;
        let mut cells: Vec<(Form, u32)> = Vec::new();
        for form in Form::ALL.iter().filter(|form| form.is_of(self.to)) {
            match form {
                Form::Single => cells.push((*form, 1)),
                form => cells.extend(self.sizes.iter().map(|size| (*form, *size))),
            }
        }
        for (form, rows) in in_turn(round, &cells) {
            table.empty("readings")?;
            store.settle()?;
            if writer.takes(form, rows) {
                let cell = self.measure(store, &mut writer, form, rows);
                let (metrics, written) = cell.with_context(|| form.arm(rows))?;
                run.add_all(round, &form.arm(rows), &metrics);
                outcomes::all_there(written, table.count()?)?;
            }
        }
        Ok(())
    }

    /// The figures of one form with one size, and how many rows there are by then.
    fn measure(
        &self,
        store: &Store,
        writer: &mut FormWriter,
        form: Form,
        rows: u32,
    ) -> Result<(Metrics, u64)> {
        let warm_up = Duration::from_millis(self.warm_up_ms);
        let (warm, _) = fill(writer, form, (0, rows), warm_up)?;
        // A library's CPU time is that of the thread which calls it.
        let meter = Meter::new("row").of("database", || match store {
            Store::Sqlite(_) => procfs::thread_cpu_time().ok(),
            store => store.cpu_time(),
        });
        let time = Duration::from_millis(self.cell_ms);
        let (written, took) = fill(writer, form, (warm, rows), time)?;
        let rate = as_f64(written - warm) / took.as_secs_f64();
        let metrics = Metrics::new().with(RATE, rate);
        Ok((metrics.and(meter.metrics(written - warm)), written))
    }

    fn conclude(&self, run: &mut Run) -> Result<()> {
        self.plot(run)?;
        match self.to {
            Kind::Postgres => {
                let fuse = (Form::Pipelined, Form::Unnest);
                self.threshold(
                    run,
                    fuse,
                    &format!(
                        "Windrow's sink takes {} from {FUSE_FROM} writes of a shape on",
                        Form::Unnest.name()
                    ),
                );
                let portion =
                    format!("`windrow load` takes COPY, in portions of up to {PORTION_ROWS} rows");
                self.threshold(run, (Form::Unnest, Form::Copy), &portion);
            }
            Kind::MariaDb => {
                let set = format!(
                    "Windrow's sink takes {} from {SET_FROM} writes of a shape on, with up to {SET_PLACEHOLDERS} placeholders, which is {} rows of these",
                    Form::Values.name(),
                    SET_PLACEHOLDERS as usize / writer::COLUMNS
                );
                self.threshold(run, (Form::Transaction, Form::Values), &set);
                let portion = format!(
                    "`windrow load` takes LOAD DATA LOCAL, in portions of up to {PORTION_ROWS} rows"
                );
                self.threshold(run, (Form::Values, Form::LoadData), &portion);
            }
            _ => {
                let none = "Windrow's sink has no threshold: it always takes prepared statements in a transaction";
                self.threshold(run, (Form::Transaction, Form::Values), none);
                run.remark("the CPU time is that of the thread that calls SQLite, with what the program itself needs");
            }
        }
        Ok(())
    }

    /// Says from which size on the second form is the better one, and what Windrow does.
    fn threshold(&self, run: &mut Run, (few, many): (Form, Form), done: &str) {
        let from = |metric: &str, is_better: fn(f64, f64) -> bool| {
            let sizes = self.sizes_of(run, (few, many), metric);
            match better_from(&sizes, is_better) {
                Some(size) => format!("from {size} rows on"),
                None => "not at the largest size".to_owned(),
            }
        };
        let (rate, cpu) = (
            from(RATE, |one, two| two > one),
            from(CPU, |one, two| two < one),
        );
        run.remark(format!(
            "{many} writes more rows a second than {few} {rate}, and costs the database less CPU a row {cpu}; {done}",
            many = many.name(),
            few = few.name(),
        ));
    }

    /// The sizes at which both forms were measured, with both medians, from the smallest on.
    fn sizes_of(&self, run: &Run, (few, many): (Form, Form), metric: &str) -> Vec<(u32, f64, f64)> {
        let mut sizes = self.sizes.clone();
        sizes.sort_unstable();
        let both = sizes.iter().filter_map(|size| {
            let one = run.median(&few.arm(*size), metric).ok()?;
            Some((*size, one, run.median(&many.arm(*size), metric).ok()?))
        });
        both.collect()
    }

    fn plot(&self, run: &mut Run) -> Result<()> {
        let mut sizes = self.sizes.clone();
        sizes.sort_unstable();
        for (file, metric, title) in [
            ("rate.svg", RATE, "Rows a second by form"),
            ("cpu.svg", CPU, "The database's CPU time a row by form"),
        ] {
            let curves: Vec<_> = Form::ALL
                .iter()
                .map(|form| {
                    // A single row is what it is, whatever others gather.
                    let rows = |size| if *form == Form::Single { 1 } else { size };
                    let arms: Vec<_> = sizes
                        .iter()
                        .map(|size| (f64::from(*size), form.arm(rows(*size))))
                        .collect();
                    run.curve(form.name(), metric, &arms)
                })
                .filter(|curve| !curve.points.is_empty())
                .collect();
            // Ticks of the CPU clock are ten milliseconds: a short cell can have none.
            let has_none = curves
                .iter()
                .flat_map(|c| &c.points)
                .any(|point| point.low <= 0.0);
            let scale = if has_none { Scale::Linear } else { Scale::Log };
            let names = Names {
                title,
                x: "rows of a batch",
                y: metric,
            };
            run.file(file, plot::curves(names, scale, &curves, &[])?);
        }
        Ok(())
    }
}

/// The smallest size from which on the second is always better.
fn better_from(sizes: &[(u32, f64, f64)], is_better: fn(f64, f64) -> bool) -> Option<u32> {
    let worse = sizes
        .iter()
        .rposition(|(_, one, two)| !is_better(*one, *two));
    sizes
        .get(worse.map_or(0, |at| at + 1))
        .map(|(size, ..)| *size)
}

/// Writes batches for a time, one at least. Gives back the number of the row behind the last, and
/// how long it took.
fn fill(
    writer: &mut FormWriter,
    form: Form,
    (first, rows): (u64, u32),
    time: Duration,
) -> Result<(u64, Duration)> {
    let (start, mut next) = (Instant::now(), first);
    loop {
        writer.write(form, next, rows)?;
        next += u64::from(rows);
        if start.elapsed() >= time {
            return Ok((next, start.elapsed()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_for_good_counts() {
        let more = |one: f64, two: f64| two > one;
        let sizes = [
            (1, 9.0, 5.0),
            (2, 9.0, 10.0),
            (4, 9.0, 8.0),
            (6, 9.0, 12.0),
            (8, 9.0, 20.0),
        ];
        assert_eq!(better_from(&sizes, more), Some(6));
        assert_eq!(better_from(&sizes[..3], more), None);
        assert_eq!(better_from(&sizes[3..], more), Some(6));
        assert_eq!(better_from(&[], more), None);
    }

    /// Checks that the documentation of the sinks agrees with them.
    #[test]
    fn the_thresholds_are_those_of_the_sinks() {
        for (source, line) in [
            (
                include_str!("../../../../databases/postgres/src/executor/batch.rs"),
                format!("const FUSE_FROM: usize = {FUSE_FROM};"),
            ),
            (
                include_str!("../../../../databases/mysql/src/executor/settle.rs"),
                format!("const SET_FROM: usize = {SET_FROM};"),
            ),
            (
                include_str!("../../../../databases/mysql/src/executor/send/many.rs"),
                format!("const MAX_PLACEHOLDERS: usize = {SET_PLACEHOLDERS};"),
            ),
            (
                include_str!("../../../../load/src/file.rs"),
                "const PORTION_ROWS: usize = 10_000;".to_owned(),
            ),
        ] {
            assert!(source.contains(&line), "{line}");
        }
    }
}
