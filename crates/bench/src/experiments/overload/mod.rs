//! More than can be carried: what is refused, what memory does, and how soon it is over. Good
//! clients send single rows all the time; trouble begins beside them, lasts a while, and ends.

mod statements;
mod streams;
mod timeline;
mod trouble;
mod under_load;

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use self::statements::Statements;
use self::timeline::Sample;
pub use self::trouble::Trouble;
use self::trouble::{Size, TroubleResult};
use self::under_load::{Ended, UnderLoad};
use crate::figures::plot::{self, Names, Series};
use crate::figures::{LIMIT, Metrics, Run, mib};
use crate::generator::{Style, limit};
use crate::number::as_f64;
use crate::servers::{Kind, Store};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Overload {
    /// The kinds of trouble.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Trouble::TenTimes, Trouble::Stalled, Trouble::Killed, Trouble::BadRows, Trouble::BadStatements, Trouble::Deaf])]
    pub troubles: Vec<Trouble>,
    /// Good clients, each with one row under way.
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Clients that make trouble: with large rows, with bad ones, those that never read.
    #[arg(long, default_value_t = 256)]
    pub flood: usize,
    /// Bodies without end while the database stands still.
    #[arg(long, default_value_t = 64)]
    pub streams: usize,
    /// Windrow's memory budget in MiB.
    #[arg(long, default_value_t = 16)]
    pub memory: u32,
    /// KiB of a large row: the budget must hold fewer of them than --flood.
    #[arg(long, default_value_t = 128)]
    pub row_kib: usize,
    /// Milliseconds that each row takes the slow database.
    #[arg(long, default_value_t = 5)]
    pub slow_ms: u64,
    /// Milliseconds of the time before, and of the trouble.
    #[arg(long, default_value_t = 5_000)]
    pub phase_ms: u64,
    /// Milliseconds before both.
    #[arg(long, default_value_t = 2_000)]
    pub warm_up_ms: u64,
    /// Alternating repetitions: every second one goes from the last trouble to the first.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
}

/// Resident memory that is allowed above the budget: the program itself, buffers of connections.
const ALLOWED_MIB: f64 = 64.0;

/// The share of the rate before that means that it is over.
const BACK: f64 = 0.8;

/// The timeout until the good clients have their rate again.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// The moments of one measurement, in seconds since its beginning.
struct Moments {
    begun: f64,
    trouble: f64,
    over: f64,
    /// When the rate before was reached again, to the second.
    back: f64,
}

impl Overload {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// A program cannot be started, a client gets an outcome that is not true, service does not
    /// resume, or memory is above the allowed value.
    pub fn run(&self, root: &Path) -> Result<()> {
        let mut run = Run::new("overload", "More than can be carried, before PostgreSQL");
        let store = Store::start(Kind::Postgres)?;
        store.report_version(&mut run)?;
        run.rounds(
            self.rounds,
            &self.troubles,
            |run, round, trouble| match trouble {
                Trouble::BadStatements => self.statements().measure(run, round),
                _ => self.measure(&store, run, round, trouble),
            },
        )?;
        if self.troubles.contains(&Trouble::BadStatements) {
            Statements::remark(&mut run)?;
        }
        let allowed = self.allowed_mib();
        run.remark(
            "while the database stands still, the rows of bodies without end fill the budget and then the \
             kernel's buffers of their sockets, and all of them are written before it is over",
        );
        run.remark("rows/s are those of the good clients: before, and while there is trouble");
        run.remark(format!(
            "memory never passed the budget of {} MiB and the {ALLOWED_MIB} MiB that the program may take beside it ({allowed} MiB)",
            self.memory
        ));
        run.remark("every row that was confirmed is there, none that was refused is");
        run.remark(format!(
            "it is over once the good clients have {:.0} % of their rate before for a second",
            BACK * 100.0
        ));
        run.store(root)?;
        Ok(())
    }

    fn measure(&self, store: &Store, run: &mut Run, round: u32, trouble: Trouble) -> Result<()> {
        let table = store.table()?;
        trouble.prepare(&table, self.slow_ms)?;
        let memory = format!("{}MiB", self.memory);
        let options = ["--memory", &memory, "--pg", "127.0.0.1:0"];
        let load = UnderLoad::start(table, self.connections, &options)?;
        thread::sleep(Duration::from_millis(self.warm_up_ms));
        let (begun, rate) = self.before(&load);
        let start = load.timeline.now();
        let size = Size {
            good: self.connections,
            clients: self.flood,
            streams: self.streams,
            row_bytes: self.row_kib << 10,
            time: self.phase(),
        };
        let seen = trouble.make(size, store, &load, rate)?;
        let moments = Moments {
            begun,
            trouble: start,
            over: load.timeline.now(),
            back: wait_until_back(&load, rate * BACK)?,
        };
        let troubled = seen.result(rate)?;
        let ended = load.end()?;
        self.keep((run, round), trouble, (&ended, &troubled), &moments)?;
        if round == 1 {
            self.draw(run, trouble, &ended.samples)?;
        }
        ended.verified.check()?;
        let (rows, all) = (
            ended.verified.confirmed + troubled.rows,
            ended.there.len() as u64,
        );
        ensure!(all >= rows, "{all} rows are there, {rows} were confirmed");
        Ok(())
    }

