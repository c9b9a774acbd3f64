//! Rows over a slow line: the ways to write them, and how each grows with the line's round trip.
//!
//! A proxy delays what passes between the client's side and PostgreSQL. Windrow stands at the
//! client's side of the line. Everybody is connected and has prepared, and Windrow knows the table,
//! before the time is taken.

mod client;
mod script;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use windrow_testkit::pgclient::Address;
use windrow_testkit::postgres::psql;
use windrow_testkit::process::Windrow;
use windrow_testkit::proxy::Proxy;

use self::client::{LineClient, LineForm};
use self::script::{Script, ScriptForm};
use crate::figures::{Metrics, Run};
use crate::say;
use crate::servers::{self, Kind, Store};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Latency {
    /// Rows that are written.
    #[arg(long, default_value_t = 500)]
    pub rows: u32,
    /// Round trips of the line, in milliseconds.
    #[arg(long, value_delimiter = ',', default_values_t = [0, 1, 10, 40, 100])]
    pub delays: Vec<u64>,
    /// Repetitions.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// In how many of them round trips of 40 ms and more are measured, where every row takes one:
    /// all that differs between these is the network's.
    #[arg(long, default_value_t = 1)]
    pub slow_rounds: u32,
}

/// From how many milliseconds on a round trip is so slow.
const SLOW_MS: u64 = 40;

const TABLE: &str = "create table lines (id bigint primary key, value float8, note text)";

/// A table of another name, with which all get ready: nobody counts its rows.
const READY: &str = "create table ready (id bigint primary key, value float8, note text)";

/// The timeout of the spool until the database has all rows.
const SPOOL_TIMEOUT: Duration = Duration::from_secs(120);

/// Where a way goes, and with which setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Through {
    Line,
    Windrow(&'static str),
}

/// The driver of Perl.
const PERL: &str = "DBD::Pg";

const COMMIT: &str = "windrow.ack=commit";
const DEFER: &str = "windrow.defer=on";
const SPOOL: &str = "windrow.ack=spool";

const WAYS: [(&str, Through, LineForm); 9] = [
    ("row by row", Through::Line, LineForm::Rows),
    ("one transaction", Through::Line, LineForm::Transaction),
    ("pipelined", Through::Line, LineForm::Pipelined),
    ("multi-row", Through::Line, LineForm::MultiRow),
    ("COPY", Through::Line, LineForm::Copy),
    ("windrow, commit", Through::Windrow(COMMIT), LineForm::Rows),
    (
        "windrow, defer",
        Through::Windrow(DEFER),
        LineForm::Transaction,
    ),
    ("windrow, spool", Through::Windrow(SPOOL), LineForm::Rows),
    ("SELECT", Through::Line, LineForm::Select),
];

/// The same by a program of another language, behind its driver's name. It knows no pipeline.
const BY_SCRIPT: [(&str, Through, ScriptForm); 5] = [
    ("row by row", Through::Line, ScriptForm::Rows),
    ("execute_for_fetch", Through::Line, ScriptForm::ForFetch),
    ("one transaction", Through::Line, ScriptForm::Transaction),
    (
        "windrow, defer",
        Through::Windrow(DEFER),
        ScriptForm::Transaction,
    ),
    ("windrow, spool", Through::Windrow(SPOOL), ScriptForm::Rows),
];

/// Figures that others have published of 500 rows: the way, the round trip, and the seconds.
const PUBLISHED: [(&str, u64, f64); 5] = [
    ("DBD::Pg, row by row", 0, 0.3),
    ("multi-row", 0, 0.08),
    ("DBD::Pg, row by row", 40, 21.55),
    ("multi-row", 40, 0.20),
    ("DBD::Pg, execute_for_fetch", 40, 0.37),
];

/// A database behind a line, with Windrow before the line.
struct Bed {
    direct: String,
    line: Address,
    gateway: Address,
    _windrow: Windrow,
    _proxy: Proxy,
    _spool: TempDir,
}

impl Bed {
    async fn start(store: &Store, delay: u64) -> Result<Self> {
        let direct = store.server()?.create_database()?;
        psql(&direct, &format!("{TABLE}; {READY}"))?;
        let address = Address::of(&direct)?;
        let line = Proxy::builder(address.socket.to_string());
        let proxy = line
            .round_trip(Duration::from_millis(delay))
            .start()
            .await?;
        let line = address.at(proxy.address());
        let spool = tempfile::tempdir()?;
        let at = spool.path().to_str().context("a folder's name")?;
        let options = ["--pg", "127.0.0.1:0", "--spool", at];
        let windrow = servers::windrow(&line.url(), &options)?;
        let gateway = servers::pg_address(&windrow, &direct)?;
        Ok(Self {
            direct,
            line,
            gateway,
            _windrow: windrow,
            _proxy: proxy,
            _spool: spool,
        })
    }

