//! Thousands of misbehaving clients beside a few good ones: how much slower do these become, how
//! much memory is taken, is every confirmed row there, and does the program end on a signal?

mod good;
pub(in crate::experiments) mod manners;
pub(in crate::experiments) mod others;
pub(in crate::experiments) mod ways;

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use clap::ValueEnum as _;
use windrow_testkit::postgres::{Postgres, psql};
use windrow_testkit::process::Windrow;
use windrow_testkit::procfs;

use super::outcomes::Remembered;
use crate::figures::Run;
use crate::figures::plot::{self, Names, Series};
use crate::number::as_f64;
use crate::reading::POSTGRES_TABLE;
use crate::say;
use crate::servers;
use good::Good;
use manners::Manner;
use others::Others;
use ways::Ways;

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Soak {
    /// Minutes in all.
    #[arg(long, default_value_t = 60)]
    pub minutes: u64,
    /// Seconds of each phase without the others.
    #[arg(long, default_value_t = 60)]
    pub alone: u64,
    /// Seconds of each phase beside the others, and of each in which they use a second Windrow.
    #[arg(long, default_value_t = 300)]
    pub beside: u64,
    /// Misbehaving clients, half of them over each protocol.
    #[arg(long, default_value_t = 2000)]
    pub others: usize,
    /// Clients that behave well, half of them over each protocol.
    #[arg(long, default_value_t = 32)]
    pub good: usize,
    /// Rows a second of all that behave well.
    #[arg(long, default_value_t = 320)]
    pub rate: u32,
    /// Seconds between two misdeeds of one client, on average.
    #[arg(long, default_value_t = 10)]
    pub pace: u64,
    /// The behaviour of the others (default: every kind).
    #[arg(long, value_enum, value_delimiter = ',')]
    pub manners: Vec<Manner>,
    /// Windrow's memory budget in MiB.
    #[arg(long, default_value_t = 256)]
    pub memory: u32,
    /// More arguments for `windrow serve`, behind `--`.
    #[arg(last = true)]
    pub windrow: Vec<String>,
}

/// Resident memory that is allowed above the budget.
const ALLOWED_MIB: f64 = 64.0;

/// The table of the misbehaving clients.
const OTHERS_TABLE: &str =
    "create table others (id bigint generated always as identity primary key, note text)";

const ALONE: &str = "without others";
const BESIDE: &str = "beside others";
/// The others use a second Windrow, of the same machine and database: what the good clients feel
/// of that is the machine's, and not the program's that they would share.
const ELSEWHERE: &str = "others elsewhere";

/// All of them, in the order of a round.
const ARMS: [&str; 3] = [ALONE, ELSEWHERE, BESIDE];

impl Soak {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, a confirmed row is not there, memory is above
    /// the budget and 64 MiB, or the program does not end. The figures are stored all the same.
    pub fn run(&self, root: &Path) -> Result<()> {
        procfs::raise_open_files()?;
        let title = format!(
            "{} misbehaving clients beside {} good ones, {} minutes",
            self.others, self.good, self.minutes
        );
        let mut run = Run::new("soak", title);
        let server = Postgres::builder().fsync(true);
        let server = server.set("max_connections", "200").start()?;
        run.version("PostgreSQL", server.exec("show server_version")?);
        let url = server.create_database()?;
        psql(&url, POSTGRES_TABLE)?;
        psql(&url, OTHERS_TABLE)?;
        let mut windrow = self.windrow(&url)?;
        let second = self.windrow(&url)?;
        let (ways, elsewhere) = (Ways::to(&windrow, &url)?, Ways::to(&second, &url)?);
        let memory = Memory::watch(windrow.pid());
        let remembered = Arc::new(Remembered::new(self.rounds() * ARMS.len() * self.good));
        let others = self.phases(&mut run, (&url, &ways, &elsewhere), &remembered)?;
        drop(second);
        let ended = self.end(&mut run, &mut windrow, others, memory);
        let there = psql(&url, "select id from readings")?;
        let there = there.lines().map(|id| Ok(id.parse()?));
        let verified = remembered.verify(&there.collect::<Result<_>>()?);
        run.add_all(1, "ledger", &verified.metrics());
        self.conclude(&mut run)?;
        run.store(root)?;
        verified.check()?;
        ended
    }

    fn windrow(&self, url: &str) -> Result<Windrow> {
        let memory = format!("{}MiB", self.memory);
        let mut all = vec!["--pg", "127.0.0.1:0", "--memory", &memory];
        all.extend(self.windrow.iter().map(String::as_str));
        servers::windrow(url, &all)
    }

    fn manners(&self) -> &[Manner] {
        if self.manners.is_empty() {
            Manner::value_variants()
        } else {
            &self.manners
        }
    }

