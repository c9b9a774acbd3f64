//! The most that PostgreSQL takes where it has one core to itself: a rate rises until a core is
//! full or answers are late, direct, through PgBouncer and through Windrow, over HTTP too.

mod load;
mod step;
mod verdict;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use windrow_testkit::pgbouncer::{self, Pooling};

pub use self::load::CapacityLoad;
use self::step::{DATABASE_CORE, OTHER_CORES, STRANGERS, Step};
use super::gateway::case;
use super::outcomes;
use crate::cores::Cores;
use crate::figures::plot::{self, Names, Scale};
use crate::figures::{Run, micros};
use crate::generator::transaction::TABLES;
use crate::generator::{Clients, Live, Outcome, Schedule, Until};
use crate::number::as_f64;
use crate::servers::gate::{self, Gate, Way, pooling_of_prepared};
use crate::servers::{Kind, Store};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Capacity {
    /// The calls of the clients.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [CapacityLoad::Single, CapacityLoad::Transaction, CapacityLoad::Order, CapacityLoad::Http])]
    pub loads: Vec<CapacityLoad>,
    /// The ways of clients to the database; PgBouncer only if it is installed.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Way::Direct, Way::PgBouncer, Way::Windrow])]
    pub ways: Vec<Way>,
    /// Clients, each with one call under way.
    #[arg(long, default_value_t = 64)]
    pub clients: usize,
    /// The first rate, in calls a second of all clients together.
    #[arg(long, default_value_t = 2_000.0)]
    pub from: f64,
    /// The factor from each rate to the next one.
    #[arg(long, default_value_t = 1.5)]
    pub growth: f64,
    /// The most rates.
    #[arg(long, default_value_t = 30)]
    pub steps: u32,
    /// Milliseconds of the 99th percentile from which on answers are late.
    #[arg(long, default_value_t = 50.0)]
    pub late_ms: f64,
    /// Milliseconds of each rate.
    #[arg(long, default_value_t = 1_000)]
    pub cell_ms: u64,
    /// Alternating repetitions: every second one goes from the last way to the first.
    #[arg(long, default_value_t = 2)]
    pub rounds: u32,
    /// More arguments for `windrow serve`, behind `--`.
    #[arg(last = true)]
    pub windrow: Vec<String>,
}

/// From this percentage on a core is full.
const FULL_PERCENT: f64 = 95.0;

/// The share of a rate that must be answered.
const ANSWERED: f64 = 0.95;

impl Capacity {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// There is one core only, something cannot be started, or a call fails.
    pub fn run(&self, root: &Path) -> Result<()> {
        let mut run = Run::new("capacity", "The most that PostgreSQL takes on one core");
        let ways = self.ways(&mut run)?;
        let store = gate::start(Kind::Postgres, Duration::ZERO)?;
        store.report_version(&mut run)?;
        if ways.contains(&Way::PgBouncer) {
            run.version("PgBouncer", pgbouncer::version()?);
        }
        let cores = Cores::divide(&store.server()?.pids())?;
        run.remark(format!(
            "PostgreSQL has one core to itself; the gateway and the load generator share {} other",
            cores.others()
        ));
        let all = |load: &CapacityLoad| ways.iter().map(|way| (*load, *way)).collect::<Vec<_>>();
        let cells: Vec<_> = self.loads.iter().flat_map(all).collect();
        let cells: Vec<_> = cells.into_iter().filter(|(l, way)| l.has(*way)).collect();
        run.rounds(self.rounds, &cells, |run, round, (load, way)| {
            self.climb((&store, &cores), (run, round), (load, way))
                .with_context(|| load.arm(way))
        })?;
        for (load, way) in cells {
            verdict::conclude(&mut run, load, way)?;
        }
        for load in &self.loads {
            self.draw(&mut run, *load, &ways)?;
        }
        run.store(root)?;
        Ok(())
    }

    /// Returns the ways that can be measured here.
    fn ways(&self, run: &mut Run) -> Result<Vec<Way>> {
        let mut ways = self.ways.clone();
        if ways.contains(&Way::PgBouncer) && pgbouncer::version().is_err() {
            run.remark("left out: PgBouncer, which is not installed here");
            ways.retain(|way| *way != Way::PgBouncer);
        }
        if ways.contains(&Way::PgBouncer) && matches!(pooling_of_prepared()?, Pooling::Session(_)) {
            run.remark("PgBouncer is in session mode: this one cannot follow prepared statements in transaction mode (1.21 and later can)");
        }
        Ok(ways)
    }

    fn rate(&self, step: u32) -> f64 {
        self.from * self.growth.powf(f64::from(step))
    }

