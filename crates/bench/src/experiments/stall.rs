//! The database stands still under full load: does memory stay within its budget, and is nothing
//! confirmed lost?

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use super::timeline::{self, Sample, Timeline};
use super::under_load::{Ended, UnderLoad};
use crate::figures::Run;
use crate::figures::plot::{self, Names, Series};
use crate::http::job::{ROWS, id_of};
use crate::http::report::as_f64;
use crate::http::stream::{self, Reply};
use crate::reading::Reading;
use crate::say;
use crate::servers::{Kind, Store};

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
    /// Something that takes part cannot be started, a confirmed row is not there, service does not
    /// resume, or memory is above the budget. The figures are stored all the same.
    pub fn run(&self, root: &Path) -> Result<()> {
        let title = format!(
            "PostgreSQL stands still for {} s under full load",
            self.seconds
        );
        let mut run = Run::new("stall-postgres", title);
        let store = Store::start(Kind::Postgres)?;
        store.tell_version(&mut run)?;
        let memory = format!("{}MiB", self.memory);
        let load = UnderLoad::start(&store, self.connections, &["--memory", &memory])?;
        let streams = self.streams(&load);
        let resumed = self.stand(&store, &load.timeline)?;
        let (ended, streamed) = load.end(|| join(streams))?;
        let seen = Seen {
            streamed,
            peak_mib: peak_mib(&ended.samples),
            back: timeline::resumed_after(&ended.samples, resumed),
        };
        let mut metrics = ended.verified.metrics();
        metrics.extend(seen.metrics());
        metrics.push(("rows/s", ended.report.rate()));
        run.add_all(1, ARM, &metrics);
        self.draw(&mut run, &ended.samples)?;
        ended.tell(&mut run)?;
        run.store(root)?;
        self.check(&ended, &seen)
    }

    fn check(&self, ended: &Ended, seen: &Seen) -> Result<()> {
        ended.verified.check()?;
        let (told, rows) = (
            ended.verified.confirmed + seen.streamed,
            ended.there.len() as u64,
        );
        anyhow::ensure!(rows >= told, "{rows} rows are there, {told} were confirmed");
        anyhow::ensure!(seen.back.is_some(), "service did not resume under load");
        let (peak, most) = (seen.peak_mib, self.allowed_mib());
        anyhow::ensure!(
            peak < most,
            "{peak:.1} MiB resident; allowed are {most} MiB"
        );
        Ok(())
    }

    fn allowed_mib(&self) -> f64 {
        f64::from(self.memory) + ALLOWED_MIB
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

    fn streams(&self, load: &UnderLoad) -> Vec<Streaming> {
        (0..self.streams)
            .map(|number| {
                let address = load.windrow.address();
                let body = Endless {
                    connection: self.connections + number,
                    n: 0,
                    stop: Arc::clone(&load.stop),
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

    fn draw(&self, run: &mut Run, samples: &[Sample]) -> Result<()> {
        let end = samples.last().map_or(0.0, |s| s.at);
        let most = self.allowed_mib();
        let allowed = Series {
            name: "budget + 64 MiB".into(),
            points: vec![(0.0, most), (end, most)],
        };
        let names = Names {
            title: "Memory while the database stands still",
            x: "seconds",
            y: "MiB",
        };
        let lines = [timeline::resident(samples), allowed];
        run.file("memory.svg", plot::lines(names, &lines)?);
        Ok(())
    }
}

/// What is looked at besides the outcomes of single rows.
struct Seen {
    streamed: u64,
    peak_mib: f64,
    back: Option<f64>,
}

impl Seen {
    fn metrics(&self) -> Vec<(&'static str, f64)> {
        let mut metrics = vec![
            ("streamed rows", as_f64(self.streamed)),
            ("peak RSS MiB", self.peak_mib),
        ];
        metrics.extend(self.back.map(|s| ("s until the next success", s)));
        metrics
    }
}

fn peak_mib(samples: &[Sample]) -> f64 {
    let peak = samples.iter().map(|s| s.resident).max().unwrap_or(0);
    as_f64(peak) / 1_048_576.0
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
