//! Thousands of misbehaving clients beside a few good ones: how much slower do these become, how
//! much memory is taken, is every confirmed row there, and does the program end on a signal?

mod good;
pub(in crate::experiments) mod manners;
pub(in crate::experiments) mod others;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::ValueEnum as _;
use windrow_testkit::postgres::Postgres;
use windrow_testkit::procfs;

use super::measure::Bed;
use super::outcomes::Remembered;
use super::sampler::Sampler;
use crate::figures::plot::{self, Names, Series};
use crate::figures::{Metrics, Run, mib};
use crate::generator::Target;
use crate::say;
use crate::servers::{Store, Table};
use good::Good;
use manners::Manner;
use others::Others;

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
        let store = Store::Postgres(server);
        store.report_version(&mut run)?;
        let table = store.table()?;
        table.query(OTHERS_TABLE)?;
        let (mut bed, second) = (self.windrow(&table)?, self.windrow(&table)?);
        let (pid, remembered) = (bed.windrow.pid(), Remembered::new(self.clients()));
        let memory = Sampler::start(Duration::from_secs(1), move |at| {
            Ok((at, mib(procfs::resident_bytes(pid).unwrap_or(0))))
        });
        let others = self.phases(&mut run, (&bed, &second), &remembered)?;
        drop(second);
        let ended = self.end(&mut run, &mut bed, others, memory);
        let verified = remembered.verify(&table.ids()?);
        run.add_all(1, "ledger", &verified.metrics());
        self.conclude(&mut run)?;
        run.store(root)?;
        verified.check()?;
        ended
    }

    fn windrow(&self, table: &Table) -> Result<Bed> {
        let memory = format!("{}MiB", self.memory);
        let mut all = vec!["--pg", "127.0.0.1:0", "--memory", &memory];
        all.extend(self.windrow.iter().map(String::as_str));
        Bed::before(table.clone(), &all)
    }

    /// Returns the number of all good clients: those of each phase are others.
    fn clients(&self) -> usize {
        self.rounds() as usize * ARMS.len() * self.good
    }

    fn manners(&self) -> &[Manner] {
        if self.manners.is_empty() {
            Manner::value_variants()
        } else {
            &self.manners
        }
    }

    fn rounds(&self) -> u32 {
        let all = (self.alone + 2 * self.beside).max(1);
        let rounds = u32::try_from((self.minutes * 60).div_ceil(all));
        rounds.unwrap_or(1).max(1)
    }

    /// Alternates; gives the others of the last phase, who are still there.
    fn phases(
        &self,
        run: &mut Run,
        (bed, second): (&Bed, &Bed),
        remembered: &Remembered,
    ) -> Result<Others> {
        let targets = |bed: &Bed| anyhow::Ok([bed.pg_target()?, bed.target()]);
        let (here, elsewhere) = (targets(bed)?, targets(second)?);
        let pace = Duration::from_secs(self.pace);
        let start = |targets| Others::start(targets, self.others, pace, self.manners());
        let mut last = None;
        for round in 1..=self.rounds() {
            drop(last.take());
            bed.table.empty("others")?;
            self.phase(run, (round, ALONE, self.alone), &here, remembered)?;
            let others = start(&elsewhere);
            self.phase(run, (round, ELSEWHERE, self.beside), &here, remembered)?;
            drop(others);
            let others = start(&here);
            self.phase(run, (round, BESIDE, self.beside), &here, remembered)?;
            run.add_all(round, "others", &others.metrics());
            last = Some(others);
        }
        last.context("no rounds")
    }

    fn phase(
        &self,
        run: &mut Run,
        (round, arm, seconds): (u32, &str, u64),
        targets: &[Target; 2],
        remembered: &Remembered,
    ) -> Result<()> {
        let time = Duration::from_secs(seconds);
        let place = ARMS.iter().position(|one| *one == arm).unwrap_or(0);
        let good = Good {
            clients: self.good,
            first: (ARMS.len() * (round as usize - 1) + place) * self.good,
            rate: self.rate.into(),
            time,
        };
        let metrics = say::during(arm, time, || good.run(targets, remembered))?;
        run.add_all(round, arm, &metrics);
        Ok(())
    }

    /// Ends the program while the others are there.
    fn end(
        &self,
        run: &mut Run,
        bed: &mut Bed,
        others: Others,
        memory: Sampler<(f64, f64)>,
    ) -> Result<()> {
        let peak = mib(procfs::peak_resident_bytes(bed.windrow.pid())?);
        let samples = memory.end()?;
        let begun = Instant::now();
        bed.windrow.terminate()?;
        let ended = bed.windrow.wait();
        let took = begun.elapsed().as_secs_f64();
        drop(others);
        let now = samples.last().map_or(0.0, |(_, mib)| *mib);
        let most = f64::from(self.memory) + ALLOWED_MIB;
        let metrics = Metrics::new()
            .with("RSS MiB peak", peak)
            .with("RSS MiB allowed", most)
            .with("RSS MiB at the end", now)
            .with("s from SIGTERM to the end", took);
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
        ensure!(
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
