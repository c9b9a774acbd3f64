//! Many clients that insert single rows into PostgreSQL, by `pgbench`.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use windrow_testkit::postgres::Postgres;

use crate::http::report::as_f64;
use crate::reading::{AT, NOTE, PGBENCH_SCRIPT};

/// What pgbench reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Direct {
    /// Rows written.
    pub rows: u64,
    /// Rows a second.
    pub rate: f64,
    /// The mean latency.
    pub latency_ms: f64,
}

/// How pgbench speaks (its `-M`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Mode {
    /// Parse once, then Bind and Execute.
    Prepared,
    /// Parse, Bind and Execute each time.
    Extended,
    /// Query, with the values in the text.
    Simple,
}

impl Mode {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::Extended => "extended",
            Self::Simple => "simple",
        }
    }
}

/// One run of pgbench.
#[derive(Clone, Copy, Debug)]
pub struct Pgbench<'a> {
    /// Whose pgbench.
    pub server: &'a Postgres,
    /// Where to write.
    pub url: &'a str,
    /// Clients, each with one insert under way.
    pub clients: usize,
    /// How long.
    pub time: Duration,
    /// How it speaks.
    pub mode: Mode,
    /// The number of each client's first row.
    pub first: u64,
}

/// The share of transactions whose latency is written down: enough for a percentile, too few to
/// disturb.
const SAMPLED: &str = "0.1";

/// Latencies of single transactions, sorted, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latencies(Vec<f64>);

impl Latencies {
    /// The value that `percent` of them stay below; 0 if there is none.
    pub fn at(&self, percent: f64) -> f64 {
        let rank = as_f64(self.0.len() as u64) * percent / 100.0;
        let below = self.0.iter().zip(1_u64..).find(|(_, n)| as_f64(*n) >= rank);
        below.map_or(0.0, |(value, _)| *value)
    }
}

/// Runs `pgbench -n -M prepared -j 2` with single-row inserts for a time.
///
/// # Errors
/// It is not installed, or a transaction fails.
pub fn run(server: &Postgres, url: &str, clients: usize, time: Duration) -> Result<Direct> {
    let run = Pgbench {
        server,
        url,
        clients,
        time,
        mode: Mode::Prepared,
        first: 0,
    };
    let folder = tempfile::tempdir()?;
    run.run(folder.path(), &[])
}

impl Pgbench<'_> {
    /// Runs it, with the latencies of a sample of all transactions.
    ///
    /// # Errors
    /// It is not installed, or a transaction fails.
    pub fn measure(&self) -> Result<(Direct, Latencies)> {
        let folder = tempfile::tempdir()?;
        let prefix = format!("--log-prefix={}", folder.path().join("log").display());
        let log = ["--log", "--sampling-rate", SAMPLED, &prefix];
        let direct = self.run(folder.path(), &log)?;
        Ok((direct, latencies(folder.path())?))
    }

    fn run(&self, folder: &Path, more: &[&str]) -> Result<Direct> {
        let script = folder.join("insert.sql");
        std::fs::write(&script, PGBENCH_SCRIPT)?;
        // In a simple query variables stand as they are.
        let quote = if self.mode == Mode::Simple { "'" } else { "" };
        let output = Command::new(self.server.program("pgbench"))
            .args(["-n", "-M", self.mode.as_str(), "-j", "2"])
            .args(["-c", &self.clients.to_string()])
            .args(["-T", &self.time.as_secs().to_string()])
            .args(["-D", &format!("n={}", self.first)])
            .args(["-D", &format!("at={quote}{AT}{quote}")])
            .args(["-D", &format!("note={quote}{NOTE}{quote}")])
            .args(more)
            .arg("-f")
            .arg(&script)
            .arg(self.url)
            .output()
            .context(
                "cannot run pgbench; install it, for example with: apt-get install postgresql",
            )?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            bail!("pgbench: {}", String::from_utf8_lossy(&output.stderr));
        }
        parse(&text).with_context(|| format!("pgbench printed something else:\n{text}"))
    }
}

/// All that the logs in a folder hold: the third field of each line is a transaction's time in
/// microseconds.
fn latencies(folder: &Path) -> Result<Latencies> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned());
        if name.is_some_and(|name| name.starts_with("log")) {
            let text = std::fs::read_to_string(&path)?;
            let times = text.lines().filter_map(|line| line.split(' ').nth(2));
            all.extend(
                times
                    .filter_map(|us| us.parse::<f64>().ok())
                    .map(|us| us / 1000.0),
            );
        }
    }
    all.sort_unstable_by(f64::total_cmp);
    Ok(Latencies(all))
}

fn parse(text: &str) -> Option<Direct> {
    let after = |start: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(start))?;
        line.split([' ', '/']).next()?.parse::<f64>().ok()
    };
    let rows = text
        .lines()
        .find_map(|line| line.strip_prefix("number of transactions actually processed: "))?;
    let rows = rows.split('/').next()?.parse().ok()?;
    if rows == 0 {
        // A thousand sessions may take longer to begin than was given; then nothing more is told.
        return Some(Direct {
            rows,
            rate: 0.0,
            latency_ms: 0.0,
        });
    }
    Some(Direct {
        rows,
        rate: after("tps = ")?,
        latency_ms: after("latency average = ")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_pgbench_prints() {
        let text = "number of transactions actually processed: 3918\n\
                    number of failed transactions: 0 (0.000%)\nlatency average = 0.513 ms\n\
                    initial connection time = 3.024 ms\ntps = 3899.6 (without initial connection time)\n";
        let direct = Direct {
            rows: 3918,
            rate: 3899.6,
            latency_ms: 0.513,
        };
        assert_eq!(parse(text), Some(direct));
        let none = parse("number of transactions actually processed: 0\n").unwrap();
        assert_eq!((none.rows, none.rate), (0, 0.0));
        assert_eq!(parse("nothing"), None);
    }

    #[test]
    fn percentiles_of_what_was_logged() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("log.1"),
            "0 1 3000 0 17 5\n1 1 1000 0 17 6\n",
        )
        .unwrap();
        std::fs::write(
            folder.path().join("log.1.1"),
            "0 2 2000 0 17 7\n0 3 4000 0 17 8\n",
        )
        .unwrap();
        let found = latencies(folder.path()).unwrap();
        assert_eq!([found.at(50.0), found.at(99.0)], [2.0, 4.0]);
        assert_eq!(Latencies::default().at(50.0), 0.0);
    }
}
