//! Single-row requests a second, and their cost: Windrow against the same rows written directly.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};

use super::measure::{Bed, Offer};
use crate::baseline::{self, Written};
use crate::figures::{LIMIT, Meter, Metrics, Run};
use crate::generator::{Health, Inserts, Job, Outcome, Style, Target, limit};
use crate::say;
use crate::servers::cluster::Cluster;
use crate::servers::{Kind, Store};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Load {
    /// The database.
    #[arg(long, value_enum, default_value = "postgres")]
    pub to: Kind,
    /// Clients, each with one request under way.
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Alternating repetitions.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// Repetitions before the first that counts: a server on a Java machine needs some.
    #[arg(long, default_value_t = 0)]
    pub warm_ups: u32,
    /// Beside it the same requests, each with an `Idempotency-Key`.
    #[arg(long)]
    pub keys: bool,
    /// A CrateDB cluster that runs already, as cratedb://HOST:PORT.
    #[arg(long, required_if_eq("to", "cratedb"))]
    pub url: Option<String>,
    /// Replicas of each shard of CrateDB's table.
    #[arg(long, default_value_t = 1)]
    pub replicas: u32,
    /// Processes of CrateDB's nodes, whose CPU time is counted.
    #[arg(long, value_delimiter = ',')]
    pub pids: Vec<u32>,
    /// More arguments for `windrow serve`, behind `--`.
    #[arg(last = true)]
    pub windrow: Vec<String>,
}

/// A program that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arm {
    /// Windrow as it is.
    Windrow,
    /// The same with requests that have keys.
    Keyed,
    /// Windrow with an option to send each row alone.
    Unbatched,
    /// The same program and the same clients, which ask for nothing but whether it is there: what
    /// its HTTP alone costs here.
    Health,
    /// The database without Windrow.
    Direct,
    /// The same by prepared statements, where the usual program has none.
    Prepared,
}

impl Arm {
    fn name(self) -> &'static str {
        match self {
            Self::Windrow => "windrow",
            Self::Keyed => "windrow, with keys",
            Self::Unbatched => "windrow --batch-rows 1",
            Self::Health => "windrow, /healthz",
            Self::Direct => "direct",
            Self::Prepared => "direct, prepared",
        }
    }
}

impl Load {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started or fails.
    pub fn run(&self, root: &Path) -> Result<()> {
        let (to, connections) = (self.to.as_str(), self.connections);
        let title = format!("Single-row requests into {to}, {connections} connections");
        let mut run = Run::new(format!("load-{to}-{connections}"), title);
        let store = self.store()?;
        store.report_version(&mut run)?;
        let arms = self.arms();
        let measure = |run: &mut Run, round, arm| self.measure(&store, run, round, arm);
        Run::new("warm-up", "not kept").rounds(self.warm_ups, &arms, measure)?;
        run.rounds(self.rounds, &arms, measure)?;
        self.conclude(&mut run)?;
        run.store(root)?;
        Ok(())
    }

    fn store(&self) -> Result<Store> {
        match (self.to, &self.url) {
            (Kind::CrateDb, Some(url)) => {
                let cluster = Cluster::at(url, self.replicas, self.pids.clone())?;
                Ok(Store::CrateDb(cluster))
            }
            (kind, None) => Store::start(kind),
            (kind, Some(_)) => bail!(
                "--url names a CrateDB cluster; {} is started by this program",
                kind.as_str()
            ),
        }
    }

    fn arms(&self) -> Vec<Arm> {
        let mut arms = vec![Arm::Windrow, Arm::Health];
        if self.keys {
            arms.push(Arm::Keyed);
        }
        arms.push(Arm::Direct);
        match self.to {
            Kind::Sqlite => arms.push(Arm::Unbatched),
            Kind::MariaDb => arms.push(Arm::Prepared),
            Kind::Postgres | Kind::CrateDb => {}
        }
        arms
    }

    fn measure(&self, store: &Store, run: &mut Run, round: u32, arm: Arm) -> Result<()> {
        let metrics = match arm {
            Arm::Direct | Arm::Prepared => self.direct(store, arm)?,
            _ => self.gateway(store, arm)?,
        };
        run.add_all(round, arm.name(), &metrics);
        Ok(())
    }

    fn offer(&self, arm: Arm) -> Offer {
        let time = Duration::from_secs(self.seconds);
        Offer::closed(arm.name(), self.connections, time)
    }

