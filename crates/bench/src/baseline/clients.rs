//! A program with connections that each insert single rows by a prepared statement, each a commit.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

use super::written::Written;
use crate::figures::Metrics;
use crate::generator::Call;
use crate::number::as_f64;
use crate::reading::Reading;
use crate::servers::{Driver, Param, Table};

/// Runs so many connections, each on a thread of its own, for a time.
///
/// # Errors
/// The server cannot be reached, or an insert fails.
pub fn prepared(table: &Table, clients: usize, time: Duration) -> Result<Written> {
    let ready = Barrier::new(clients);
    let inserts = |client| {
        let driver = Driver::connect(table);
        // Also where it failed: the others wait.
        ready.wait();
        let mut driver = driver?;
        let insert = format!("insert into readings values {}", driver.lists(1, 5));
        let (start, mut n) = (Instant::now(), 0);
        while start.elapsed() < time {
            let reading = Reading::new(Call::new(client, n).id());
            driver.execute(&insert, &Param::of(&reading)?)?;
            n += 1;
        }
        anyhow::Ok((n, start.elapsed()))
    };
    let (mut rows, mut longest) = (0, Duration::ZERO);
    thread::scope(|scope| {
        let inserts = &inserts;
        let threads: Vec<_> = (0..clients)
            .map(|client| scope.spawn(move || inserts(client)))
            .collect();
        for thread in threads {
            let ended = thread.join().map_err(|_| anyhow!("a client panicked"))?;
            let (written, elapsed) = ended?;
            rows += written;
            longest = longest.max(elapsed);
        }
        anyhow::Ok(())
    })?;
    let rate = as_f64(rows) / longest.as_secs_f64();
    let metrics = Metrics::new().with("rows/s", rate);
    Ok(Written { rows, metrics })
}
