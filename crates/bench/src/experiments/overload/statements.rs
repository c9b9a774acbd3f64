//! Good SQL clients beside a flood of statements that fail on another table: directly, and through
//! Windrow.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::figures::{LIMIT, Metrics, Run, in_turn};
use crate::generator::pg::Mode;
use crate::generator::{
    Call, Clients, Inserts, Job, Outcome, Running, Schedule, Style, Until, limit,
};
use crate::number::as_f64;
use crate::say;
use crate::servers::Kind;
use crate::servers::gate::{self, Gate, Way};

/// The table of the statements that fail.
const REFUSING: &str = "create table refusing (id bigint primary key, device int, at timestamptz, \
    temperature double precision constraint warm check (temperature > -300), note text)";

/// Time that the flood runs before its effect is measured.
const SETTLE: Duration = Duration::from_secs(1);

/// The share of the good clients' rate that stays beside the flood.
const SHARE: &str = "% of the rate before";

const PREPARED: Style = Style::Pg(Mode::Prepared);

/// The loads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Statements {
    pub(super) good: usize,
    pub(super) flood: usize,
    pub(super) warm_up: Duration,
    pub(super) phase: Duration,
}

/// The name of a way's arm.
fn arm(way: Way) -> String {
    format!("failing statements, {}", way.as_str())
}

impl Statements {
    /// Measures one round: both ways, in turns.
    ///
    /// # Errors
    /// Something cannot be started, or an outcome is not the client's own.
    pub(super) fn measure(self, run: &mut Run, round: u32) -> Result<()> {
        let store = gate::start(Kind::Postgres, Duration::ZERO)?;
        for way in in_turn(round, &[Way::Direct, Way::Windrow]) {
            let gate = Gate::open(&store, way, true, &[])?;
            gate.table().query(REFUSING)?;
            let metrics = say::during(&arm(way), self.all(), || self.through(&gate))?;
            run.add_all(round, &arm(way), &metrics);
        }
        Ok(())
    }

    /// Adds to the report how the two compare.
    pub(super) fn remark(run: &mut Run) -> Result<()> {
        let share = |way| run.median(&arm(way), SHARE);
        let (direct, windrow) = (share(Way::Direct)?, share(Way::Windrow)?);
        run.remark(format!(
            "beside failing statements on another table, good SQL clients keep {windrow:.0} % of their rate \
             through Windrow, and {direct:.0} % directly"
        ));
        Ok(())
    }

    fn all(self) -> Duration {
        self.warm_up + self.phase * 2 + SETTLE * 2
    }

    /// Runs both loads, and compares the good clients' rates before and beside the flood.
    fn through(self, gate: &Gate) -> Result<Metrics> {
        let start = |clients, time, job: Arc<dyn Job>| {
            let clients = Clients::open(&gate.target(), clients)?.prepare(clients, &*job)?;
            let until = Until::after(time);
            anyhow::Ok(move || Running::start(clients, Schedule::Closed, until, job))
        };
        let good = start(self.good, self.all(), Arc::new(Inserts::from(PREPARED, 0)))?;
        let flood = start(self.flood, SETTLE + self.phase, Arc::new(Failing))?;
        let good = good();
        let rate = |after: Duration| {
            thread::sleep(after);
            let (rows, since) = (good.live.successes(), Instant::now());
            thread::sleep(self.phase);
            as_f64(good.live.successes() - rows) / since.elapsed().as_secs_f64()
        };
        let before = rate(self.warm_up);
        let flood = flood();
        let meanwhile = rate(SETTLE);
        let (refused, report) = (flood.wait()?, good.wait()?);
        report.all(Outcome::Success)?;
        let there = gate.table().count()?;
        ensure!(report.calls() == there, "{there} rows are there");
        refused.all(Outcome::Failed(*b"23514"))?;
        Ok(Metrics::new()
            .with("rows/s", before)
            .with("rows/s meanwhile", meanwhile)
            .with(SHARE, 100.0 * meanwhile / before.max(1.0))
            .with("failures/s", refused.rate())
            .with(LIMIT, limit::of_rows(self.good, PREPARED)?))
    }
}

/// Rows that a check refuses.
struct Failing;

impl Job for Failing {
    fn prepare(&self, out: &mut Vec<u8>) {
        PREPARED.prepare("refusing", out);
    }

    fn write(&self, call: Call<'_>, out: &mut Vec<u8>) {
        let mut reading = Inserts::from(PREPARED, 0).reading(call);
        reading.temperature = -1000.0;
        PREPARED.write("refusing", &reading, out);
    }
}
