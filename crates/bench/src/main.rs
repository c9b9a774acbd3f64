//! `windrow-bench`: measures Windrow from outside. Each experiment prints its figures and stores
//! them, with the machine, the versions and the command, below `benchmarks/runs/`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use clap::{Parser, Subcommand};
use windrow_bench::awake::Awake;
use windrow_bench::experiments::{
    batch_api::BatchApi, bulk::Bulk, capacity::Capacity, files::Files, forms::Forms,
    gateway::Gateway, latency::Latency, load::Load, low_load::LowLoad, moves::Moves,
    outage::Outage, overload::Overload, pace::Pace, poison::Poison, replicas::Replicas, soak::Soak,
    spool::Spool, sweep::Sweep,
};
use windrow_bench::figures::{Again, Compare, undisturbed};
use windrow_bench::servers::forward;
use windrow_bench::weather::Stations;

/// As in `windrow`: its library is measured in this process.
#[cfg(not(target_env = "msvc"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Measures Windrow from outside. Starts what it needs: `windrow` (a release build, or what
/// WINDROW_BIN names) and a private PostgreSQL server.
#[derive(Parser)]
#[command(name = "windrow-bench", version)]
struct Cli {
    /// Where the run's own folder is made, with raw.csv, summary.md and report.html.
    #[arg(long, global = true, default_value = "benchmarks/runs")]
    report: PathBuf,
    /// Do not repeat a run during which the machine was taken away: for a trial.
    #[arg(long, global = true)]
    once: bool,
    /// Keep the cores from sleeping, so that waking a process costs what it does on a machine of
    /// one's own.
    #[arg(long, global = true)]
    awake: bool,
    #[command(subcommand)]
    experiment: Experiment,
}

#[derive(Subcommand)]
enum Experiment {
    /// The highest rate of single-row requests, against the same rows written directly.
    Load(Load),
    /// Files into tables by `windrow load`, against the databases' own programs and other loaders.
    Files(Files),
    /// A low, fixed rate, against Windrow that sends each row alone.
    LowLoad(LowLoad),
    /// One body of a million rows, against the database's own bulk load.
    Bulk(Bulk),
    /// Bad rows among good ones, against good ones only.
    Poison(Poison),
    /// Rows of a pending table into a final one: the usual ways, and `windrow move`.
    Move(Moves),
    /// Ten times the load that can be carried, a database that stands still or is killed, a flood
    /// of bad rows, clients that never read: what is refused, what memory does, how soon it is
    /// over.
    Overload(Overload),
    /// Thousands of misbehaving clients beside a few good ones.
    Soak(Soak),
    /// The database is stopped for a while under a load that the spool acknowledges.
    Outage(Outage),
    /// Rows to two replicas in batches and one by one, and what it costs clients to wait for them.
    Replicas(Replicas),
    /// Rows over a slow line: row by row, in one transaction, pipelined, in bulk, and through
    /// Windrow.
    Latency(Latency),
    /// Rows by the size of a batch and the number of connections: where more of either brings
    /// nothing, and what Windrow finds by itself.
    Sweep(Sweep),
    /// Rows by the form and size of a batch: single, pipelined, multi-row, arrays, COPY, LOAD DATA.
    Forms(Forms),
    /// Documents in batches of HTTP requests, against one request for each.
    BatchApi(BatchApi),
    /// Rows into the spool, against the disk's own synced rate and the gateway's own limit.
    Spool(Spool),
    /// Clients of PostgreSQL or MariaDB that changed only their port: direct, through Windrow and
    /// through PgBouncer, by number of clients, at fixed rates, with bad rows, and with thousands
    /// connected.
    Gateway(Gateway),
    /// A rate that rises until PostgreSQL, which has one core to itself, takes no more: direct,
    /// through PgBouncer and through Windrow.
    Capacity(Capacity),
    /// Clients of PostgreSQL beside neighbours that come and go: what Windrow finds by itself,
    /// against bounds of its flights.
    Pace(Pace),
    /// Two stored runs side by side, and which differences are larger than the noise.
    Compare(Compare),
    /// Forwards connections to an address, for the experiment `gateway`.
    #[command(name = forward::COMMAND, hide = true)]
    Forward { to: SocketAddr, us: u64 },
    /// Three weather stations send one reading at a time; checks what arrived. Stores nothing.
    Weather(Stations),
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    if let Experiment::Forward { to, us } = cli.experiment {
        return forward::forward(to, Duration::from_micros(us));
    }
    let _awake = cli.awake.then(Awake::start).transpose()?;
    let again = match cli.once {
        true => Again::Never,
        false => Again::Measure,
    };
    undisturbed(&cli.report, again, |report| cli.experiment.run(report))
}

impl Experiment {
    fn run(&self, report: &Path) -> Result<()> {
        match self {
            Self::Load(e) => e.run(report),
            Self::LowLoad(e) => e.run(report),
            Self::Files(e) => e.run(report),
            Self::Bulk(e) => e.run(report),
            Self::Poison(e) => e.run(report),
            Self::Move(e) => e.run(report),
            Self::Overload(e) => e.run(report),
            Self::Outage(e) => e.run(report),
            Self::Replicas(e) => e.run(report),
            Self::Latency(e) => e.run(report),
            Self::Sweep(e) => e.run(report),
            Self::Forms(e) => e.run(report),
            Self::BatchApi(e) => e.run(report),
            Self::Spool(e) => e.run(report),
            Self::Soak(e) => e.run(report),
            Self::Gateway(e) => e.run(report),
            Self::Capacity(e) => e.run(report),
            Self::Pace(e) => e.run(report),
            Self::Compare(e) => e.run(),
            Self::Weather(e) => e.run(),
            Self::Forward { to, us } => forward::forward(*to, Duration::from_micros(*us)),
        }
    }
}