    /// Returns the rate of the good clients alone, and since when they had it.
    fn before(&self, load: &UnderLoad) -> (f64, f64) {
        let (begun, rows, start) = (load.timeline.now(), load.live().successes(), Instant::now());
        thread::sleep(self.phase());
        let rows = load.live().successes() - rows;
        (begun, as_f64(rows) / start.elapsed().as_secs_f64())
    }

    fn keep(
        &self,
        (run, round): (&mut Run, u32),
        trouble: Trouble,
        (ended, troubled): (&Ended, &TroubleResult),
        moments: &Moments,
    ) -> Result<()> {
        let samples = &ended.samples;
        let before = timeline::between(samples, (moments.begun, moments.trouble));
        let meanwhile = timeline::between(samples, (moments.trouble, moments.over));
        // Samples tell it to a tenth of a second, if they go on for long enough.
        let back = timeline::back_after(samples, moments.over, before * BACK);
        let back = back.unwrap_or(moments.back - moments.over);
        let peak = peak_mib(samples);
        let metrics = Metrics::new()
            .with("rows/s", before)
            .with("rows/s meanwhile", meanwhile)
            .with("s until it is over", back)
            .with("peak MiB", peak)
            .with(LIMIT, limit::of_rows(self.connections, Style::Http)?)
            .and(troubled.metrics.clone())
            .and(ended.verified.metrics());
        run.add_all(round, trouble.as_str(), &metrics);
        let most = self.allowed_mib();
        ensure!(
            peak < most,
            "{}: {peak:.1} MiB resident; allowed are {most} MiB",
            trouble.as_str()
        );
        Ok(())
    }

    fn statements(&self) -> Statements {
        Statements {
            good: self.connections,
            flood: self.flood,
            warm_up: Duration::from_millis(self.warm_up_ms),
            phase: self.phase(),
        }
    }

    fn phase(&self) -> Duration {
        Duration::from_millis(self.phase_ms)
    }

    fn allowed_mib(&self) -> f64 {
        f64::from(self.memory) + ALLOWED_MIB
    }

    fn draw(&self, run: &mut Run, trouble: Trouble, samples: &[Sample]) -> Result<()> {
        let end = samples.last().map_or(0.0, |s| s.at);
        let most = self.allowed_mib();
        let allowed = Series {
            name: "allowed".into(),
            points: vec![(0.0, most), (end, most)],
        };
        let draw = |what: &str, y, lines: &[Series]| {
            let title = format!("{what}: {}", trouble.as_str());
            let x = "seconds";
            plot::lines(
                Names {
                    title: &title,
                    x,
                    y,
                },
                lines,
            )
        };
        let file = trouble.file();
        let rate = draw("Good clients", "rows/s", &[timeline::rate(samples)])?;
        run.file(&format!("{file}-rate.svg"), rate);
        let memory = draw("Memory", "MiB", &[timeline::resident(samples), allowed])?;
        run.file(&format!("{file}-memory.svg"), memory);
        run.file(&format!("{file}-timeline.csv"), timeline::csv(samples));
        Ok(())
    }
}

/// Waits for a second in which a rate is reached; says when it began.
fn wait_until_back(load: &UnderLoad, rate: f64) -> Result<f64> {
    let start = Instant::now();
    loop {
        let begun = load.timeline.now();
        let (rows, since) = (load.live().successes(), Instant::now());
        thread::sleep(timeline::ENOUGH);
        let rows = load.live().successes() - rows;
        if as_f64(rows) / since.elapsed().as_secs_f64() >= rate {
            return Ok(begun);
        }
        ensure!(
            start.elapsed() < RECOVERY_TIMEOUT,
            "the good clients do not have {rate:.0} rows a second again within {RECOVERY_TIMEOUT:?}"
        );
    }
}

fn peak_mib(samples: &[Sample]) -> f64 {
    mib(samples.iter().map(|s| s.resident).max().unwrap_or(0))
}
