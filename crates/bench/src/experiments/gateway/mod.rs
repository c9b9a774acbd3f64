//! An application that changes only its port: single-row inserts over PostgreSQL's or MySQL's
//! protocol, direct, through Windrow, through PgBouncer and through a proxy that does nothing, by
//! the same generator; and where that costs more than it brings.

pub(super) mod case;

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::builder::RangedU64ValueParser;
use windrow_testkit::pgbouncer::{self, Pooling};
use windrow_testkit::procfs;

use self::case::{Case, Times};
use super::flawed::{Flaw, Mix};
use crate::figures::plot::{self, Names, Scale};
use crate::figures::{Run, in_turn};
use crate::generator::pg::Mode;
use crate::generator::transaction::Shape;
use crate::number::as_f64;
use crate::servers::gate::{self, Gate, Way, pooling_of_prepared};
use crate::servers::{Kind, Store};

/// Reads a number of clients.
fn at_least_one() -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(1..)
}

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Gateway {
    /// The database: PostgreSQL, or MariaDB with clients that speak MySQL's protocol.
    #[arg(long, value_enum, default_value = "postgres")]
    pub to: Kind,
    /// The statements that each client sends: single rows, or transactions as web frameworks send
    /// them, whose statements each wait for the answer to the one before. Transactions are measured
    /// by number of clients only, with prepared INSERTs, and on PostgreSQL only.
    #[arg(long, value_enum, default_value_t = Shape::Single)]
    pub shape: Shape,
    /// Numbers of clients, each with one row or transaction under way. The server takes 1,050
    /// clients that come directly; more are measured without these.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 8, 64, 256, 1_000], value_parser = at_least_one())]
    pub clients: Vec<usize>,
    /// The protocol of clients that send or read single rows: `extended` on PostgreSQL only.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Mode::Prepared, Mode::Simple, Mode::Extended])]
    pub modes: Vec<Mode>,
    /// Fixed rates, in rows a second of all clients together. Without a value: none.
    #[arg(long, num_args = 0.., value_delimiter = ',', default_values_t = [500, 1_000, 5_000],
        value_parser = clap::value_parser!(u32).range(1..))]
    pub rates: Vec<u32>,
    /// Rows in a thousand that the database refuses. Without a value: none.
    #[arg(long, num_args = 0.., value_delimiter = ',', default_values_t = [10],
        value_parser = clap::value_parser!(u64).range(..=1_000))]
    pub bad_per_mille: Vec<u64>,
    /// Numbers of clients that are connected while only some of them write. Without a value: none.
    #[arg(long, num_args = 0.., value_delimiter = ',', default_values_t = [10_000],
        value_parser = at_least_one())]
    pub connected: Vec<usize>,
    /// The clients of fixed rates, those with bad rows, and those that write among the connected.
    #[arg(long, default_value_t = 64, value_parser = at_least_one())]
    pub some: usize,
    /// Milliseconds of each measurement.
    #[arg(long, default_value_t = 3_000)]
    pub cell_ms: u64,
    /// Milliseconds before each measurement, in which the same is done.
    #[arg(long, default_value_t = 1_000)]
    pub warm_up_ms: u64,
    /// Alternating repetitions: every second one goes from the last measurement to the first.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// Microseconds that each fsync of the server takes longer than the disk needs.
    #[arg(long, default_value_t = 0)]
    pub fsync_delay: u64,
    /// Microseconds of a round trip between the gateway and PostgreSQL, whose clients are on the
    /// gateway's side: held back by a proxy of this program.
    #[arg(long, default_value_t = 0)]
    pub line_us: u64,
    /// The ways of clients to the database; PgBouncer only if it is installed.
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = [Way::Direct, Way::Windrow, Way::PgBouncer, Way::Forward])]
    pub ways: Vec<Way>,
    /// More arguments for `windrow serve`, behind `--`.
    #[arg(last = true)]
    pub windrow: Vec<String>,
}

/// Files that are open beside the clients' connections.
const SPARE_FILES: usize = 100;

impl Gateway {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// A program cannot be started, or a client gets an outcome that is not true.
    pub fn run(&self, root: &Path) -> Result<()> {
        let (mut name, database) = match self.to {
            Kind::MariaDb => ("gateway-mariadb".to_owned(), "MariaDB"),
            _ => ("gateway".to_owned(), "PostgreSQL"),
        };
        let mut title = format!("Clients of {database} that changed only their port");
        if self.shape != Shape::Single {
            name.push_str(&format!("-{}", self.shape.as_str()));
            title.push_str(&format!(", shape: {}", self.shape.as_str()));
        }
        if self.fsync_delay > 0 {
            let us = self.fsync_delay;
            name.push_str(&format!("-fsync-{us}us"));
            title.push_str(&format!(", each fsync {us} us slower than the disk"));
        }
        if self.line_us > 0 {
            let us = self.line_us;
            name.push_str(&format!("-line-{us}us"));
            title.push_str(&format!(", a round trip of {us} us to the database"));
        }
        let mut run = Run::new(name, title);
        ensure!(
            self.to != Kind::MariaDb || matches!(self.shape, Shape::Single | Shape::Read),
            "transactions are measured on PostgreSQL only"
        );
        let ways = self.ways(&mut run)?;
        self.report_what_does_not_fit(&mut run, &ways)?;
        let store = gate::start(self.to, Duration::from_micros(self.fsync_delay))?;
        store.report_version(&mut run)?;
        if ways.contains(&Way::PgBouncer) {
            run.version("PgBouncer", pgbouncer::version()?);
        }
        run.rounds(self.rounds, &self.loads(), |run, round, load| {
            self.measure(&store, &ways, load, (run, round))
        })?;
        self.conclude(&mut run, &ways)?;
        self.draw(&mut run, &ways)?;
        run.store(root)?;
        Ok(())
    }

