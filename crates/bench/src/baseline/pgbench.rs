//! Many clients that insert single rows into PostgreSQL, by `pgbench`.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use windrow_testkit::postgres::Postgres;

use super::written::Written;
use crate::figures::Metrics;
use crate::reading::{AT, NOTE, PGBENCH_SCRIPT};

/// Runs `pgbench -n -M prepared -j 2` with single-row inserts for a time.
///
/// # Errors
/// It is not installed, or a transaction fails.
pub fn pgbench(server: &Postgres, url: &str, clients: usize, time: Duration) -> Result<Written> {
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

fn parse(text: &str) -> Option<Written> {
    let after = |start: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(start))?;
        line.split([' ', '/']).next()
    };
    let number = |start| after(start)?.parse::<f64>().ok();
    let rows = after("number of transactions actually processed: ")?;
    let rows = rows.parse().ok()?;
    let (rate, latency) = match rows {
        // A thousand sessions may take longer to begin than the time given; then no more is
        // reported.
        0 => (0.0, 0.0),
        _ => (number("tps = ")?, number("latency average = ")?),
    };
    let metrics = Metrics::new().with("rows/s", rate).with("mean ms", latency);
    Some(Written { rows, metrics })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_pgbench_prints() {
        let text = "number of transactions actually processed: 3918\n\
                    number of failed transactions: 0 (0.000%)\nlatency average = 0.513 ms\n\
                    initial connection time = 3.024 ms\ntps = 3899.6 (without initial connection time)\n";
        let written = parse(text).unwrap();
        let of = |metric| written.metrics.get(metric);
        assert_eq!(written.rows, 3918);
        assert_eq!([of("rows/s"), of("mean ms")], [Some(3899.6), Some(0.513)]);
        let none = parse("number of transactions actually processed: 0\n").unwrap();
        assert_eq!((none.rows, none.metrics.get("rows/s")), (0, Some(0.0)));
        assert!(parse("nothing").is_none());
    }
}
