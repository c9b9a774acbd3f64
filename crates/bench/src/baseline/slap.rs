//! Many clients that insert single rows into MariaDB, by `mariadb-slap`.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use windrow_testkit::mariadb::MariaDb;

use crate::number::as_f64;
use crate::reading::NOTE;

/// The result of the program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Direct {
    /// Rows written.
    pub rows: u64,
    /// Rows a second.
    pub rate: f64,
}

/// Rows by which the rate is estimated, so that the measurement takes the time that it should.
const TRIAL: u64 = 6_400;

/// Runs `mariadb-slap` with single-row autocommit inserts for about a time. It knows no prepared
/// statements; keys are the server's `UUID_SHORT()`, in ascending order.
///
/// # Errors
/// It is not installed, or an insert fails.
pub fn run(server: &MariaDb, database: &str, clients: usize, time: Duration) -> Result<Direct> {
    let trial = insert(server, database, clients, TRIAL)?;
    let parts = time.as_secs_f64() * trial.rate / as_f64(TRIAL);
    insert(server, database, clients, TRIAL * whole(parts))
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

fn insert(server: &MariaDb, database: &str, clients: usize, rows: u64) -> Result<Direct> {
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
    let rows = share(clients, rows);
    Ok(Direct {
        rows,
        rate: as_f64(rows) / seconds,
    })
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
