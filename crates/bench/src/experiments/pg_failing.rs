//! Writes that the database refuses among many good ones, over PostgreSQL's protocol: direct and
//! through Windrow, by the same generator.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Result;

use crate::figures::Run;
use crate::figures::plot::{self, Names, Series};
use crate::http::job::id_of;
use crate::http::report::as_f64;
use crate::pg::closed::Clients;
use crate::pg::{Job, Told, Values};
use crate::reading::Reading;
use crate::say;
use crate::servers::pg::{Database, Way};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct PgFailing {
    /// Clients, each with one write under way.
    #[arg(long, default_value_t = 64)]
    pub clients: usize,
    /// Writes in a thousand that fail.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100])]
    pub per_mille: Vec<u64>,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Alternating repetitions.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// More arguments for `windrow serve`, behind `--`.
    #[arg(last = true)]
    pub windrow: Vec<String>,
}

/// What is wrong with a bad row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flaw {
    Duplicate,
    Check,
}

/// Which rows are bad.
#[derive(Clone, Copy, Debug)]
struct Mix {
    flaw: Flaw,
    per_mille: u64,
}

const WAYS: [Way; 2] = [Way::Direct, Way::Windrow];

/// The row that duplicates collide with.
const THERE: u64 = 1;

const RATE: &str = "calls/s";

impl Mix {
    fn arm(self, way: Way) -> String {
        let way = way.as_str();
        let percent = as_f64(self.per_mille) / 10.0;
        match (self.per_mille, self.flaw) {
            (0, _) => format!("{way} clean"),
            (_, Flaw::Duplicate) => format!("{way} {percent} % duplicate keys"),
            (_, Flaw::Check) => format!("{way} {percent} % check violations"),
        }
    }
}

impl PgFailing {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, or a client is told what is not true.
    pub fn run(&self, root: &Path) -> Result<()> {
        let title = format!("Failing writes among good ones, {} clients", self.clients);
        let mut run = Run::new("pg-failing", title);
        let database = Database::start(Duration::ZERO)?;
        database.tell_versions(&mut run, &WAYS)?;
        for round in 1..=self.rounds {
            for mix in self.mixes() {
                for way in WAYS {
                    self.measure(&database, &mut run, round, way, mix)?;
                }
            }
        }
        self.conclude(&mut run)?;
        run.store(root)?;
        Ok(())
    }

    fn mixes(&self) -> Vec<Mix> {
        let clean = Mix {
            flaw: Flaw::Duplicate,
            per_mille: 0,
        };
        let flawed = [Flaw::Duplicate, Flaw::Check].into_iter().flat_map(|flaw| {
            let each = self.per_mille.iter();
            each.map(move |n| Mix {
                flaw,
                per_mille: *n,
            })
        });
        [clean].into_iter().chain(flawed).collect()
    }

    fn measure(
        &self,
        database: &Database,
        run: &mut Run,
        round: u32,
        way: Way,
        mix: Mix,
    ) -> Result<()> {
        let gate = database.open(way, &self.windrow)?;
        gate.exec("alter table readings add constraint warm check (temperature > -300)")?;
        gate.exec(&format!(
            "insert into readings values ({THERE}, 0, '2026-01-01T00:00:00Z', 0, 'there already')"
        ))?;
        let job = Arc::new(Flawed::new(mix));
        let dynamic: Arc<dyn Job> = Arc::clone(&job) as _;
        let mut clients = Clients::open(gate.address(), self.clients)?;
        clients.prepare(self.clients, &*dynamic)?;
        job.first.store(0, Ordering::Relaxed);
        let warm = clients.run(self.clients, Duration::from_secs(1), &dynamic)?;
        job.first.store(50_000_000, Ordering::Relaxed);
        let time = Duration::from_secs(self.seconds);
        let before = database.server().cpu_time();
        let name = mix.arm(way);
        let report = say::during(&name, time, || clients.run(self.clients, time, &dynamic))?;
        let cpu = (database.server().cpu_time() - before).as_secs_f64() * 1e6;
        let mut metrics = report.metrics();
        metrics.push(("database CPU us/call", cpu / as_f64(report.calls().max(1))));
        run.add_all(round, &name, &metrics);
        let wrong = job.wrong.load(Ordering::Relaxed);
        anyhow::ensure!(
            wrong == 0,
            "{wrong} clients were told something else than their own outcome: {:?}",
            report.told
        );
        let (told, there) = (warm.successes() + report.successes() + 1, gate.count()?);
        anyhow::ensure!(
            told == there,
            "{told} rows were confirmed, {there} are there"
        );
        Ok(())
    }

