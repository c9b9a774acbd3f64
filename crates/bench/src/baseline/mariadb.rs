//! Many clients that insert single rows into MariaDB by prepared statements: what `mariadb-slap`
//! cannot do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};
use tokio::sync::Barrier;
use tokio::task::LocalSet;

use super::slap::Direct;
use crate::http::job::id_of;
use crate::number::as_f64;
use crate::reading::{NOTE, Reading};

const INSERT: &str = "insert into readings values (?, ?, ?, ?, ?)";

/// Runs `clients` connections on one thread, each with one autocommit insert under way, for a time.
///
/// # Errors
/// The server cannot be reached, or an insert fails.
pub fn run(url: &str, clients: usize, time: Duration) -> Result<Direct> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let opts = Opts::from_url(url)?;
    let ready = Arc::new(Barrier::new(clients));
    LocalSet::new().block_on(&runtime, async {
        let inserts: Vec<_> = (0..clients)
            .map(|client| {
                tokio::task::spawn_local(inserts(opts.clone(), client, time, Arc::clone(&ready)))
            })
            .collect();
        let (mut rows, mut longest) = (0, Duration::ZERO);
        for task in inserts {
            let (written, elapsed) = task.await.context("a client panicked")??;
            rows += written;
            longest = longest.max(elapsed);
        }
        Ok(Direct {
            rows,
            rate: as_f64(rows) / longest.as_secs_f64(),
        })
    })
}

/// Begins when all clients are ready.
async fn inserts(
    opts: Opts,
    client: usize,
    time: Duration,
    ready: Arc<Barrier>,
) -> Result<(u64, Duration)> {
    let mut conn = Conn::new(opts).await?;
    let statement = conn.prep(INSERT).await?;
    ready.wait().await;
    let (start, mut n) = (Instant::now(), 0);
    while start.elapsed() < time {
        let row = Reading::new(id_of(client, n));
        let values = (
            row.id(),
            row.device(),
            "2026-01-01 00:00:00",
            row.temperature(),
            NOTE,
        );
        conn.exec_drop(&statement, values).await?;
        n += 1;
    }
    let elapsed = start.elapsed();
    conn.disconnect().await?;
    Ok((n, elapsed))
}
