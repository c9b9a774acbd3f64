//! The settings that Windrow finds beside neighbours that come and go, against fixed bounds.

mod neighbours;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use self::neighbours::{Neighbours, PHASES};
use crate::experiments::outcomes;
use crate::figures::plot::{self, Names, Series};
use crate::figures::{LIMIT, Meter, Run};
use crate::generator::pg::Mode;
use crate::generator::{
    Clients, Inserts, Job, Live, Outcome, Report, Schedule, Style, Until, limit,
};
use crate::number::as_f64;
use crate::say;
use crate::servers::gate::{self, Gate, Way};
use crate::servers::{Kind, Store};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Pace {
    /// Seconds of each measurement, in six parts: alone, beside one CPU burner, alone, beside one
    /// who syncs all the time, beside both and another burner, alone.
    #[arg(long, default_value_t = 60.0)]
    pub seconds: f64,
    /// Clients, each with one prepared insert under way.
    #[arg(long, default_value_t = 64)]
    pub clients: usize,
    /// Bounds of flights that pace is compared with.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 8])]
    pub flights: Vec<u32>,
    /// Milliseconds before each measurement, in which the same is done without neighbours.
    #[arg(long, default_value_t = 1_000)]
    pub warm_up_ms: u64,
    /// Alternating repetitions: every second one goes from the last measurement to the first.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
}

const RATE: &str = "rows/s";
const CPU: &str = "database CPU us/row";
const BATCH: &str = "mean batch, rows";
const FLIGHTS: &str = "flights that pace allows, mean of the parts";
const PREPARED: Style = Style::Pg(Mode::Prepared);
const OF_BEST: &str = "of the best bound's rows/s";
const CPU_OF_BEST: &str = "of the best bound's database CPU a row";

/// The goals of pace: a share of the rate, and a multiple of the CPU time.
const ENOUGH: f64 = 0.9;
const MOST_CPU: f64 = 1.2;

/// Each client's rows of a part begin here times its number.
const PART: u64 = 10_000_000;

/// The options of Windrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arm {
    Pace,
    /// With `--flights`.
    Bound(u32),
}

impl Arm {
    fn name(self) -> String {
        match self {
            Self::Pace => "pace".to_owned(),
            Self::Bound(1) => "1 flight".to_owned(),
            Self::Bound(most) => format!("up to {most} flights"),
        }
    }

    fn options(self) -> Vec<String> {
        match self {
            Self::Pace => Vec::new(),
            Self::Bound(most) => vec!["--flights".to_owned(), most.to_string()],
        }
    }
}

impl Pace {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, or a row is refused.
    pub fn run(&self, root: &Path) -> Result<()> {
        ensure!(
            !self.flights.is_empty() && !self.flights.contains(&0),
            "--flights needs bounds of 1 and more"
        );
        let mut run = Run::new("pace", "Pace beside neighbours that come and go");
        let store = gate::start(Kind::Postgres, Duration::ZERO)?;
        store.report_version(&mut run)?;
        let limit = limit::of_rows(self.clients, PREPARED)?;
        run.rounds(self.rounds, &self.arms(), |run, round, arm| {
            let measured = self.measure(&store, arm, (run, (round, limit)));
            measured.with_context(|| arm.name())
        })?;
        self.conclude(&mut run)?;
        self.draw(&mut run)?;
        run.store(root)?;
        Ok(())
    }

    fn arms(&self) -> Vec<Arm> {
        let bounds = self.flights.iter().copied().map(Arm::Bound);
        std::iter::once(Arm::Pace).chain(bounds).collect()
    }

    fn part(&self) -> Result<Duration> {
        let part = self.seconds / as_f64(PHASES.len() as u64);
        Duration::try_from_secs_f64(part).context("--seconds")
    }

