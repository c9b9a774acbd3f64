//! Rows of a pending table into final ones: the three ways that are usual, and `windrow move`.
//!
//! The usual ways read ten rows at a time, in the order of the key, on one connection with prepared
//! statements, and then:
//! 1. insert each row and delete it, each statement its own commit;
//! 2. the same, ten rows in one transaction;
//! 3. one INSERT of ten rows (one for each table that they go to) and one DELETE of ten keys, in
//!    one transaction.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::baseline::mover::{self, Grouping, Layout};
use crate::figures::{Meter, Metrics, Run, in_turn};
use crate::number::as_f64;
use crate::say;
use crate::servers::{Kind, Store, Table};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Moves {
    /// The database.
    #[arg(long, value_enum, default_value = "postgres")]
    pub to: Kind,
    /// Rows in the pending table.
    #[arg(long, default_value_t = 20_000)]
    pub rows: u64,
    /// The ways that are measured.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Variant::One, Variant::Two, Variant::Three, Variant::Windrow])]
    pub variant: Vec<Variant>,
    /// Where the rows go.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Layout::One, Layout::Tenants])]
    pub layout: Vec<Layout>,
    /// Alternating repetitions: every second one goes from the last measurement to the first.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// Rows that each way moves once before anything counts.
    #[arg(long, default_value_t = 500)]
    pub warm_up_rows: u64,
    /// Only this step: makes the tables and fills the pending one, in the database of --url.
    #[arg(long, requires = "url")]
    pub prepare: bool,
    /// Only this step: moves the rows that are there, and says how long that took.
    #[arg(long, requires = "url")]
    pub run: bool,
    /// Only this step: removes the tables.
    #[arg(long, requires = "url")]
    pub clean_up: bool,
    /// The database of a single step, as postgres://.. or mysql://..
    #[arg(long, conflicts_with = "to")]
    pub url: Option<String>,
}

/// One way to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Variant {
    /// Row by row, each statement a commit.
    #[value(name = "1")]
    One,
    /// Ten rows in one transaction.
    #[value(name = "2")]
    Two,
    /// Ten rows in one statement.
    #[value(name = "3")]
    Three,
    /// `windrow move`.
    Windrow,
}

const SHARE: &str = "% of variant 1's time";

impl Variant {
    fn name(self) -> &'static str {
        match self {
            Self::One => "1: row by row, each statement a commit",
            Self::Two => "2: ten rows in one transaction",
            Self::Three => "3: ten rows in one statement",
            Self::Windrow => "windrow move",
        }
    }

    fn arm(self, layout: Layout) -> String {
        let to = match layout {
            Layout::One => "one table",
            Layout::Tenants => "a table for each tenant",
        };
        format!("{}, {to}", self.name())
    }

    /// The share of the first one's time that was published for it.
    fn published(self, kind: Kind) -> Option<f64> {
        match (self, kind) {
            (Self::One, _) => Some(100.0),
            (Self::Two, Kind::Postgres) => Some(11.2),
            (Self::Two, Kind::MariaDb) => Some(7.5),
            (Self::Three, Kind::Postgres) => Some(7.0),
            (Self::Three, Kind::MariaDb) => Some(6.2),
            _ => None,
        }
    }

    /// Moves all rows; gives the seconds that it took.
    fn run(self, table: &Table, layout: Layout) -> Result<f64> {
        let start = Instant::now();
        match self {
            Self::One => mover::run(table, layout, Grouping::Single)?,
            Self::Two => mover::run(table, layout, Grouping::Grouped)?,
            Self::Three => mover::run(table, layout, Grouping::Joined)?,
            Self::Windrow => own(&table.url, layout)?,
        }
        Ok(start.elapsed().as_secs_f64())
    }
}

impl Moves {
    /// Measures, prints and stores; or takes single steps, and stores nothing.
    ///
    /// # Errors
    /// Something that takes part cannot be started, or a row is lost.
    pub fn run(&self, root: &Path) -> Result<()> {
        if let Some(url) = &self.url {
            return self.steps(url);
        }
        let to = self.to.as_str();
        let title = format!(
            "{} rows of a pending table into final ones, on {to}",
            self.rows
        );
        let mut run = Run::new(format!("move-{to}"), title);
        let store = Store::start(self.to)?;
        store.report_version(&mut run)?;
        let mut cells: Vec<(Layout, Variant)> = Vec::new();
        for layout in &self.layout {
            cells.extend(self.variant.iter().map(|variant| (*layout, *variant)));
        }
        for (layout, variant) in &cells {
            let mut warm_up = Run::new("warm-up", "not kept");
            self.measure(
                &store,
                (&mut warm_up, 0),
                (*layout, *variant),
                self.warm_up_rows,
            )?;
        }
        for round in 1..=self.rounds {
            let mut seconds = Vec::new();
            for cell in in_turn(round, &cells) {
                let taken = self.measure(&store, (&mut run, round), cell, self.rows)?;
                seconds.push((cell, taken));
            }
            add_shares((&mut run, round), &seconds);
        }
        self.conclude(&mut run);
        run.store(root)?;
        Ok(())
    }

