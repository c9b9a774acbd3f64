//! Many clients that insert single rows into MariaDB, by `mariadb-slap`.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use windrow_testkit::mariadb::MariaDb;

use super::written::Written;
use crate::figures::Metrics;
use crate::number::as_f64;
use crate::reading::NOTE;
use crate::servers::Table;

/// Rows by which the rate is estimated, so that the measurement takes the time that it should.
const TRIAL: u64 = 6_400;

/// Runs `mariadb-slap` with single-row autocommit inserts for about a time. It knows no prepared
/// statements; keys are the server's `UUID_SHORT()`, in ascending order.
///
/// # Errors
/// It is not installed, or an insert fails.
pub fn slap(server: &MariaDb, table: &Table, clients: usize, time: Duration) -> Result<Written> {
    let database = table.url.rsplit('/').next().unwrap_or_default();
    let trial = insert(server, database, clients, TRIAL)?;
    let parts = time.as_secs_f64() * trial / as_f64(TRIAL);
    let rate = insert(server, database, clients, TRIAL * whole(parts))?;
    Ok(Written {
        rows: table.count()?,
        metrics: Metrics::new().with("rows/s", rate),
    })
}

/// The whole number that is next to it, at least 1.
fn whole(parts: f64) -> u64 {
    (1..1000).find(|n| as_f64(*n) + 0.5 > parts).unwrap_or(1000)
}

/// The same number for each client.
fn share(clients: usize, rows: u64) -> u64 {
    let clients = clients as u64;
    rows / clients * clients
}

/// Inserts so many rows, and returns the rows a second.
fn insert(server: &MariaDb, database: &str, clients: usize, rows: u64) -> Result<f64> {
    let sql = format!(
        "insert into readings values (uuid_short(), 7, '2026-01-01 00:00:00', 15.7, '{NOTE}')"
    );
    let output = Command::new("mariadb-slap")
        .args(["--no-defaults", "--protocol=tcp", "--host=127.0.0.1"])
        .args(["--user=root", "--no-drop", "--csv"])
        .arg(format!("--port={}", server.port()))
        .arg(format!("--create-schema={database}"))
        .arg(format!("--concurrency={clients}"))
        .arg(format!("--number-of-queries={}", share(clients, rows)))
        .arg(format!("--query={sql}"))
        .output()
        .context(
            "cannot run mariadb-slap; install it, for example with: apt-get install mariadb-client",
        )?;
    if !output.status.success() {
        bail!("mariadb-slap: {}", String::from_utf8_lossy(&output.stderr));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let seconds = seconds(&text).with_context(|| format!("mariadb-slap printed {text}"))?;
    Ok(as_f64(share(clients, rows)) / seconds)
}

/// The mean time of its runs: the third of its comma-separated values.
fn seconds(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| !line.is_empty())?;
    let seconds: f64 = line.split(',').nth(2)?.parse().ok()?;
    (seconds > 0.0).then_some(seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_slap_prints() {
        assert_eq!(seconds(",mixed,0.794,0.794,0.794,64,312\n"), Some(0.794));
        assert_eq!(seconds(""), None);
        assert_eq!(share(64, 6_500), 6_464);
        assert_eq!([whole(0.1), whole(2.6), whole(9.4)], [1, 3, 9]);
    }
}
