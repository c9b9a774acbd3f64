//! The same rows through Windrow's library, and the point that its pace finds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures_util::{StreamExt, stream};
use tokio::runtime::Runtime;
use windrow::{LaneStatus, Writer};

use super::rows::{self, Rows};
use crate::number::as_f64;
use crate::servers::Table;

/// The interval of looks at the flights.
const LOOK: Duration = Duration::from_millis(5);

/// The timeout of the first batch.
const FIRST_BATCH_TIMEOUT: Duration = Duration::from_secs(30);

/// Rows that a stream takes at once.
const PORTION: u64 = 500;

/// The work of the lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Rows a second.
    pub(super) rate: f64,
    /// The largest batch that pace allows.
    pub(super) most_rows: f64,
    /// The flights that it allows.
    pub(super) most_flights: f64,
    /// The mean batch.
    pub(super) rows: f64,
    /// The mean number of flights under way.
    pub(super) flights: f64,
    /// Rows that were written in all, before and behind the measurement too.
    pub(super) written: u64,
}

/// A writer whose pace goes on where it was.
pub(super) struct Library {
    runtime: Runtime,
    writer: Writer,
    streams: usize,
}

impl Library {
    /// `streams`: so many tasks write at once, each as many rows as it may have under way.
    pub(super) fn open(table: &Table, streams: usize) -> Result<Self> {
        let runtime = Runtime::new()?;
        let writer = runtime.block_on(Writer::open(table.url.clone()))?;
        Ok(Self {
            runtime,
            writer,
            streams,
        })
    }

    /// Writes for a while, then measures.
    pub(super) fn write(
        &self,
        rows: &Arc<Rows>,
        (before, time): (Duration, Duration),
    ) -> Result<Found> {
        let ends = Arc::new(AtomicBool::new(false));
        let table = self.writer.insert("lineitem", rows::columns())?;
        self.runtime.block_on(async {
            let streams: Vec<_> = (0..self.streams)
                .map(|_| tokio::spawn(pour(table.clone(), Arc::clone(rows), Arc::clone(&ends))))
                .collect();
            tokio::time::sleep(before).await;
            let mut found = self.look(time).await;
            ends.store(true, Ordering::Relaxed);
            for stream in streams {
                found.written += stream.await??;
            }
            ensure!(
                found.rate > 0.0,
                "no row was written within {FIRST_BATCH_TIMEOUT:?}"
            );
            Ok(found)
        })
    }

    async fn look(&self, time: Duration) -> Found {
        let (start, first) = (Instant::now(), self.writer.status());
        let mut seen = Vec::new();
        let (took, last) = loop {
            tokio::time::sleep(LOOK).await;
            let (took, status) = (start.elapsed(), self.writer.status());
            // A measurement of a moment may be shorter than a batch.
            let landed = status.succeeded > first.succeeded || took >= FIRST_BATCH_TIMEOUT;
            if took >= time && landed {
                break (took, status);
            }
            seen.push(status);
        };
        let mean = |of: fn(&LaneStatus) -> u64| {
            as_f64(seen.iter().map(of).sum()) / as_f64(seen.len().max(1) as u64)
        };
        let rows = as_f64(last.succeeded - first.succeeded);
        Found {
            rate: rows / took.as_secs_f64(),
            most_rows: as_f64(last.batch_rows_limit),
            most_flights: as_f64(last.flights_limit),
            rows: rows / as_f64((last.batches - first.batches).max(1)),
            flights: mean(|status| status.flights),
            written: 0,
        }
    }

    pub(super) fn close(self) {
        self.runtime.block_on(self.writer.close());
    }
}

/// Writes one stream of rows until the flag is set. Returns the number of rows.
async fn pour(table: windrow::Table, rows: Arc<Rows>, ends: Arc<AtomicBool>) -> Result<u64> {
    let portions =
        std::iter::from_fn(|| (!ends.load(Ordering::Relaxed)).then(|| rows.take(PORTION)));
    let all = portions
        .flatten()
        .map(|number| rows.values(number).unwrap_or_default());
    let mut outcomes = std::pin::pin!(table.write_stream(stream::iter(all)));
    let mut written = 0;
    while let Some(outcome) = outcomes.next().await {
        outcome.context("a row was refused")?;
        written += 1;
    }
    Ok(written)
}

/// Rows a second that one core makes for the library.
pub(super) fn limit(rows: &Rows, time: Duration) -> Result<f64> {
    let (start, mut made) = (Instant::now(), 0);
    while start.elapsed() < time {
        for number in rows.take(PORTION) {
            std::hint::black_box(rows.values(number)?);
        }
        made += PORTION;
    }
    Ok(as_f64(made) / start.elapsed().as_secs_f64())
}