    /// Returns the ways that were asked for; all of them if none was.
    fn steps(&self, url: &str) -> Result<()> {
        let all = !(self.prepare || self.run || self.clean_up);
        let kind = match url.starts_with("postgres") {
            true => Kind::Postgres,
            false => Kind::MariaDb,
        };
        let table = Table::at(kind, url.to_owned());
        let layout = only(&self.layout).context("name one --layout: one or tenants")?;
        if self.prepare || all {
            mover::prepare(&table, layout, self.rows)?;
        }
        if self.run || all {
            let variant = only(&self.variant).context("name one --variant: 1, 2, 3 or windrow")?;
            let (rows, _) = mover::count(&table, layout)?;
            let seconds = variant.run(&table, layout)?;
            let (left, arrived) = mover::count(&table, layout)?;
            say::line(&format!(
                "{}: {rows} rows in {seconds:.3} s; {left} are left, {arrived} have arrived",
                variant.arm(layout)
            ));
        }
        if self.clean_up || all {
            mover::clean_up(&table, layout)?;
        }
        Ok(())
    }

    fn measure(
        &self,
        store: &Store,
        (run, round): (&mut Run, u32),
        (layout, variant): (Layout, Variant),
        rows: u64,
    ) -> Result<f64> {
        let table = store.table()?;
        ensure!(
            matches!(table.kind, Kind::Postgres | Kind::MariaDb),
            "moves are compared on PostgreSQL and MariaDB only"
        );
        mover::prepare(&table, layout, rows)?;
        let meter = Meter::new("row").of("database", || store.cpu_time());
        let arm = variant.arm(layout);
        // The progress bar ends a moment later than the work.
        let seconds = say::during(&arm, Duration::from_secs(10), || {
            variant.run(&table, layout)
        })?;
        let (pending, arrived) = mover::count(&table, layout)?;
        ensure!(
            pending == 0 && arrived == rows,
            "{arm}: {pending} rows are left and {arrived} have arrived"
        );
        let metrics = Metrics::new()
            .with("seconds", seconds)
            .with("rows/s", as_f64(rows) / seconds)
            .and(meter.metrics(rows));
        run.add_all(round, &arm, &metrics);
        mover::clean_up(&table, layout)?;
        Ok(seconds)
    }

    fn conclude(&self, run: &mut Run) {
        for layout in &self.layout {
            for variant in &self.variant {
                let arm = variant.arm(*layout);
                let published = variant
                    .published(self.to)
                    .filter(|_| *layout == Layout::One);
                if let Some(share) = published {
                    run.published(&arm, SHARE, share);
                }
                if let Ok(share) = run.median(&arm, SHARE) {
                    run.remark(format!("{arm}: {share:.2} % of variant 1's time"));
                }
            }
        }
        run.remark("windrow move is measured from the start of the program to its end");
    }
}

fn only<T: Copy>(list: &[T]) -> Option<T> {
    match list {
        [one] => Some(*one),
        _ => None,
    }
}

/// Each way's time as a share of the first one's, in the same round.
fn add_shares((run, round): (&mut Run, u32), seconds: &[((Layout, Variant), f64)]) {
    for ((layout, variant), taken) in seconds {
        let first = seconds
            .iter()
            .find(|(cell, _)| *cell == (*layout, Variant::One));
        if let Some((_, first)) = first {
            run.add(round, &variant.arm(*layout), SHARE, 100.0 * taken / first);
        }
    }
}

fn own(url: &str, layout: Layout) -> Result<()> {
    let output = Command::new(windrow_testkit::process::binary()?)
        .args(["move", "--from", url, "--source", "pending"])
        .args(["--destination", layout.destination(), "--progress", "none"])
        .stdin(Stdio::null())
        .output()
        .context("windrow")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "windrow move: {said}");
    Ok(())
}
