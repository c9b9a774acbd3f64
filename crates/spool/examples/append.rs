//! How fast the spool is on a disk, next to what the disk itself does.
//!
//! ```text
//! cargo run --release -p windrow-spool --example append -- [DIRECTORY] [BYTES] [SECONDS]
//! ```
//!
//! Prints appends a second, MB a second (payload alone) and latencies for 1, 8 and 64 appenders
//! that each wait for their answer, then for one that hands over 1,000 entries at once; and, before
//! and after, the disk's synced sequential rate: the same number of bytes, one record after the
//! other, one sync for as many records as the spool had in one.

#![expect(clippy::print_stdout, reason = "its report is what it is for")]

use std::error::Error;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use windrow_spool::{Batch, FileSpool, Log, Options, Spool};

type Done<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// What is measured.
#[derive(Clone, Copy)]
struct Load {
    appenders: u64,
    /// Entries of one append.
    entries: u64,
    /// Bytes of an entry.
    bytes: usize,
    time: Duration,
}

#[tokio::main(flavor = "multi_thread")]
async fn main() -> Done<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments
        .next()
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let bytes = arguments.next().map_or(Ok(250), |text| text.parse())?;
    let seconds = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let directory = tempfile::tempdir_in(directory)?;
    println!(
        "records of {bytes} bytes, {seconds} s each, in {}",
        directory.path().display()
    );
    println!(
        "{:>28} {:>12} {:>10} {:>9} {:>9} {:>9}",
        "", "entries/s", "MB/s", "p50 us", "p99 us", "per sync"
    );
    for (appenders, entries) in [(1, 1), (8, 1), (64, 1), (1, 1_000), (8, 1_000)] {
        let load = Load {
            appenders,
            entries,
            bytes,
            time: Duration::from_secs(seconds),
        };
        let each = spool(directory.path(), load).await?;
        for records in [1, each] {
            disk(directory.path(), load, records)?;
        }
    }
    Ok(())
}

/// Appends for a while; gives the entries of one sync.
async fn spool(directory: &Path, load: Load) -> Done<u64> {
    let spool = FileSpool::open(directory.join("spool"), Options::default()).await?;
    let Some(log) = spool.logs().first().map(Arc::clone) else {
        return Err("a spool without a log".into());
    };
    let start = Instant::now();
    let tasks: Vec<_> = (0..load.appenders)
        .map(|_| tokio::spawn(appender(Arc::clone(&log), load, start)))
        .collect();
    let mut latencies = Histogram::<u64>::new(3)?;
    for task in tasks {
        latencies.add(task.await??)?;
    }
    let took = start.elapsed();
    let entries = latencies.len() * load.entries;
    let each = entries.checked_div(groups(&log).await?).unwrap_or(1).max(1);
    let what = format!("{} x {} appended", load.appenders, load.entries);
    report(&what, entries, load.bytes, took, Some(&latencies), each);
    log.trim(log.end()).await?;
    spool.close().await?;
    Ok(each)
}

async fn appender(log: Arc<dyn Log>, load: Load, start: Instant) -> Done<Histogram<u64>> {
    let mut latencies = Histogram::new(3)?;
    let payload = vec![b'x'; load.bytes];
    while start.elapsed() < load.time {
        let mut batch = Batch::new();
        (0..load.entries).for_each(|_| batch.push(&payload));
        let asked = Instant::now();
        log.append(batch).await?;
        latencies.record(u64::try_from(asked.elapsed().as_micros())?)?;
    }
    Ok(latencies)
}

/// The number of groups, and so of syncs: entries of one group have one time and origin's start;
/// here they are told apart by the bytes that a group takes besides its entries.
async fn groups(log: &Arc<dyn Log>) -> Done<u64> {
    let status = log.status().await?;
    let mut cursor = log.cursor(status.first)?;
    let mut payload = 0;
    let mut entries = 0;
    while cursor.position() < status.end {
        for entry in cursor.next(1 << 20).await? {
            payload += entry.payload.len() as u64;
            entries += 1;
        }
    }
    let besides = status
        .bytes
        .saturating_sub(payload + entries * Options::PER_ENTRY as u64);
    Ok((besides / Options::PER_GROUP as u64).max(1))
}

/// The same bytes without a spool: one record after the other, a sync for each so many.
fn disk(directory: &Path, load: Load, records: u64) -> Done<()> {
    let path = directory.join("disk");
    let mut file = File::create(&path)?;
    let record = vec![b'x'; load.bytes];
    let chunk = record.repeat(usize::try_from(records)?);
    let start = Instant::now();
    let mut written = 0;
    while start.elapsed() < load.time {
        file.write_all(&chunk)?;
        file.sync_data()?;
        written += records;
    }
    report(
        "the disk alone",
        written,
        load.bytes,
        start.elapsed(),
        None,
        records,
    );
    std::fs::remove_file(path)?;
    Ok(())
}

fn report(
    what: &str,
    entries: u64,
    bytes: usize,
    took: Duration,
    latencies: Option<&Histogram<u64>>,
    each: u64,
) {
    let rate = entries as f64 / took.as_secs_f64();
    let at =
        |quantile| latencies.map_or(String::new(), |l| l.value_at_quantile(quantile).to_string());
    println!(
        "{what:>28} {rate:>12.0} {:>10.2} {:>9} {:>9} {each:>9}",
        rate * bytes as f64 / 1e6,
        at(0.5),
        at(0.99),
    );
}
