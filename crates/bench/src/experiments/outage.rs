//! The database is stopped for a while under a fixed load that the spool acknowledges: do clients
//! notice, how long until the database is level again, and what does memory do?

use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};

use super::measure::Bed;
use super::outcomes;
use super::spooled::{self, Moment};
use crate::figures::plot::{self, Names, Series};
use crate::figures::{Metrics, Run, mib};
use crate::generator::{Clients, Inserts, Job, Live, Outcome, Report, Schedule, Style, Until};
use crate::number::as_f64;
use crate::say;
use crate::servers::{Kind, Store};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Outage {
    /// Clients.
    #[arg(long, default_value_t = 16)]
    pub connections: usize,
    /// Rows a second, of all clients together.
    #[arg(long, default_value_t = 5_000)]
    pub rate: u32,
    /// Seconds during which the database is away.
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,
}

/// Seconds of load before.
const BEFORE: u64 = 10;

/// Seconds of load at once while the database catches up.
const STEP: u64 = 5;

/// The timeout of catching up.
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(600);

/// Clients that fill the spool for the reference.
const FILLING: usize = 64;

/// Rows of one part of the load begin here times its number.
const PART: u64 = 1_000_000;

const QUIET: &str = "what was kept, without load";
const CATCHING_UP: &str = "what was kept, under load";

impl Outage {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, a request fails, or a row is not there.
    pub fn run(&self, root: &Path) -> Result<()> {
        let title = format!(
            "PostgreSQL is away for {} s under {} rows a second",
            self.seconds, self.rate
        );
        let mut run = Run::new("outage-postgres", title);
        let store = Store::start(Kind::Postgres)?;
        store.report_version(&mut run)?;
        let folder = tempfile::tempdir()?;
        let spool = folder.path().to_str().context("no name in UTF-8")?;
        let bed = Bed::start(&store, &["--spool", spool, "--ack", "spool"])?;
        let filled = self.quietly(&store, &bed, &mut run)?;
        let sent = self.under_load(&store, &bed, &mut run)?;
        let there = bed.table.count()?;
        self.conclude(&mut run)?;
        run.store(root)?;
        outcomes::all_there(filled + sent, there)
    }

    /// About as many rows as the outage keeps, applied while nothing else happens: the drain's full
    /// rate.
    fn quietly(&self, store: &Store, bed: &Bed, run: &mut Run) -> Result<u64> {
        let address = bed.windrow.address();
        // The table is met before anything counts.
        let met = self.offer(bed, 3 * PART, 1)?;
        spooled::level(address, CATCH_UP_TIMEOUT)?;
        store.server()?.stop()?;
        // Sent as fast as they are acknowledged.
        let each = u64::from(self.rate) * self.seconds / FILLING as u64;
        let (inserts, until) = (Inserts::from(Style::Http, 4 * PART), Until::calls(each));
        let filled = send(bed, FILLING, Schedule::Closed, &until, inserts)?;
        let depths = spooled::watch(&bed.windrow);
        store.server()?.restart()?;
        say::during(QUIET, Duration::from_secs(10), || {
            spooled::level(address, CATCH_UP_TIMEOUT)
        })?;
        let caught = caught_up(&depths.end()?)?;
        run.add_all(1, QUIET, &caught);
        Ok(met.successes() + filled.successes())
    }

    fn under_load(&self, store: &Store, bed: &Bed, run: &mut Run) -> Result<u64> {
        let (server, address) = (store.server()?, bed.windrow.address());
        let depths = spooled::watch(&bed.windrow);
        let whole = Duration::from_secs(BEFORE + self.seconds + 2 * STEP);
        let reports = say::during("load, outage, load", whole, || -> Result<_> {
            let before = self.offer(bed, 0, BEFORE)?;
            let away = self.beside(bed, PART, self.seconds, || server.stop())?;
            let mut back = self.beside(bed, 2 * PART, STEP, || server.restart())?;
            let start = Instant::now();
            for part in 5.. {
                if spooled::look(address)?.waiting() <= u64::from(self.rate) {
                    break;
                }
                ensure!(start.elapsed() < CATCH_UP_TIMEOUT, "it does not catch up");
                back.merge(&self.offer(bed, part * PART, STEP)?)?;
            }
            Ok([before, away, back])
        })?;
        spooled::level(address, CATCH_UP_TIMEOUT)?;
        let moments = depths.end()?;
        let arms = [
            "before",
            "while the database is away",
            "while it catches up",
        ];
        for (arm, report) in arms.iter().zip(&reports) {
            // Parts of a load were joined, and their times overlap: there is no rate.
            run.add_all(1, arm, &report.latencies());
        }
        let caught = caught_up(&moments)?.with("peak RSS MiB", peak_mib(&moments));
        run.add_all(1, CATCHING_UP, &caught);
        draw(run, &moments)?;
        Ok(reports.iter().map(Report::successes).sum())
    }