    /// Returns the ways that can be measured here.
    fn ways(&self, run: &mut Run) -> Result<Vec<Way>> {
        let mut ways = self.ways.clone();
        if self.to == Kind::MariaDb {
            ways.retain(|way| *way != Way::PgBouncer);
        }
        if ways.contains(&Way::PgBouncer) && pgbouncer::version().is_err() {
            run.remark("left out: PgBouncer, which is not installed here");
            ways.retain(|way| *way != Way::PgBouncer);
        }
        if ways.contains(&Way::PgBouncer) && matches!(pooling_of_prepared()?, Pooling::Session(_)) {
            run.remark("PgBouncer is in session mode where clients prepare: this one cannot follow that in transaction mode (1.21 and later can)");
        }
        if self.line_us > 0 {
            run.remark("the line is a proxy of this program, which costs CPU time for each message that crosses it: those of each direct client, and a gateway's fewer and larger ones");
        }
        if ways.contains(&Way::Forward) {
            run.remark("forward: a proxy that forwards bytes and does nothing else, measured with prepared statements alone: it does not know what it passes on");
        }
        Ok(ways)
    }

    /// Which ways have no room for which loads, and whether this process has room for them all.
    fn report_what_does_not_fit(&self, run: &mut Run, ways: &[Way]) -> Result<()> {
        let files = procfs::raise_open_files()?;
        for load in self.loads() {
            // The generator's own limit is measured within this process: both ends are here.
            let (all, busy) = load.clients();
            let needed = (all + busy + SPARE_FILES) as u64;
            ensure!(
                needed <= files,
                "{all} clients need {needed} open files, and {files} are allowed (ulimit -Hn)"
            );
            for way in ways {
                if load.tells_something(*way) && !load.fits(self.to, *way)? {
                    run.remark(format!("left out: {}, for want of room", load.arm(*way)));
                }
            }
        }
        Ok(())
    }

    /// The load of a number of clients, each with one row or transaction under way.
    fn by_clients(&self, clients: usize, mode: Mode) -> Case {
        match self.shape {
            Shape::Single => Case::Closed { clients, mode },
            Shape::Read => Case::Read { clients, mode },
            shape => Case::Transactions { clients, shape },
        }
    }

    fn loads(&self) -> Vec<Case> {
        let modes = match self.shape {
            Shape::Single | Shape::Read => self.modes.as_slice(),
            _ => &[Mode::Prepared],
        };
        let has = |mode: &&Mode| self.to != Kind::MariaDb || **mode != Mode::Extended;
        let closed = modes.iter().filter(has).flat_map(|mode| {
            let each = self.clients.iter();
            each.map(|clients| self.by_clients(*clients, *mode))
        });
        if self.shape != Shape::Single {
            return closed.collect();
        }
        let clients = self.some;
        let open = self.rates.iter().map(|rate| Case::Open {
            clients,
            rate: *rate,
        });
        let flawed = self.bad_per_mille.iter().flat_map(|per_mille| {
            [Flaw::Duplicate, Flaw::Check].map(|flaw| Case::Flawed {
                clients,
                mix: Mix {
                    flaw,
                    per_mille: *per_mille,
                },
            })
        });
        let connected = self.connected.iter().map(|all| Case::Connected {
            all: *all,
            busy: clients,
        });
        closed.chain(open).chain(flawed).chain(connected).collect()
    }

    /// All ways of a load follow each other closely, every second time from the last to the first.
    fn measure(
        &self,
        store: &Store,
        ways: &[Way],
        load: Case,
        (run, round): (&mut Run, u32),
    ) -> Result<()> {
        let limit = load.limit(self.to)?;
        let times = Times {
            warm_up: Duration::from_millis(self.warm_up_ms),
            measured: Duration::from_millis(self.cell_ms),
        };
        for way in in_turn(round, ways) {
            if load.tells_something(way) && load.fits(self.to, way)? {
                let prepares = load.mode() == Mode::Prepared;
                let trip = Duration::from_micros(self.line_us);
                let gate = Gate::open_far((store, trip), way, prepares, &self.windrow)?;
                case::measure((store, &gate), (run, round), (way, load, limit), times)?;
            }
        }
        Ok(())
    }