    fn rounds(&self) -> usize {
        let all = (self.alone + 2 * self.beside).max(1);
        usize::try_from((self.minutes * 60).div_ceil(all))
            .unwrap_or(1)
            .max(1)
    }

    /// Alternates; gives the others of the last phase, who are still there.
    fn phases(
        &self,
        run: &mut Run,
        (url, ways, elsewhere): (&str, &Ways, &Ways),
        remembered: &Arc<Remembered>,
    ) -> Result<Others> {
        let pace = Duration::from_secs(self.pace);
        let start = |ways| Others::start(ways, self.others, pace, self.manners());
        let mut last = None;
        for round in 1..=self.rounds() {
            drop(last.take());
            psql(url, "truncate others")?;
            self.phase(run, (round, ALONE, self.alone), ways, remembered)?;
            let others = start(elsewhere);
            self.phase(run, (round, ELSEWHERE, self.beside), ways, remembered)?;
            drop(others);
            let others = start(ways);
            self.phase(run, (round, BESIDE, self.beside), ways, remembered)?;
            run.add_all(number(round), "others", &others.metrics());
            last = Some(others);
        }
        last.context("no rounds")
    }

    fn phase(
        &self,
        run: &mut Run,
        (round, arm, seconds): (usize, &str, u64),
        ways: &Ways,
        remembered: &Arc<Remembered>,
    ) -> Result<()> {
        let time = Duration::from_secs(seconds);
        let place = ARMS.iter().position(|one| *one == arm).unwrap_or(0);
        let first = ARMS.len() * (round - 1) + place;
        let good = Good {
            clients: self.good,
            first: first * self.good,
            gap: Duration::from_secs_f64(as_f64(self.good as u64) / f64::from(self.rate)),
            time,
        };
        let seen = say::during(arm, time, || good::run(&good, ways, remembered))?;
        run.add_all(number(round), arm, &seen.metrics());
        Ok(())
    }

    /// Ends the program while the others are there.
    fn end(
        &self,
        run: &mut Run,
        windrow: &mut Windrow,
        others: Others,
        memory: Memory,
    ) -> Result<()> {
        let mib = |bytes| as_f64(bytes) / 1_048_576.0;
        let peak = mib(procfs::peak_resident_bytes(windrow.pid())?);
        let samples = memory.end()?;
        let begun = Instant::now();
        windrow.terminate()?;
        let ended = windrow.wait();
        let took = begun.elapsed().as_secs_f64();
        drop(others);
        let now = samples.last().map_or(0.0, |(_, mib)| *mib);
        let most = f64::from(self.memory) + ALLOWED_MIB;
        let metrics = [
            ("RSS MiB peak", peak),
            ("RSS MiB allowed", most),
            ("RSS MiB at the end", now),
            ("s from SIGTERM to the end", took),
        ];
        run.add_all(1, "windrow", &metrics);
        let names = Names {
            title: "Resident memory",
            x: "seconds",
            y: "MiB",
        };
        let line = Series {
            name: "windrow".into(),
            points: samples,
        };
        run.file("memory.svg", plot::lines(names, &[line])?);
        ended?;
        anyhow::ensure!(
            peak < most,
            "{peak:.1} MiB were resident; allowed are {most} MiB"
        );
        Ok(())
    }

    fn conclude(&self, run: &mut Run) -> Result<()> {
        for metric in ["pg p99 ms", "http p99 ms"] {
            let of = |arm| run.median(arm, metric);
            let (alone, elsewhere, beside) = (of(ALONE)?, of(ELSEWHERE)?, of(BESIDE)?);
            let (times, shared) = (beside / alone, beside / elsewhere);
            run.remark(format!(
                "{metric}: {alone:.1} {ALONE}, {elsewhere:.1} with {ELSEWHERE}, {beside:.1} {BESIDE}: \
                 {times:.2} times as much as without them, {shared:.2} times as much as where they \
                 use a second Windrow"
            ));
        }
        Ok(())
    }
}

fn number(round: usize) -> u32 {
    u32::try_from(round).unwrap_or(u32::MAX)
}

/// Samples resident memory every second: seconds since the beginning, and MiB.
struct Memory {
    stop: Sender<()>,
    sampler: JoinHandle<Vec<(f64, f64)>>,
}

impl Memory {
    fn watch(pid: u32) -> Self {
        let start = Instant::now();
        let (stop, stopped) = mpsc::channel();
        let sampler = std::thread::spawn(move || {
            let mut samples = Vec::new();
            while stopped.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                let bytes = procfs::resident_bytes(pid).unwrap_or(0);
                samples.push((start.elapsed().as_secs_f64(), as_f64(bytes) / 1_048_576.0));
            }
            samples
        });
        Self { stop, sampler }
    }

    fn end(self) -> Result<Vec<(f64, f64)>> {
        drop(self.stop);
        self.sampler
            .join()
            .map_err(|_| anyhow!("the sampler panicked"))
    }
}
