//! Rows that the database refuses among many good ones: does every client get its own outcome, and
//! what does it cost?

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;

use super::load::latencies;
use super::outcomes;
use crate::figures::{LIMIT, Run};
use crate::http::closed::{self, Closed, Until};
use crate::http::job::{ROWS, id_of};
use crate::http::{Job, Live, Outcome, Report};
use crate::limit;
use crate::reading::Reading;
use crate::say;
use crate::servers::{self, Kind, Store, Table};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Poison {
    /// The database.
    #[arg(long, value_enum, default_value = "postgres")]
    pub to: Kind,
    /// Clients, each with one request under way.
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 8)]
    pub seconds: u64,
    /// Alternating repetitions.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
}

/// The flaw of a bad row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    Duplicate,
    Check,
    Type,
}

/// Every so many rows have a flaw.
#[derive(Clone, Copy, Debug)]
struct Mix {
    arm: &'static str,
    flaw: Flaw,
    every: u64,
}

const CLEAN: &str = "clean";

const MIXES: [Mix; 5] = [
    Mix {
        arm: CLEAN,
        flaw: Flaw::Duplicate,
        every: u64::MAX,
    },
    Mix {
        arm: "1 % duplicate keys",
        flaw: Flaw::Duplicate,
        every: 100,
    },
    Mix {
        arm: "1 % check violations",
        flaw: Flaw::Check,
        every: 100,
    },
    Mix {
        arm: "1 % of a wrong type",
        flaw: Flaw::Type,
        every: 100,
    },
    Mix {
        arm: "1 check violation in 1,000",
        flaw: Flaw::Check,
        every: 1000,
    },
];

/// The row that duplicates collide with.
const THERE: u64 = 1;

impl Poison {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// A program cannot be started, or a client gets an outcome that is not true.
    pub fn run(&self, root: &Path) -> Result<()> {
        let to = self.to.as_str();
        let mut run = Run::new(
            format!("poison-{to}"),
            format!("Bad rows among good ones into {to}"),
        );
        let store = Store::start(self.to)?;
        store.tell_version(&mut run)?;
        for round in 1..=self.rounds {
            for mix in MIXES {
                self.measure(&store, &mut run, round, mix)?;
            }
        }
        let clean = run.median(CLEAN, "rows/s")?;
        for mix in MIXES.iter().filter(|mix| mix.arm != CLEAN) {
            let share = run.median(mix.arm, "rows/s")? / clean;
            run.remark(format!("{}: {share:.2} of the clean rate", mix.arm));
        }
        run.remark("every good row was confirmed and is there; every bad one got its own error");
        run.store(root)?;
        Ok(())
    }

    fn measure(&self, store: &Store, run: &mut Run, round: u32, mix: Mix) -> Result<()> {
        let table = store.table()?;
        prepare(&table)?;
        let windrow = servers::windrow(&table.url(), &[])?;
        let job = Arc::new(Poisoned {
            mix,
            wrong: AtomicU64::new(0),
        });
        let time = Duration::from_secs(self.seconds);
        let load = Closed {
            connections: self.connections,
            until: Until::Elapsed(time),
        };
        let dynamic: Arc<dyn Job> = Arc::clone(&job) as _;
        let report = say::during(mix.arm, time, || {
            closed::run(
                windrow.address(),
                &load,
                &dynamic,
                &Arc::new(Live::default()),
            )
        })?;
        let mut metrics = latencies(&report);
        metrics.push((LIMIT, limit::of_http(self.connections)?));
        run.add_all(round, mix.arm, &metrics);
        job.check(&report)?;
        outcomes::all_there(report.successes() + 1, table.count()?)?;
        Ok(())
    }
}

/// A check constraint, on SQLite strict types, and the row that duplicates collide with.
fn prepare(table: &Table) -> Result<()> {
    let columns = match table {
        Table::Postgres(_) => {
            "create table readings (id bigint primary key, device int not null, at timestamptz not null, \
             temperature double precision constraint warm check (temperature > -300), note text)"
        }
        Table::Sqlite(_) => {
            "create table readings (id integer primary key, device integer not null, at text not null, \
             temperature real constraint warm check (temperature > -300), note text) strict"
        }
        Table::MariaDb(_) => {
            "create table readings (id bigint primary key, device int not null, at datetime not null, \
             temperature double, note text, constraint warm check (temperature > -300))"
        }
        Table::CrateDb(_) => anyhow::bail!("bad rows are not measured on CrateDB"),
    };
    table.execute("drop table readings")?;
    table.execute(columns)?;
    table.execute(&format!(
        "insert into readings values ({THERE}, 0, '2026-01-01T00:00:00Z', 0, 'there already')"
    ))
}

struct Poisoned {
    mix: Mix,
    wrong: AtomicU64,
}

impl Poisoned {
    /// Clients are out of step, so that bad rows do not come all at once.
    fn is_bad(&self, connection: usize, n: u64) -> bool {
        let shifted = n + connection as u64 * 37;
        shifted % self.mix.every == self.mix.every - 1
    }

    /// Checks that every client got its own outcome.
    fn check(&self, report: &Report) -> Result<()> {
        let wrong = self.wrong.load(Ordering::Relaxed);
        anyhow::ensure!(
            wrong == 0,
            "{wrong} clients got another outcome than their own: {:?}\n{}",
            report.outcomes,
            report.samples.join("\n")
        );
        Ok(())
    }

    fn is_true(&self, bad: bool, outcome: Outcome, answer: &[u8]) -> bool {
        let says = |text: &str| memchr::memmem::find(answer, text.as_bytes()).is_some();
        match (bad, self.mix.flaw, outcome) {
            (false, _, outcome) => outcome == Outcome::Success,
            (true, Flaw::Duplicate, Outcome::Refused(409)) => says("\"23505\""),
            (true, Flaw::Check, Outcome::Refused(422)) => says("\"23514\"") && says("warm"),
            (true, Flaw::Type, Outcome::Refused(422)) => says("\"22"),
            _ => false,
        }
    }
}

impl Job for Poisoned {
    fn target(&self) -> &str {
        ROWS
    }

    fn body(&self, connection: usize, n: u64, out: &mut Vec<u8>) {
        let id = id_of(connection, n);
        if !self.is_bad(connection, n) {
            return Reading::new(id).json(out);
        }
        let (id, device, temperature) = match self.mix.flaw {
            Flaw::Duplicate => (THERE, "7", "1"),
            Flaw::Check => (id, "7", "-1000"),
            Flaw::Type => (id, r#""seven""#, "1"),
        };
        let text = format!(
            r#"{{"id":{id},"device":{device},"at":"2026-01-01T00:00:00Z","temperature":{temperature},"note":"bad"}}"#
        );
        out.extend_from_slice(text.as_bytes());
    }

    fn seen(&self, connection: usize, n: u64, outcome: Outcome, answer: &[u8]) {
        if !self.is_true(self.is_bad(connection, n), outcome, answer) {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_hundred_is_bad_and_only_its_own_error_is_true() {
        let job = Poisoned {
            mix: MIXES[2],
            wrong: AtomicU64::new(0),
        };
        assert_eq!((0..1000).filter(|n| job.is_bad(3, *n)).count(), 10);
        let own = br#"{"error":{"code":"23514","constraint":"warm"}}"#;
        let others = br#"{"error":{"code":"23505"}}"#;
        assert!(job.is_true(true, Outcome::Refused(422), own));
        assert!(!job.is_true(true, Outcome::Refused(422), others));
        assert!(!job.is_true(true, Outcome::Success, b""));
        assert!(!job.is_true(false, Outcome::Refused(422), own));
    }
}