    /// Offers one rate after the other, until one is refused twice.
    fn climb(
        &self,
        (store, cores): (&Store, &Cores),
        (run, round): (&mut Run, u32),
        (load, way): (CapacityLoad, Way),
    ) -> Result<()> {
        let gate = Gate::open(store, way, true, &self.windrow)?;
        gate.table().query(TABLES)?;
        let target = match load {
            CapacityLoad::Http => gate.http_target()?,
            _ => gate.target(),
        };
        let clients = Clients::open(&target, self.clients)?;
        let mut clients = clients.prepare(self.clients, &*load.job(0))?;
        let (mut written, mut most) = (0, None::<Step>);
        let (mut rate_number, mut is_second) = (0, false);
        for number in 0.. {
            let rate = self.rate(rate_number);
            let schedule = Schedule::Arrivals {
                rate,
                seed: u64::from(round) << 32 | u64::from(number),
            };
            let (calls, step) = self.step(
                (store, cores, &gate),
                (&mut clients, schedule),
                (load, number),
            )?;
            written += calls;
            run.add_all(round, &load.step_arm(way, rate), &step.metrics);
            let (is_late, is_short) = (step.is_late, step.answered < ANSWERED * rate);
            let is_full = step.metrics.get(DATABASE_CORE) > Some(FULL_PERCENT);
            if most
                .as_ref()
                .is_none_or(|most| most.answered < step.answered)
            {
                most = Some(step);
            }
            let holds = !is_late && !is_short && !is_full;
            if holds && rate_number + 1 == self.steps || !holds && is_second {
                break;
            }
            is_second = !holds;
            rate_number += u32::from(holds);
        }
        let most = most.context("no rate was offered")?;
        run.add_all(round, &load.arm(way), &verdict::of(load, &most));
        outcomes::all_there(written, case::counted(gate.table(), load.shape())?)
    }

    /// Offers one rate. Returns the calls that were answered too.
    fn step(
        &self,
        (store, cores, gate): (&Store, &Cores, &Gate),
        (clients, schedule): (&mut Clients, Schedule),
        (load, number): (CapacityLoad, u32),
    ) -> Result<(u64, Step)> {
        let (unit, job) = (load.shape().unit(), load.job(number));
        let until = Until::after(Duration::from_millis(self.cell_ms));
        let clocks = || (store.cpu_time(), gate.cpu_time(), cores.busy());
        let before = clocks();
        let report = clients.run(schedule, &until, &job, &Arc::new(Live::default()))?;
        let now = clocks();
        report.all(Outcome::Success)?;
        let since = |now: Option<Duration>, before| Some(now?.saturating_sub(before?));
        let database = since(now.0, before.0).unwrap_or_default();
        let gateway = since(now.1, before.1);
        let generator = report.generator_cpu.unwrap_or_default();
        let ours = gateway.unwrap_or_default() + generator;
        let strangers = (now.2? - before.2?).saturating_sub(database + ours);
        let percent = |cpu: Duration| 100.0 * cpu.as_secs_f64() / report.elapsed.as_secs_f64();
        let calls = report.calls();
        let each = |who: &str| format!("{who} CPU us/{unit}");
        let metrics = report
            .metrics(unit)
            .with(each("database"), micros(database, calls))
            .maybe(each("gateway"), gateway.map(|cpu| micros(cpu, calls)))
            .with(each("generator"), micros(generator, calls))
            .with(DATABASE_CORE, percent(database))
            .with(OTHER_CORES, percent(ours) / as_f64(cores.others() as u64))
            .with(STRANGERS, percent(strangers));
        let step = Step {
            answered: report.rate(),
            is_late: report.latency_ms(99.0) > self.late_ms,
            metrics,
        };
        Ok((calls, step))
    }

    /// Draws latencies and how busy the database's core is, by rate.
    fn draw(&self, run: &mut Run, load: CapacityLoad, ways: &[Way]) -> Result<()> {
        let rates: Vec<f64> = (0..self.steps).map(|step| self.rate(step)).collect();
        let unit = load.shape().unit();
        let plots = [
            (
                "core",
                "Busy core of the database",
                DATABASE_CORE,
                Scale::Linear,
            ),
            ("p99", "99th percentile", "p99 ms", Scale::Log),
        ];
        for (file, title, metric, scale) in plots {
            let curve = |way: &Way| {
                let arms = rates.iter().map(|rate| (*rate, load.step_arm(*way, *rate)));
                run.curve(way.as_str(), metric, &arms.collect::<Vec<_>>())
            };
            let curves: Vec<_> = ways
                .iter()
                .filter(|way| load.has(**way))
                .map(curve)
                .collect();
            let names = Names {
                title: &format!("{title}: {}", load.as_str()),
                x: &format!("{unit}s a second offered"),
                y: metric,
            };
            let svg = plot::curves(names, scale, &curves, &[])?;
            run.file(&format!("{file}-{}.svg", load.file()), svg);
        }
        Ok(())
    }
}
