//! Many clients that insert single rows into PostgreSQL, by `pgbench`.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use windrow_testkit::postgres::Postgres;

use crate::reading::{AT, NOTE, PGBENCH_SCRIPT};

/// The result of pgbench.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Direct {
    /// Rows written.
    pub rows: u64,
    /// Rows a second.
    pub rate: f64,
    /// The mean latency.
    pub latency_ms: f64,
}

/// Runs `pgbench -n -M prepared -j 2` with single-row inserts for a time.
///
/// # Errors
/// It is not installed, or a transaction fails.
pub fn run(server: &Postgres, url: &str, clients: usize, time: Duration) -> Result<Direct> {
    let folder = tempfile::tempdir()?;
    let script = folder.path().join("insert.sql");
    std::fs::write(&script, PGBENCH_SCRIPT)?;
    let output = Command::new(server.program("pgbench"))
        .args(["-n", "-M", "prepared", "-j", "2"])
        .args(["-c", &clients.to_string()])
        .args(["-T", &time.as_secs().to_string()])
        .args(["-D", "n=0"])
        .args(["-D", &format!("at={AT}")])
        .args(["-D", &format!("note={NOTE}")])
        .arg("-f")
        .arg(&script)
        .arg(url)
        .output()
        .context("cannot run pgbench; install it, for example with: apt-get install postgresql")?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("pgbench: {}", String::from_utf8_lossy(&output.stderr));
    }
    parse(&text).with_context(|| format!("pgbench printed something else:\n{text}"))
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
        // A thousand sessions may take longer to begin than the time given; then no more is
        // reported.
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
}
