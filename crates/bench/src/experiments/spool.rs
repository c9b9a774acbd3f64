//! The rate at which the spool acknowledges rows over HTTP, beside the disk's own rate with the
//! same bytes and syncs, and beside the gateway's rate without a disk.

use std::fs::{self, File};
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use tempfile::TempDir;

use super::measure::Bed;
use crate::figures::{Meter, Metrics, Run};
use crate::generator::{Call, stream};
use crate::number::as_f64;
use crate::reading::Reading;
use crate::say;
use crate::servers::{Kind, Store};

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Spool {
    /// Bodies that are sent at once.
    #[arg(long, default_value_t = 4)]
    pub streams: usize,
    /// Rows in all bodies together.
    #[arg(long, default_value_t = 1_000_000)]
    pub rows: usize,
    /// Alternating repetitions.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
    /// Where the spool and the file beside it are kept; the folder for temporary files where it is
    /// left out.
    #[arg(long)]
    pub on: Option<PathBuf>,
    /// A folder in memory, for the gateway's own limit.
    #[arg(long, default_value = "/dev/shm")]
    pub memory: PathBuf,
}

const WINDROW: &str = "NDJSON into the spool";
const LIMIT: &str = "the same, the spool in memory";
const DISK: &str = "the disk alone";

impl Spool {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// Something that takes part cannot be started, or a row is not acknowledged.
    pub fn run(&self, root: &Path) -> Result<()> {
        let title = format!("{} rows as NDJSON into the spool", self.rows);
        let mut run = Run::new("spool", title);
        let store = Store::start(Kind::Postgres)?;
        store.report_version(&mut run)?;
        let bodies = self.bodies();
        for round in 1..=self.rounds {
            let groups = self.appended(&store, &bodies, self.on.as_deref(), &mut run, round)?;
            disk(self.on.as_deref(), &groups, &mut run, round)?;
            self.appended(&store, &bodies, Some(&self.memory), &mut run, round)?;
        }
        self.conclude(&mut run)?;
        run.store(root)?;
        Ok(())
    }

    fn bodies(&self) -> Vec<Vec<u8>> {
        let each = self.rows / self.streams.max(1);
        let body = |stream| {
            let mut body = Vec::new();
            for n in 0..each as u64 {
                Reading::new(Call::new(stream, n).id()).json(&mut body);
                body.push(b'\n');
            }
            body
        };
        (0..self.streams.max(1)).map(body).collect()
    }

    /// Sends all bodies at once to a gateway whose database is away, so that nothing is applied
    /// meanwhile. Gives the bytes of each group that was synced.
    fn appended(
        &self,
        store: &Store,
        bodies: &[Vec<u8>],
        on: Option<&Path>,
        run: &mut Run,
        round: u32,
    ) -> Result<Vec<usize>> {
        let arm = if on == Some(&self.memory) {
            LIMIT
        } else {
            WINDROW
        };
        let table = store.table()?;
        let folder = folder(on)?;
        store.server()?.stop()?;
        let bed = Bed::before(table, &["--spool", text(folder.path())?])?;
        let meter = Meter::new("row").of("windrow", || bed.windrow.cpu_time().ok());
        let start = Instant::now();
        say::during(arm, Duration::from_secs(10), || {
            send(bed.windrow.address(), bodies)
        })?;
        let elapsed = start.elapsed();
        let cpu = meter.metrics(self.rows as u64);
        drop(meter);
        drop(bed);
        let groups = groups(folder.path())?;
        let rate = as_f64(self.rows as u64) / elapsed.as_secs_f64();
        let metrics = Metrics::new().with("rows/s", rate);
        let metrics = metrics.and(rates(&groups, elapsed)).and(cpu);
        run.add_all(round, arm, &metrics);
        store.server()?.restart()?;
        Ok(groups)
    }

    fn conclude(&self, run: &mut Run) -> Result<()> {
        let of = |arm: &str| run.median(arm, "MB/s");
        let (spool, disk, limit) = (of(WINDROW)?, of(DISK)?, of(LIMIT)?);
        let (lower, name) = match disk < limit {
            true => (
                disk,
                "the disk with the same bytes and syncs, which is the lower limit",
            ),
            false => (
                limit,
                "the gateway without a disk in its way, which is the lower limit",
            ),
        };
        run.remark(format!("{:.2} of the rate of {name}", spool / lower));
        Ok(())
    }
}

fn rates(groups: &[usize], elapsed: Duration) -> Metrics {
    let bytes = groups.iter().sum::<usize>() as u64;
    Metrics::new()
        .with("MB/s", as_f64(bytes) / 1e6 / elapsed.as_secs_f64())
        .with("syncs", as_f64(groups.len() as u64))
}

fn send(address: SocketAddr, bodies: &[Vec<u8>]) -> Result<()> {
    const TARGET: &str = "POST /v1/tables/readings/rows?ack=spool&results=none";
    std::thread::scope(|scope| {
        let sending = bodies.iter().map(|body| {
            scope.spawn(move || {
                let length = Some(body.len() as u64);
                stream::send(address, TARGET, "application/x-ndjson", length, &**body)
            })
        });
        let sending: Vec<_> = sending.collect();
        for one in sending {
            let reply = one.join().map_err(|_| anyhow!("a sender panicked"))?;
            reply?.succeeded(202)?;
        }
        Ok(())
    })
}

/// The same bytes, one group after the other, each synced.
fn disk(on: Option<&Path>, groups: &[usize], run: &mut Run, round: u32) -> Result<()> {
    let folder = folder(on)?;
    let bytes = vec![b'x'; groups.iter().copied().max().unwrap_or(0)];
    let mut file = File::create(folder.path().join("synced"))?;
    let start = Instant::now();
    say::during(DISK, Duration::from_secs(10), || -> Result<()> {
        for group in groups {
            file.write_all(bytes.get(..*group).unwrap_or_default())?;
            file.sync_data()?;
        }
        Ok(())
    })?;
    run.add_all(round, DISK, &rates(groups, start.elapsed()));
    Ok(())
}

/// The bytes of each group in a spool's files: `WGrp`, four bytes, the length of what follows the
/// group's header of 48 bytes.
fn groups(spool: &Path) -> Result<Vec<usize>> {
    const FILE_HEADER: usize = 64;
    const GROUP_HEADER: usize = 48;
    let entries = fs::read_dir(spool.join("0000"))?;
    let paths = entries.map(|entry| Ok(entry?.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<Result<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|end| end == "log"));
    let mut groups = Vec::new();
    for path in paths {
        let bytes = fs::read(path)?;
        let mut rest = bytes.get(FILE_HEADER..).unwrap_or_default();
        while let Some(length) = rest.strip_prefix(b"WGrp").and_then(|head| head.get(4..8)) {
            let length = usize::try_from(u32::from_le_bytes(length.try_into()?))?;
            groups.push(GROUP_HEADER + length);
            rest = rest.get(GROUP_HEADER + length..).unwrap_or_default();
        }
    }
    anyhow::ensure!(!groups.is_empty(), "the spool has no group");
    Ok(groups)
}

fn folder(on: Option<&Path>) -> Result<TempDir> {
    match on {
        Some(folder) => tempfile::tempdir_in(folder),
        None => tempfile::tempdir(),
    }
    .context("no folder for a spool")
}

fn text(path: &Path) -> Result<&str> {
    path.to_str()
        .context("the folder's name is not UTF-8; name another one with --on")
}
