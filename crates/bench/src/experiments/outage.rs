//! The database is stopped for a while under a fixed load that the spool acknowledges: do clients
//! notice, how long until the database is level again, and what does memory do?

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use windrow_testkit::process::Windrow;

use super::load::latencies;
use super::outcomes;
use super::spooled::{self, Depths, Moment};
use crate::figures::Run;
use crate::figures::plot::{self, Names, Series};
use crate::http::closed::{self, Closed, Until};
use crate::http::job::{Inserts, Job};
use crate::http::open::{self, Open};
use crate::http::{Live, Report};
use crate::number::as_f64;
use crate::say;
use crate::servers::{self, Kind, Store, Table};

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

/// The programs that take part.
struct Bed {
    store: Store,
    table: Table,
    windrow: Windrow,
}

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
        store.tell_version(&mut run)?;
        let folder = tempfile::tempdir()?;
        let spool = folder.path().to_str().context("no name in UTF-8")?;
        let table = store.table()?;
        let windrow = servers::windrow(&table.url(), &["--spool", spool, "--ack", "spool"])?;
        let bed = Bed {
            store,
            table,
            windrow,
        };
        let filled = self.quietly(&bed, &mut run)?;
        let sent = self.under_load(&bed, &mut run)?;
        let there = bed.table.count()?;
        self.conclude(&mut run)?;
        run.store(root)?;
        outcomes::all_there(filled + sent, there)?;
        Ok(())
    }

    /// About as many rows as the outage keeps, applied while nothing else happens: the drain's full
    /// rate.
    fn quietly(&self, bed: &Bed, run: &mut Run) -> Result<u64> {
        let address = bed.windrow.address();
        // The table is met before anything counts.
        let met = self.offer(address, 3 * PART, 1)?;
        spooled::level(address, CATCH_UP_TIMEOUT)?;
        bed.store.server()?.stop()?;
        let goal = u64::from(self.rate) * self.seconds;
        let filled = self.fill(address, goal)?;
        let depths = Depths::start(&bed.windrow);
        bed.store.server()?.restart()?;
        say::during(QUIET, Duration::from_secs(10), || {
            spooled::level(address, CATCH_UP_TIMEOUT)
        })?;
        let caught = caught_up(&depths.end()?)?;
        run.add_all(1, QUIET, &caught);
        Ok(met.successes() + filled.successes())
    }

    /// Sends so many rows as fast as they are acknowledged.
    fn fill(&self, address: SocketAddr, goal: u64) -> Result<Report> {
        let each = goal / FILLING as u64;
        let job: Arc<dyn Job> = Arc::new(SoMany {
            rows: Inserts::from(4 * PART),
            each,
        });
        let load = Closed {
            connections: FILLING,
            until: Until::Done,
        };
        let live = Arc::new(Live::default());
        let report = closed::run(address, &load, &job, &live)?;
        all_well(&report)?;
        Ok(report)
    }

    fn under_load(&self, bed: &Bed, run: &mut Run) -> Result<u64> {
        let (server, address) = (bed.store.server()?, bed.windrow.address());
        let depths = Depths::start(&bed.windrow);
        let whole = Duration::from_secs(BEFORE + self.seconds + 2 * STEP);
        let reports = say::during("load, outage, load", whole, || -> Result<_> {
            let before = self.offer(address, 0, BEFORE)?;
            let away = self.beside(address, PART, self.seconds, || server.stop())?;
            let mut back = self.beside(address, 2 * PART, STEP, || server.restart())?;
            let start = Instant::now();
            for part in 5.. {
                if spooled::look(address)?.waiting() <= u64::from(self.rate) {
                    break;
                }
                anyhow::ensure!(start.elapsed() < CATCH_UP_TIMEOUT, "it does not catch up");
                back.merge(&self.offer(address, part * PART, STEP)?)?;
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
            let mut metrics = latencies(report);
            // Parts of a load were joined, and their times overlap.
            metrics.remove(0);
            run.add_all(1, arm, &metrics);
        }
        let mut caught = caught_up(&moments)?;
        caught.push(("peak RSS MiB", peak_mib(&moments)));
        run.add_all(1, CATCHING_UP, &caught);
        draw(run, &moments)?;
        Ok(reports.iter().map(Report::successes).sum())
    }

    fn offer(&self, address: SocketAddr, first: u64, seconds: u64) -> Result<Report> {
        let load = Open {
            connections: self.connections,
            rate: f64::from(self.rate),
            time: Duration::from_secs(seconds),
            seed: first,
        };
        let job: Arc<dyn Job> = Arc::new(Inserts::from(first));
        let report = open::run(address, &load, &job)?;
        all_well(&report)?;
        Ok(report)
    }

    /// The load, while something is done to the database.
    fn beside(
        &self,
        address: SocketAddr,
        first: u64,
        seconds: u64,
        done: impl FnOnce() -> Result<()>,
    ) -> Result<Report> {
        thread::scope(|scope| {
            let load = scope.spawn(|| self.offer(address, first, seconds));
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

/// A job with an end.
struct SoMany {
    rows: Inserts,
    each: u64,
}

impl Job for SoMany {
    fn target(&self) -> &str {
        self.rows.target()
    }

    fn body(&self, connection: usize, n: u64, out: &mut Vec<u8>) {
        self.rows.body(connection, n, out);
    }

    fn ends(&self, _connection: usize, n: u64) -> bool {
        n >= self.each
    }
}

fn all_well(report: &Report) -> Result<()> {
    anyhow::ensure!(
        report.successes() == report.requests(),
        "a client has noticed: {:?}\n{}",
        report.outcomes,
        report.samples.join("\n")
    );
    Ok(())
}

/// From where the most waits to where next to nothing does.
fn caught_up(moments: &[Moment]) -> Result<Vec<(&'static str, f64)>> {
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
    Ok(vec![
        ("deepest rows", as_f64(deepest.waiting())),
        ("s until level", end.at - deepest.at),
        ("rows/s", as_f64(rows) / seconds.max(1e-3)),
    ])
}

fn peak_mib(moments: &[Moment]) -> f64 {
    let peak = moments.iter().map(|m| m.resident).max().unwrap_or(0);
    as_f64(peak) / 1_048_576.0
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
    let memory = line("resident memory of windrow", |m| {
        as_f64(m.resident) / 1_048_576.0
    });
    let memory = plot::lines(names("Memory of Windrow", "MiB"), &[memory])?;
    run.file("memory.svg", memory);
    run.file("timeline.csv", spooled::csv(moments));
    Ok(())
}
