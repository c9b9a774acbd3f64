//! Rows of a pending table into a final one: the three ways that are usual, and `windrow move`.
//!
//! The usual ways read ten rows at a time, in the order of the key, on one connection with prepared
//! statements, and then:
//! 1. insert each row and delete it, each statement its own commit;
//! 2. the same, ten rows in one transaction;
//! 3. one INSERT of ten rows and one DELETE of ten keys, in one transaction.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::baseline::mover::{self, Way};
use crate::figures::Run;
use crate::http::report::as_f64;
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
    /// Alternating repetitions.
    #[arg(long, default_value_t = 5)]
    pub rounds: u32,
}

const OWN: &str = "windrow move";

/// The ways, and the run times that were published for them, in percent of the first: PostgreSQL,
/// MariaDB.
const WAYS: [(Way, &str, [f64; 2]); 3] = [
    (
        Way::Single,
        "row by row, each statement a commit",
        [100.0, 100.0],
    ),
    (Way::Grouped, "ten rows in one transaction", [11.2, 7.5]),
    (Way::Joined, "ten rows in one statement", [7.0, 6.2]),
];

impl Moves {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, or a row is lost.
    pub fn run(&self, root: &Path) -> Result<()> {
        let to = self.to.as_str();
        let mut run = Run::new(
            format!("move-{to}"),
            format!(
                "{} rows of a pending table into a final one, on {to}",
                self.rows
            ),
        );
        let store = Store::start(self.to)?;
        store.tell_version(&mut run)?;
        for round in 1..=self.rounds {
            for (way, arm, _) in WAYS {
                self.arm(&store, &mut run, round, arm, |url| mover::run(url, way))?;
            }
            self.arm(&store, &mut run, round, OWN, own)?;
        }
        let first = run.median(WAYS.map(|(_, arm, _)| arm)[0], "seconds")?;
        for (_, arm, published) in WAYS {
            let share = 100.0 * run.median(arm, "seconds")? / first;
            let [postgres, mariadb] = published;
            let published = if self.to == Kind::Postgres {
                postgres
            } else {
                mariadb
            };
            run.remark(format!(
                "{arm}: {share:.1} % of the first one's time (published: {published} %)"
            ));
        }
        let share = 100.0 * run.median(OWN, "seconds")? / first;
        run.remark(format!(
            "{OWN}, from the start of the program to its end: {share:.2} % of the first one's time"
        ));
        run.store(root)?;
        Ok(())
    }

    fn arm(
        &self,
        store: &Store,
        run: &mut Run,
        round: u32,
        arm: &str,
        work: impl FnOnce(&str) -> Result<()>,
    ) -> Result<()> {
        let url = match store.table()? {
            Table::Postgres(url) | Table::MariaDb(url) => url,
            Table::Sqlite(_) | Table::CrateDb(_) => {
                anyhow::bail!("moves are compared on PostgreSQL and MariaDB only")
            }
        };
        mover::fill(&url, self.rows)?;
        let before = store.cpu_time();
        // The progress bar ends a moment later than the work.
        let elapsed = say::during(arm, Duration::from_secs(10), || {
            let start = Instant::now();
            work(&url)?;
            anyhow::Ok(start.elapsed().as_secs_f64())
        })?;
        let (pending, arrived) = mover::count(&url)?;
        anyhow::ensure!(
            pending == 0 && arrived == self.rows,
            "{arm}: {pending} rows are left and {arrived} have arrived"
        );
        let mut metrics = vec![
            ("seconds", elapsed),
            ("rows/s", as_f64(self.rows) / elapsed),
        ];
        if let (Some(before), Some(after)) = (before, store.cpu_time()) {
            let micros = (after - before).as_secs_f64() * 1e6 / as_f64(self.rows);
            metrics.push(("database CPU us/row", micros));
        }
        run.add_all(round, arm, &metrics);
        Ok(())
    }
}

fn own(url: &str) -> Result<()> {
    let output = Command::new(windrow_testkit::process::binary()?)
        .args(["move", "--from", url, "--source", "pending"])
        .args(["--destination", "final", "--progress", "none"])
        .stdin(Stdio::null())
        .output()
        .context("windrow")?;
    let said = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "windrow move: {said}");
    Ok(())
}
