//! Good SQL clients beside a flood of statements that fail on another table: directly, and through
//! Windrow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use windrow_testkit::pgclient::Address;

use crate::figures::{LIMIT, Run};
use crate::http::job::id_of;
use crate::limit;
use crate::number::as_f64;
use crate::pg::closed::Clients;
use crate::pg::{CallOutcome, Inserts, Job, Mode, Report, Values};
use crate::reading::{AT, NOTE, Reading};
use crate::say;
use crate::servers::pg::{Database, Gate, Way};

/// The table of the statements that fail.
const REFUSING: &str = "create table refusing (id bigint primary key, device int, at timestamptz, \
    temperature double precision constraint warm check (temperature > -300), note text)";

/// Time that the flood runs before its effect is measured.
const SETTLE: Duration = Duration::from_secs(1);

/// The share of the good clients' rate that stays beside the flood.
const SHARE: &str = "% of the rate before";

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
        let database = Database::start(Duration::ZERO)?;
        let mut ways = [Way::Direct, Way::Windrow];
        if round.is_multiple_of(2) {
            ways.reverse();
        }
        for way in ways {
            let gate = database.open(way, true, &[])?;
            gate.exec(REFUSING)?;
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

    fn through(self, gate: &Gate) -> Result<Vec<(&'static str, f64)>> {
        let good = Arc::new(Good::default());
        let (report, refused, [before, meanwhile]) = self.loads(gate, &good)?;
        ensure!(
            report.successes() == report.requests() && report.requests() == gate.count()?,
            "good statements had the outcomes {:?}",
            report.outcomes
        );
        let own = refused
            .outcomes
            .get(&CallOutcome::Error(*b"23514"))
            .copied();
        ensure!(
            own == Some(refused.requests()),
            "failing statements had the outcomes {:?}",
            refused.outcomes
        );
        Ok(vec![
            ("rows/s", before),
            ("rows/s meanwhile", meanwhile),
            (SHARE, 100.0 * meanwhile / before.max(1.0)),
            ("failures/s", refused.answer_rate()),
            (LIMIT, limit::of_pg(self.good, Mode::Prepared)?),
        ])
    }

    /// Runs both loads. Returns the reports of the good clients and of the flood, and the good
    /// clients' rates before and beside the flood.
    fn loads(self, gate: &Gate, good: &Arc<Good>) -> Result<(Report, Report, [f64; 2])> {
        let rate = |after: Duration| {
            thread::sleep(after);
            let (rows, since) = (good.rows(), Instant::now());
            thread::sleep(self.phase);
            as_f64(good.rows() - rows) / since.elapsed().as_secs_f64()
        };
        let address = gate.address();
        thread::scope(|threads| {
            let start = |count, job: Arc<dyn Job>| {
                let (ready, opened) = channel();
                let (begin, time) = channel();
                let load = threads.spawn(move || clients(address, count, &job, &ready, &time));
                // An error is that of the clients, which they return.
                opened.recv().ok();
                (begin, load)
            };
            let (begin_good, running) = start(self.good, Arc::clone(good) as _);
            let (begin_flood, flooding) = start(self.flood, Arc::new(Failing));
            begin_good.send(self.all()).ok();
            let before = rate(self.warm_up);
            begin_flood.send(SETTLE + self.phase).ok();
            let meanwhile = rate(SETTLE);
            let joined =
                |ended: thread::Result<_>| ended.map_err(|_| anyhow!("a load panicked"))?;
            let refused = joined(flooding.join())?;
            let report = joined(running.join())?;
            Ok((report, refused, [before, meanwhile]))
        })
    }
}

/// Opens clients, reports that they are open, and lets them call for the time received then.
fn clients(
    address: &Address,
    count: usize,
    job: &Arc<dyn Job>,
    ready: &Sender<()>,
    time: &Receiver<Duration>,
) -> Result<Report> {
    let mut clients = Clients::open(address, count)?;
    clients.prepare(count, &**job)?;
    ready.send(())?;
    clients.run(count, time.recv()?, job)
}

/// Rows that are counted once they are confirmed.
#[derive(Default)]
struct Good {
    inserts: Inserts,
    rows: AtomicU64,
}

impl Good {
    fn rows(&self) -> u64 {
        self.rows.load(Ordering::Relaxed)
    }
}

impl Job for Good {
    fn values(&self, connection: usize, n: u64, out: &mut Values<'_>) {
        self.inserts.values(connection, n, out);
    }

    fn seen(&self, _: usize, _: u64, outcome: CallOutcome) {
        let rows = u64::from(outcome == CallOutcome::Success);
        self.rows.fetch_add(rows, Ordering::Relaxed);
    }
}

/// Rows that a check refuses.
struct Failing;

impl Job for Failing {
    fn insert(&self) -> &str {
        "insert into refusing (id, device, at, temperature, note) values ($1, $2, $3, $4, $5)"
    }

    fn values(&self, connection: usize, n: u64, out: &mut Values<'_>) {
        out.add(id_of(connection, n));
        out.add(Reading::new(n).device());
        out.add(AT);
        out.add(-1000);
        out.add(NOTE);
    }
}