    fn measure(
        &self,
        store: &Store,
        arm: Arm,
        (run, (round, limit)): (&mut Run, (u32, f64)),
    ) -> Result<()> {
        let gate = Gate::open(store, Way::Windrow, true, &arm.options())?;
        let clients = Clients::open(&gate.target(), self.clients)?;
        let mut clients = clients.prepare(self.clients, &Inserts::from(PREPARED, 0))?;
        let live = Arc::new(Live::default());
        let mut offer = |time, part: u64| {
            let job: Arc<dyn Job> = Arc::new(Inserts::from(PREPARED, part * PART));
            let report = clients.run(Schedule::Closed, &Until::after(time), &job, &live)?;
            report.all(Outcome::Success)?;
            anyhow::Ok(report)
        };
        let warm_up = offer(Duration::from_millis(self.warm_up_ms), 0)?;
        let meter = Meter::new("row")
            .of("database", || store.cpu_time())
            .of("gateway", || gate.cpu_time());
        let batches = Batches::of(&gate)?;
        let (mut all, mut flights, mut parts) = (Report::new()?, 0.0, Vec::new());
        for (number, phase) in (1..).zip(PHASES) {
            let neighbours = Neighbours::come(phase);
            let time = self.part()?;
            let what = format!("{}, {}", arm.name(), phase.name);
            let report = say::during(&what, time, || offer(time, number))?;
            neighbours.go()?;
            flights += gate.lane("windrow_flights_limit")?;
            parts.push((part_of(phase.name), report.rate()));
            all.merge(&report)?;
            all.elapsed += report.elapsed;
        }
        let metrics = all
            .metrics("row")
            .and(meter.metrics(all.calls()))
            .with(BATCH, Batches::of(&gate)?.mean_since(&batches))
            .with(FLIGHTS, flights / as_f64(PHASES.len() as u64))
            .with(LIMIT, limit);
        run.add_all(round, &arm.name(), &metrics);
        for (metric, rate) in parts {
            run.add(round, &arm.name(), &metric, rate);
        }
        outcomes::all_there(warm_up.successes() + all.successes(), gate.table().count()?)
    }

    /// Pace against the bound that had the highest median.
    fn conclude(&self, run: &mut Run) -> Result<()> {
        let mut best: Option<(String, f64)> = None;
        for bound in &self.flights {
            let name = Arm::Bound(*bound).name();
            let rate = run.median(&name, RATE)?;
            if best.as_ref().is_none_or(|(_, most)| rate > *most) {
                best = Some((name, rate));
            }
        }
        let (best, _) = best.context("no bound was measured")?;
        let pace = Arm::Pace.name();
        for round in 1..=self.rounds {
            for (metric, share) in [(RATE, OF_BEST), (CPU, CPU_OF_BEST)] {
                let of = |arm: &str| run.of_round(round, arm, metric);
                let share_of_best = of(&pace).zip(of(&best)).map(|(one, other)| one / other);
                // The clock of a short measurement may not have moved.
                if let Some(value) = share_of_best.filter(|value| value.is_finite()) {
                    run.add(round, &pace, share, value);
                }
            }
        }
        run.remark("a bound is no fixed number: with --flights N pace takes what it finds best up to N, and begins with one flight; a lower bound there is none");
        let word = |is_met: bool| if is_met { "met" } else { "not met" };
        let rate = run.median(&pace, OF_BEST)?;
        run.remark(format!(
            "pace has {rate:.2} of the rows/s of the best bound ({best}); asked: {ENOUGH} or more, {}",
            word(rate >= ENOUGH)
        ));
        if let Ok(cpu) = run.median(&pace, CPU_OF_BEST) {
            run.remark(format!(
                "a row costs the database {cpu:.2} times the CPU time that it costs there; asked: {MOST_CPU} at most, {}",
                word(cpu <= MOST_CPU)
            ));
        }
        Ok(())
    }

    /// Rows a second of each part, over time.
    fn draw(&self, run: &mut Run) -> Result<()> {
        let part = self.part()?.as_secs_f64();
        let mut series = Vec::new();
        for arm in self.arms() {
            let mut points = Vec::new();
            for (number, phase) in (0..).zip(PHASES) {
                let rate = run.median(&arm.name(), &part_of(phase.name))?;
                let begin = f64::from(number) * part;
                points.extend([(begin, rate), (begin + part, rate)]);
            }
            series.push(Series {
                name: arm.name(),
                points,
            });
        }
        let names = Names {
            title: "Rows a second while neighbours come and go",
            x: "seconds: alone, burner, alone, sync, both, alone",
            y: RATE,
        };
        run.file("parts.svg", plot::lines(names, &series)?);
        Ok(())
    }
}

fn part_of(phase: &str) -> String {
    format!("rows/s, {phase}")
}

/// The batches of the lane since it began.
struct Batches {
    rows: f64,
    count: f64,
}

impl Batches {
    fn of(gate: &Gate) -> Result<Self> {
        Ok(Self {
            rows: gate.lane("windrow_batch_rows_sum")?,
            count: gate.lane("windrow_batch_rows_count")?,
        })
    }

    fn mean_since(&self, before: &Self) -> f64 {
        (self.rows - before.rows) / (self.count - before.count).max(1.0)
    }
}