    fn gateway(&self, store: &Store, arm: Arm) -> Result<Metrics> {
        let mut options = match arm {
            Arm::Unbatched => vec!["--batch-rows", "1"],
            _ => Vec::new(),
        };
        options.extend(self.windrow.iter().map(String::as_str));
        let bed = Bed::start(store, &options)?;
        let job = |first| -> Arc<dyn Job> {
            match arm {
                Arm::Health => Arc::new(Health),
                Arm::Keyed => Arc::new(Inserts::from(Style::HttpWithKey, first)),
                _ => Arc::new(Inserts::from(Style::Http, first)),
            }
        };
        let measured = self
            .offer(arm)
            .measure(&bed.target(), bed.meter(store), job)?;
        match arm {
            Arm::Health => measured.report.all(Outcome::Success)?,
            _ => measured.check(&bed.table)?,
        }
        let resident = bed.windrow.resident_bytes()?;
        bed.table.remove("readings");
        let limit = limit::of_rows(self.connections, Style::Http)?;
        let metrics = measured.metrics.with_mib("windrow RSS MiB", resident);
        Ok(metrics.with(LIMIT, limit))
    }

    /// The same rows without Windrow, by what each database comes with, or by a program of ours.
    fn direct(&self, store: &Store, arm: Arm) -> Result<Metrics> {
        let (clients, time) = (self.connections, Duration::from_secs(self.seconds));
        let table = store.table()?;
        let meter = Meter::new("row").of("database", || store.cpu_time());
        let bar = |write: &dyn Fn() -> Result<Written>| say::during(arm.name(), time, write);
        let written = match (arm, store) {
            (Arm::Prepared, _) => bar(&|| baseline::prepared(&table, clients, time))?,
            (_, Store::Sqlite(_)) => bar(&|| baseline::prepared(&table, 1, time))?,
            (_, Store::Postgres(server)) => {
                bar(&|| baseline::pgbench(server, &table.url, clients, time))?
            }
            (_, Store::MariaDb(server)) => bar(&|| baseline::slap(server, &table, clients, time))?,
            (_, Store::CrateDb(cluster)) => {
                let insert = baseline::CrateInsert::new(&table.schema()?.table());
                let target = Target::Http(cluster.address());
                let job = |first| -> Arc<dyn Job> { Arc::new(insert.from(first)) };
                let measured = self.offer(arm).measure(&target, |meter| meter, job)?;
                measured.check(&table)?;
                Written {
                    rows: measured.written(),
                    metrics: measured.metrics,
                }
            }
        };
        let metrics = written.metrics.and(meter.metrics(written.rows));
        table.remove("readings");
        Ok(metrics)
    }

    fn conclude(&self, run: &mut Run) -> Result<()> {
        let (rate, cpu) = ("rows/s", "database CPU us/row");
        let times = |of: Arm, metric: &str, run: &Run| -> Result<f64> {
            let windrow = run.median(Arm::Windrow.name(), metric)?;
            Ok(windrow / run.median(of.name(), metric)?)
        };
        run.remark(format!(
            "{:.2} of the requests a second that the same program answers without writing anything",
            times(Arm::Health, rate, run)?
        ));
        let direct = times(Arm::Direct, rate, run)?;
        match self.to {
            Kind::Postgres => {
                let share = times(Arm::Direct, cpu, run)?;
                run.remark(format!(
                    "{direct:.2} times the rows per second of pgbench with prepared single-row inserts, \
                     at {share:.3} of PostgreSQL's CPU per row"
                ));
            }
            Kind::Sqlite => {
                let alone = times(Arm::Unbatched, rate, run)?;
                run.remark(format!(
                    "{direct:.1} times the rows per second of a program that writes one row a transaction, \
                     {alone:.1} times those of Windrow that does so"
                ));
            }
            Kind::MariaDb => {
                for (arm, program) in [
                    (Arm::Direct, "mariadb-slap with single-row inserts"),
                    (Arm::Prepared, "a program with prepared single-row inserts"),
                ] {
                    let (times, share) = (times(arm, rate, run)?, times(arm, cpu, run)?);
                    run.remark(format!(
                        "{times:.2} times the rows per second of {program}, at {share:.3} of MariaDB's CPU per row"
                    ));
                }
            }
            Kind::CrateDb => run.remark(format!(
                "{direct:.2} times the rows per second of clients that send the same rows to CrateDB's own endpoint"
            )),
        }
        Ok(())
    }
}
