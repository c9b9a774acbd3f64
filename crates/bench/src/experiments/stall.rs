//! The database stands still under full load: does memory stay within its budget, and is nothing confirmed lost?

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use windrow_testkit::process::Windrow;

use super::outcomes::Remembered;
use super::timeline::{self, Timeline};
use crate::figures::Run;
use crate::figures::plot::{self, Names, Series};
use crate::http::Live;
use crate::http::closed::{self, Closed, Until};
use crate::http::job::{ROWS, id_of};
use crate::http::report::as_f64;
use crate::http::stream::{self, Reply};
use crate::reading::Reading;
use crate::say;
use crate::servers::{self, Kind, Store};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Stall {
    /// Clients with single rows.
    #[arg(long, default_value_t = 1000)]
    pub connections: usize,
    /// Clients that stream rows without end.
    #[arg(long, default_value_t = 64)]
    pub streams: usize,
    /// Windrow's memory budget in MiB.
    #[arg(long, default_value_t = 64)]
    pub memory: u32,
    /// How long the database stands, in seconds.
    #[arg(long, default_value_t = 60)]
    pub seconds: u64,
}

/// Seconds of load before and after.
const AROUND: u64 = 5;

/// What resident memory may be above the budget: the program itself, buffers of connections.
const ALLOWED_MIB: f64 = 64.0;

const ARM: &str = "windrow";

impl Stall {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, a confirmed row is not there, or memory is above the budget.
    pub fn run(&self, root: &Path) -> Result<()> {
        let title = format!(
            "PostgreSQL stands still for {} s under full load",
            self.seconds
        );
        let mut run = Run::new("stall-postgres", title);
        let store = Store::start(Kind::Postgres)?;
        store.tell_version(&mut run)?;
        let table = store.table()?;
        let memory = format!("{}MiB", self.memory);
        let windrow = servers::windrow(&table.url(), &["--memory", &memory])?;
        let stop = Arc::new(AtomicBool::new(false));
        let live = Arc::new(Live::default());
        let timeline = Timeline::start(windrow.pid(), Arc::clone(&live));
        let job = Arc::new(Remembered::new(self.connections));
        let load = Closed {
            connections: self.connections,
            until: Until::Told(Arc::clone(&stop)),
        };
        let clients = closed::start(windrow.address(), load, Arc::clone(&job) as _, live);
        let streams = self.streams(&windrow, &stop);
        let resumed = self.stand(&store, &timeline)?;
        stop.store(true, Ordering::SeqCst);
        let report = clients.join().map_err(|_| anyhow!("the load panicked"))??;
        let streamed = join(streams)?;
        let samples = timeline.end()?;

        let there = table.ids()?;
        let verified = job.verify(&there);
        let mut metrics = verified.metrics();
        metrics.push(("rows/s", report.rate()));
        metrics.push(("streamed rows", as_f64(streamed)));
        let peak = samples.iter().map(|s| s.resident).max().unwrap_or(0);
        let peak = as_f64(peak) / 1_048_576.0;
        metrics.push(("peak RSS MiB", peak));
        let back = timeline::resumed_after(&samples, resumed);
        metrics.extend(back.map(|seconds| ("s until the next success", seconds)));
        run.add_all(1, ARM, &metrics);
        self.draw(&mut run, &samples)?;
        run.file("timeline.csv", timeline::csv(&samples));
        for (outcome, n) in &report.outcomes {
            run.remark(format!("{n} requests: {outcome:?}"));
        }
        run.store(root)?;
        verified.check()?;
        anyhow::ensure!(
            back.is_some(),
            "service did not resume while the load went on"
        );
        let most = f64::from(self.memory) + ALLOWED_MIB;
        anyhow::ensure!(
            peak < most,
            "{peak:.1} MiB resident; allowed are {most} MiB"
        );
        let rows = there.len() as u64;
        anyhow::ensure!(
            rows >= verified.confirmed + streamed,
            "{rows} rows are there, fewer than were confirmed"
        );
        Ok(())
    }

    /// Load, stillness, load; gives the moment when the database went on.
    fn stand(&self, store: &Store, timeline: &Timeline) -> Result<f64> {
        let server = store.server()?;
        let whole = Duration::from_secs(self.seconds + 2 * AROUND);
        say::during("load, stillness, load", whole, || {
            thread::sleep(Duration::from_secs(AROUND));
            server.pause()?;
            thread::sleep(Duration::from_secs(self.seconds));
            server.resume();
            let resumed = timeline.now();
            thread::sleep(Duration::from_secs(AROUND));
            Ok(resumed)
        })
    }

    fn streams(&self, windrow: &Windrow, stop: &Arc<AtomicBool>) -> Vec<Streaming> {
        (0..self.streams)
            .map(|number| {
                let address = windrow.address();
                let body = Endless {
                    connection: self.connections + number,
                    n: 0,
                    stop: Arc::clone(stop),
                    line: Vec::new(),
                    at: 0,
                };
                thread::spawn(move || {
                    let (_, path) = ROWS.split_once(' ').unwrap_or_default();
                    let target = format!("{path}?results=none");
                    stream::post(address, &target, "application/x-ndjson", None, body)
                })
            })
            .collect()
    }

    fn draw(&self, run: &mut Run, samples: &[timeline::Sample]) -> Result<()> {
        let end = samples.last().map_or(0.0, |s| s.at);
        let most = f64::from(self.memory) + ALLOWED_MIB;
        let allowed = Series {
            name: "budget + 64 MiB".into(),
            points: vec![(0.0, most), (end, most)],
        };
        let names = Names {
            title: "Memory while the database stands still",
            x: "seconds",
            y: "MiB",
        };
        run.file(
            "memory.svg",
            plot::lines(names, &[timeline::resident(samples), allowed])?,
        );
        let names = Names {
            title: "Single rows confirmed",
            x: "seconds",
            y: "rows a second",
        };
        run.file("rate.svg", plot::lines(names, &[timeline::rate(samples)])?);
        Ok(())
    }
}

type Streaming = JoinHandle<Result<Reply>>;

/// Rows that the streams were told are written.
fn join(streams: Vec<Streaming>) -> Result<u64> {
    let mut rows = 0;
    for stream in streams {
        let reply = stream.join().map_err(|_| anyhow!("a stream panicked"))??;
        anyhow::ensure!(
            reply.status == 200,
            "a stream ended with {}: {}",
            reply.status,
            reply.body
        );
        let counted = reply.body.split("\"rows\":").nth(1);
        let digits = counted.and_then(|t| t.split(|c: char| !c.is_ascii_digit()).next());
        rows += digits
            .and_then(|d| d.parse::<u64>().ok())
            .with_context(|| format!("no row count in {}", reply.body))?;
    }
    Ok(rows)
}

/// An NDJSON body that goes on until it is told to end.
struct Endless {
    connection: usize,
    n: u64,
    stop: Arc<AtomicBool>,
    line: Vec<u8>,
    at: usize,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.line.len() {
            if self.stop.load(Ordering::SeqCst) {
                return Ok(0);
            }
            self.fill();
        }
        let rest = self.line.get(self.at..).unwrap_or_default();
        let n = (&mut &*rest).read(buffer)?;
        self.at += n;
        Ok(n)
    }
}

impl Endless {
    /// The next hundred rows.
    fn fill(&mut self) {
        self.line.clear();
        self.at = 0;
        for _ in 0..100 {
            Reading::new(id_of(self.connection, self.n)).json(&mut self.line);
            self.line.push(b'\n');
            self.n += 1;
        }
    }
}