    fn offer(&self, bed: &Bed, first: u64, seconds: u64) -> Result<Report> {
        let schedule = Schedule::Poisson {
            rate: self.rate.into(),
            seed: first,
        };
        let until = Until::after(Duration::from_secs(seconds));
        let inserts = Inserts::from(Style::Http, first);
        send(bed, self.connections, schedule, &until, inserts)
    }

    /// The load, while something is done to the database.
    fn beside(
        &self,
        bed: &Bed,
        first: u64,
        seconds: u64,
        done: impl FnOnce() -> Result<()>,
    ) -> Result<Report> {
        thread::scope(|scope| {
            let load = scope.spawn(|| self.offer(bed, first, seconds));
            done()?;
            load.join().map_err(|_| anyhow!("the load panicked"))?
        })
    }

    fn conclude(&self, run: &mut Run) -> Result<()> {
        let rate = |arm| run.median(arm, "rows/s");
        let share = rate(CATCHING_UP)? / rate(QUIET)?;
        run.remark(format!(
            "under load the database catches up at {share:.2} of the rate at which it does without"
        ));
        Ok(())
    }
}

/// Sends rows, all of which must be acknowledged.
fn send(
    bed: &Bed,
    clients: usize,
    schedule: Schedule,
    until: &Until,
    inserts: Inserts,
) -> Result<Report> {
    let mut clients = Clients::open(&bed.target(), clients)?;
    let job: Arc<dyn Job> = Arc::new(inserts);
    let report = clients.run(schedule, until, &job, &Arc::new(Live::default()))?;
    report.all(Outcome::Success)?;
    Ok(report)
}

/// From where the most waits to where next to nothing does.
fn caught_up(moments: &[Moment]) -> Result<Metrics> {
    let deepest = moments.iter().max_by_key(|m| m.waiting());
    let deepest = deepest.context("nothing was seen")?;
    let begin = moments
        .iter()
        .find(|m| m.at >= deepest.at && m.applied > deepest.applied)
        .unwrap_or(deepest);
    let few = deepest.waiting() / 100;
    let mut behind = moments.iter().filter(|m| m.at > begin.at);
    let end = behind.find(|m| m.waiting() <= few);
    let end = end.context("it was not seen to catch up; let it be away for longer")?;
    let (rows, seconds) = (end.applied - begin.applied, end.at - begin.at);
    Ok(Metrics::new()
        .with("deepest rows", as_f64(deepest.waiting()))
        .with("s until level", end.at - deepest.at)
        .with("rows/s", as_f64(rows) / seconds.max(1e-3)))
}

fn peak_mib(moments: &[Moment]) -> f64 {
    mib(moments.iter().map(|m| m.resident).max().unwrap_or(0))
}

fn draw(run: &mut Run, moments: &[Moment]) -> Result<()> {
    let line = |name: &str, of: fn(&Moment) -> f64| Series {
        name: name.into(),
        points: moments.iter().map(|m| (m.at, of(m))).collect(),
    };
    let names = |title, y| Names {
        title,
        x: "seconds",
        y,
    };
    let depth = line("acknowledged and not applied", |m| as_f64(m.waiting()));
    let depth = plot::lines(names("What waits in the spool", "rows"), &[depth])?;
    run.file("depth.svg", depth);
    let memory = line("resident memory of windrow", |m| mib(m.resident));
    let memory = plot::lines(names("Memory of Windrow", "MiB"), &[memory])?;
    run.file("memory.svg", memory);
    run.file("timeline.csv", spooled::csv(moments));
    Ok(())
}