    /// Windrow and PgBouncer beside direct clients, and where Windrow loses.
    fn conclude(&self, run: &mut Run, ways: &[Way]) -> Result<()> {
        let has = |way| ways.contains(&way);
        if !has(Way::Direct) || !has(Way::Windrow) {
            return Ok(());
        }
        let mut lost = Vec::new();
        for load in self.loads() {
            let is_lost = self.compare(run, load, Way::Windrow)?;
            if is_lost {
                lost.push(load.arm(Way::Windrow));
            }
            for way in [Way::PgBouncer, Way::Relayed] {
                if has(way) {
                    self.compare(run, load, way)?;
                }
            }
        }
        run.remark(match lost.is_empty() {
            true => "Windrow loses nowhere here".to_owned(),
            false => format!(
                "Windrow loses by its median (lower rate, higher p50) here: {}",
                lost.join("; ")
            ),
        });
        run.remark(match self.shape {
            Shape::Single => {
                "every row that was confirmed is there, and every bad one got its own error"
            }
            Shape::Read => "every row was read",
            _ => "every transaction that was confirmed is there as a whole, and no other",
        });
        Ok(())
    }

    /// Says how a way compares with direct clients. Returns true if it is slower.
    fn compare(&self, run: &mut Run, load: Case, way: Way) -> Result<bool> {
        let unit = self.shape.unit();
        let is_open = matches!(load, Case::Open { .. });
        let metric = match is_open {
            true => "p50 ms".to_owned(),
            false => format!("{unit}s/s"),
        };
        let arm = load.arm(way);
        let both = |metric: &str| {
            let direct = run.median(&load.arm(Way::Direct), metric)?;
            anyhow::Ok((run.median(&arm, metric)?, direct))
        };
        // A load for which one of them has no capacity is not compared.
        let Ok((measured, direct)) = both(&metric) else {
            return Ok(false);
        };
        let (is_slower, said) = match is_open {
            true => (
                measured > direct,
                format!("p50 {measured:.2} ms, direct {direct:.2} ms"),
            ),
            false => (
                measured < direct,
                format!("{:.2} times the direct rate", measured / direct),
            ),
        };
        let (cpu, direct_cpu) = both(&format!("database CPU us/{unit}"))?;
        let share = cpu / direct_cpu;
        // The clock of a short measurement may not have moved.
        let cost = match share.is_finite() {
            true => format!(", at {share:.2} of the database's CPU per {unit}"),
            false => String::new(),
        };
        run.remark(format!("{arm}: {said}{cost}"));
        Ok(is_slower)
    }

    fn draw(&self, run: &mut Run, ways: &[Way]) -> Result<()> {
        let mode = self.modes.first().copied().unwrap_or_default();
        let unit = self.shape.unit();
        let rate = format!("{unit}s/s");
        let title = match self.shape {
            Shape::Single => "Rows a second by number of clients",
            _ => "Transactions a second by number of clients",
        };
        let closed: Vec<(f64, Case)> = self
            .clients
            .iter()
            .map(|clients| (as_f64(*clients as u64), self.by_clients(*clients, mode)))
            .collect();
        let open: Vec<(f64, Case)> = self
            .rates
            .iter()
            .map(|rate| {
                let clients = self.some;
                let load = Case::Open {
                    clients,
                    rate: *rate,
                };
                (f64::from(*rate), load)
            })
            .collect();
        let plots = [
            ("rate", title, "clients", rate.as_str(), &closed),
            (
                "p99",
                "99th percentile by number of clients",
                "clients",
                "p99 ms",
                &closed,
            ),
            (
                "fixed",
                "Median latency at fixed rates",
                "rows a second offered",
                "p50 ms",
                &open,
            ),
        ];
        for (file, title, x, metric, loads) in plots {
            let curves: Vec<_> = ways
                .iter()
                .map(|way| {
                    let arms: Vec<_> = loads.iter().map(|(x, load)| (*x, load.arm(*way))).collect();
                    run.curve(way.as_str(), metric, &arms)
                })
                .filter(|curve| !curve.points.is_empty())
                .collect();
            if curves.is_empty() {
                continue;
            }
            let names = Names {
                title,
                x,
                y: metric,
            };
            let svg = plot::curves(names, Scale::Log, &curves, &[])?;
            run.file(&format!("{file}.svg"), svg);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Arguments {
        #[command(flatten)]
        gateway: Gateway,
    }

    #[test]
    fn numbers_that_cannot_be_measured_are_refused() {
        for wrong in [
            "--rates=0",
            "--clients=8,0",
            "--connected=0",
            "--some=0",
            "--bad-per-mille=1001",
        ] {
            let refused = Arguments::try_parse_from(["gateway", wrong]).map(|a| a.gateway);
            let message = refused.unwrap_err().to_string();
            assert!(message.contains("is not in"), "{wrong}: {message}");
        }
        let none = Arguments::try_parse_from(["gateway", "--rates"]).unwrap();
        assert!(none.gateway.rates.is_empty());
    }
}