    fn conclude(&self, run: &mut Run) -> Result<()> {
        let mut points = WAYS.map(|_| Vec::new());
        for mix in self.mixes() {
            let [direct, windrow] = WAYS.map(|way| run.median(&mix.arm(way), RATE));
            let (direct, windrow) = (direct?, windrow?);
            run.remark(format!(
                "{}: {:.2} times the direct rate",
                mix.arm(Way::Windrow),
                windrow / direct
            ));
            if mix.flaw == Flaw::Duplicate {
                let x = as_f64(mix.per_mille) / 10.0;
                for (points, rate) in points.iter_mut().zip([direct, windrow]) {
                    points.push((x, rate));
                }
            }
        }
        run.remark(
            "every good row was confirmed and is there; every bad one was told its own error",
        );
        let names = Names {
            title: "Duplicate keys among good rows",
            x: "% of all writes",
            y: "answers a second",
        };
        let series: Vec<Series> = WAYS
            .into_iter()
            .zip(points)
            .map(|(way, points)| Series {
                name: way.as_str().into(),
                points,
            })
            .collect();
        let svg = plot::lines(names, &series)?;
        run.file("duplicates.svg", svg);
        Ok(())
    }
}

struct Flawed {
    mix: Mix,
    first: AtomicU64,
    wrong: AtomicU64,
}

impl Flawed {
    fn new(mix: Mix) -> Self {
        Self {
            mix,
            first: AtomicU64::new(0),
            wrong: AtomicU64::new(0),
        }
    }

    /// Clients are out of step, so that bad rows do not come all at once.
    fn is_bad(&self, connection: usize, n: u64) -> bool {
        let shifted = n + connection as u64 * 37;
        match self.mix.per_mille {
            0 => false,
            share => shifted.is_multiple_of((1000 / share).max(1)),
        }
    }
}

impl Job for Flawed {
    fn values(&self, connection: usize, n: u64, out: &mut Values<'_>) {
        let id = id_of(connection, self.first.load(Ordering::Relaxed) + n);
        if !self.is_bad(connection, n) {
            return out.reading(Reading::new(id));
        }
        let (id, temperature) = match self.mix.flaw {
            Flaw::Duplicate => (THERE, "1"),
            Flaw::Check => (id, "-1000"),
        };
        out.add(id);
        out.add(7);
        out.add("2026-01-01T00:00:00Z");
        out.add(temperature);
        out.add("bad");
    }

    fn told(&self, connection: usize, n: u64, told: Told) {
        let expected = match (self.is_bad(connection, n), self.mix.flaw) {
            (false, _) => Told::Success,
            (true, Flaw::Duplicate) => Told::Error(*b"23505"),
            (true, Flaw::Check) => Told::Error(*b"23514"),
        };
        if told != expected {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_a_hundred_is_bad_and_only_its_own_error_is_true() {
        let job = Flawed::new(Mix {
            flaw: Flaw::Check,
            per_mille: 10,
        });
        let bad: Vec<u64> = (0..1000).filter(|n| job.is_bad(3, *n)).collect();
        assert_eq!(bad.len(), 10);
        job.told(3, bad[0], Told::Error(*b"23514"));
        job.told(3, bad[0] + 1, Told::Success);
        assert_eq!(job.wrong.load(Ordering::Relaxed), 0);
        job.told(3, bad[0], Told::Error(*b"23505"));
        assert_eq!(job.wrong.load(Ordering::Relaxed), 1);
    }
}