    fn to(&self, through: Through) -> (&Address, Option<&'static str>) {
        match through {
            Through::Line => (&self.line, None),
            Through::Windrow(setting) => (&self.gateway, Some(setting)),
        }
    }

    /// Waits until all rows are there, which those of the spool are a little later.
    async fn complete(&self, rows: u32) -> Result<()> {
        let start = Instant::now();
        let goal = rows.to_string();
        while psql(&self.direct, "select count(*) from lines")? != goal {
            ensure!(start.elapsed() < SPOOL_TIMEOUT, "not all rows have come");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }
}

impl Latency {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, or a row is refused.
    pub fn run(&self, root: &Path) -> Result<()> {
        let mut run = Run::new("latency", format!("{} rows over a slow line", self.rows));
        let store = Store::start(Kind::Postgres)?;
        store.report_version(&mut run)?;
        let (scripts, missing) = Script::find();
        for script in &scripts {
            run.version(script.driver, &script.version);
        }
        for driver in missing {
            run.remark(format!("left out: {driver}, which is not installed here"));
        }
        let runtime = Runtime::new()?;
        for round in 1..=self.rounds {
            let is_measured = |delay: &&u64| **delay < SLOW_MS || round <= self.slow_rounds;
            for delay in self.delays.iter().filter(is_measured) {
                runtime.block_on(self.measure(&store, &scripts, &mut run, (round, *delay)))?;
            }
        }
        let with_perl = scripts.iter().any(|script| script.driver == PERL);
        self.conclude(&mut run, with_perl)?;
        run.store(root)?;
        Ok(())
    }

    async fn measure(
        &self,
        store: &Store,
        scripts: &[Script],
        run: &mut Run,
        (round, delay): (u32, u64),
    ) -> Result<()> {
        let bed = Bed::start(store, delay).await?;
        let metric = metric(delay);
        for (arm, through, form) in WAYS {
            let (address, setting) = bed.to(through);
            let client = LineClient::connect(address, setting).await?;
            if form != LineForm::Select {
                psql(&bed.direct, "truncate lines")?;
            }
            let time = client.write(form, self.rows).await;
            let time = time.with_context(|| format!("{arm}, {delay} ms"))?;
            bed.complete(self.rows).await?;
            run.add_all(
                round,
                arm,
                &Metrics::new().with(&*metric, time.as_secs_f64()),
            );
        }
        for script in scripts {
            self.by_script(&bed, script, run, (round, delay)).await?;
        }
        Ok(())
    }

    async fn by_script(
        &self,
        bed: &Bed,
        script: &Script,
        run: &mut Run,
        (round, delay): (u32, u64),
    ) -> Result<()> {
        let metric = metric(delay);
        for (way, through, form) in BY_SCRIPT {
            if form == ScriptForm::ForFetch && script.driver != PERL {
                continue;
            }
            let arm = format!("{}, {way}", script.driver);
            let (address, setting) = bed.to(through);
            psql(&bed.direct, "truncate lines")?;
            let time = script.write(address, setting, form, self.rows);
            let time = time.with_context(|| format!("{arm}, {delay} ms"))?;
            bed.complete(self.rows).await?;
            run.add_all(round, &arm, &Metrics::new().with(&*metric, time));
        }
        Ok(())
    }

    fn conclude(&self, run: &mut Run, with_perl: bool) -> Result<()> {
        for (arm, delay, seconds) in PUBLISHED {
            let is_there = with_perl || !arm.starts_with("DBD");
            if self.rows == 500 && is_there && self.delays.contains(&delay) {
                run.published(arm, &metric(delay), seconds);
            }
        }
        if with_perl {
            run.remark(
                "DBD::Pg sends each row of execute_for_fetch by itself, so it gains nothing here; \
                 what was published of it is of a driver that sends all of them at once",
            );
        }
        let Some(slowest) = self.delays.iter().max().filter(|delay| **delay > 0) else {
            return Ok(());
        };
        let (name, trip) = (metric(*slowest), Duration::from_millis(*slowest));
        for (arm, ..) in WAYS {
            let trips = run.median(arm, &name)? / trip.as_secs_f64();
            say::line(&format!("{arm}: {trips:.1} round trips of {slowest} ms"));
        }
        let alone = run.median("row by row", &name)?;
        for arm in ["windrow, commit", "windrow, defer", "windrow, spool"] {
            let times = alone / run.median(arm, &name)?;
            run.remark(format!(
                "{arm}: {times:.1} times as fast as row by row at {slowest} ms"
            ));
        }
        Ok(())
    }
}

fn metric(delay: u64) -> String {
    format!("s at {delay} ms")
}
