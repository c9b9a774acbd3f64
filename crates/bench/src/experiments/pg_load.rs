//! An application that changes only its port: pgbench's single-row autocommit inserts, direct,
//! through Windrow and through PgBouncer.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;

use crate::baseline::pgbench::{Mode, Pgbench};
use crate::figures::Run;
use crate::figures::plot::{self, Names, Series};
use crate::http::report::as_f64;
use crate::say;
use crate::servers::pg::{Database, Way};

/// Each client's rows before this one are written while measuring, rows from it on while warming
/// up.
const WARM: u64 = 50_000_000;

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct PgLoad {
    /// Numbers of clients, each with one insert under way.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 64, 256, 1000])]
    pub clients: Vec<usize>,
    /// How clients speak.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Mode::Prepared, Mode::Extended, Mode::Simple])]
    pub modes: Vec<Mode>,
    /// Seconds of each measurement; a second (two from 256 clients on) of warming up comes before
    /// it.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Alternating repetitions.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// Microseconds that each fsync of the server takes longer than the disk needs.
    #[arg(long, default_value_t = 0)]
    pub fsync_delay: u64,
    /// How clients come to the database.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Way::Direct, Way::Windrow, Way::PgBouncer])]
    pub ways: Vec<Way>,
    /// More arguments for `windrow serve`, behind `--`.
    #[arg(last = true)]
    pub windrow: Vec<String>,
}

/// What is measured at once.
#[derive(Clone, Copy)]
struct Arm {
    way: Way,
    mode: Mode,
    clients: usize,
}

impl Arm {
    fn name(self) -> String {
        let (way, mode) = (self.way.as_str(), self.mode.as_str());
        format!("{way} {mode} {}", self.clients)
    }
}

const RATE: &str = "rows/s";
const CPU: &str = "database CPU us/row";

impl PgLoad {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, or a row that was confirmed is not there.
    pub fn run(&self, root: &Path) -> Result<()> {
        let (name, with) = match self.fsync_delay {
            0 => ("pg-load".to_owned(), String::new()),
            us => (
                format!("pg-load-fsync-{us}us"),
                format!(", each fsync {us} us slower than the disk"),
            ),
        };
        let title = format!("Single-row inserts of pgbench, by number of clients{with}");
        let mut run = Run::new(name, title);
        let database = Database::start(Duration::from_micros(self.fsync_delay))?;
        database.tell_versions(&mut run, &self.ways)?;
        let arms = self.arms(&mut run)?;
        for round in 1..=self.rounds {
            for arm in &arms {
                self.measure(&database, &mut run, round, *arm)?;
            }
        }
        self.conclude(&mut run, &arms)?;
        run.store(root)?;
        Ok(())
    }

    /// All ways of a number of clients follow each other closely.
    fn arms(&self, run: &mut Run) -> Result<Vec<Arm>> {
        let mut arms = Vec::new();
        for mode in &self.modes {
            for clients in &self.clients {
                for way in &self.ways {
                    if *mode != Mode::Prepared || way.prepares()? {
                        arms.push(Arm {
                            way: *way,
                            mode: *mode,
                            clients: *clients,
                        });
                    }
                }
            }
        }
        if self.ways.contains(&Way::PgBouncer) && !Way::PgBouncer.prepares()? {
            run.remark("this PgBouncer cannot follow prepared statements in transaction mode (1.21 and later can)");
        }
        Ok(arms)
    }

    fn measure(&self, database: &Database, run: &mut Run, round: u32, arm: Arm) -> Result<()> {
        let gate = database.open(arm.way, &self.windrow)?;
        let url = gate.address().url();
        let pgbench = |seconds, first| Pgbench {
            server: database.server(),
            url: &url,
            clients: arm.clients,
            time: Duration::from_secs(seconds),
            mode: arm.mode,
            first,
        };
        let warming = if arm.clients < 256 { 1 } else { 2 };
        let (warm, _) = pgbench(warming, WARM).measure()?;
        let before = (database.server().cpu_time(), gate.cpu_time()?);
        let time = Duration::from_secs(self.seconds);
        let (told, latencies) =
            say::during(&arm.name(), time, || pgbench(self.seconds, 0).measure())?;
        let micros = |time: Duration| time.as_secs_f64() * 1e6 / as_f64(told.rows.max(1));
        let mut metrics = vec![
            (RATE, told.rate),
            ("p50 ms", latencies.at(50.0)),
            ("p99 ms", latencies.at(99.0)),
            (CPU, micros(database.server().cpu_time() - before.0)),
        ];
        if let (Some(before), Some(after)) = (before.1, gate.cpu_time()?) {
            metrics.push(("gateway CPU us/row", micros(after - before)));
        }
        if let Some((_, peak)) = gate.resident_mib()? {
            metrics.push(("gateway peak MiB", peak));
        }
        run.add_all(round, &arm.name(), &metrics);
        let (told, there) = (warm.rows + told.rows, gate.count()?);
        anyhow::ensure!(
            told == there,
            "{told} rows were confirmed, {there} are there"
        );
        Ok(())
    }

    fn conclude(&self, run: &mut Run, arms: &[Arm]) -> Result<()> {
        let compared = self.ways.contains(&Way::Direct);
        for arm in arms
            .iter()
            .filter(|arm| compared && arm.way == Way::Windrow)
        {
            let direct = Arm {
                way: Way::Direct,
                ..*arm
            };
            let share = |run: &Run, metric| {
                anyhow::Ok(run.median(&arm.name(), metric)? / run.median(&direct.name(), metric)?)
            };
            let (rate, cpu) = (share(run, RATE)?, share(run, CPU)?);
            run.remark(format!(
                "{}, {} clients: {rate:.2} times the direct rate at {cpu:.3} of the database's CPU per row",
                arm.mode.as_str(),
                arm.clients
            ));
        }
        run.remark("CPU of the database includes opening its connections");
        for mode in &self.modes {
            let svg = self.plot(run, *mode)?;
            run.file(&format!("{}.svg", mode.as_str()), svg);
        }
        Ok(())
    }

    fn plot(&self, run: &Run, mode: Mode) -> Result<String> {
        let series: Vec<Series> = self
            .ways
            .iter()
            .map(|way| {
                let point = |clients: &usize| {
                    let arm = Arm {
                        way: *way,
                        mode,
                        clients: *clients,
                    };
                    let rate = run.median(&arm.name(), RATE).ok()?;
                    Some((as_f64(*clients as u64).log2(), rate))
                };
                Series {
                    name: way.as_str().into(),
                    points: self.clients.iter().filter_map(point).collect(),
                }
            })
            .filter(|series| !series.points.is_empty())
            .collect();
        let title = format!("Single-row inserts, {}", mode.as_str());
        let names = Names {
            title: &title,
            x: "clients, as a power of two",
            y: "rows a second",
        };
        plot::lines(names, &series)
    }
}
