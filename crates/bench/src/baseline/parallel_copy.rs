//! Parallel COPY as `timescaledb-parallel-copy` does it: a reader cuts the file into batches of
//! lines, workers with a connection each copy one batch at a time, each in a transaction of its
//! own.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::Bytes;
use futures_util::SinkExt;

use crate::servers::PgDriver;

/// Lines of a batch: that program's default.
pub const BATCH: usize = 5000;

/// Copies a CSV file with a header by so many workers; says how long it took. No field may hold a
/// line end.
///
/// # Errors
/// The file cannot be read, the server cannot be reached, or a row is refused.
pub fn run(url: &str, copy: &str, file: &Path, workers: usize) -> Result<Duration> {
    let start = Instant::now();
    let (sender, receiver) = sync_channel(2 * workers);
    let receiver = Mutex::new(receiver);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..workers)
            .map(|_| scope.spawn(|| work(url, copy, &receiver)))
            .collect();
        let read = cut(file, &sender);
        drop(sender);
        for worker in workers {
            worker.join().ok().context("a worker panicked")??;
        }
        read
    })?;
    Ok(start.elapsed())
}

fn cut(file: &Path, sender: &SyncSender<Bytes>) -> Result<()> {
    let mut reader = BufReader::with_capacity(1 << 20, File::open(file)?);
    let mut batch = Vec::new();
    reader.read_until(b'\n', &mut batch)?;
    batch.clear();
    let mut lines = 0;
    while reader.read_until(b'\n', &mut batch)? > 0 {
        lines += 1;
        if lines == BATCH {
            sender.send(std::mem::take(&mut batch).into()).ok();
            lines = 0;
        }
    }
    // Where nobody receives any more, a worker has failed and says why.
    sender.send(batch.into()).ok();
    Ok(())
}

fn work(url: &str, copy: &str, batches: &Mutex<Receiver<Bytes>>) -> Result<()> {
    let PgDriver {
        runtime, client, ..
    } = PgDriver::connect(url)?;
    loop {
        let batch = batches
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .recv();
        let Ok(batch) = batch else {
            return Ok(());
        };
        runtime.block_on(async {
            let mut sink = std::pin::pin!(client.copy_in::<_, Bytes>(copy).await?);
            sink.send(batch).await?;
            sink.as_mut().finish().await
        })?;
    }
}
