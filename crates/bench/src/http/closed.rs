//! A closed loop: each connection sends its next request when the last one is answered. Finds the
//! highest rate.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use windrow_testkit::procfs;

use super::connection::Connection;
use super::job::{Job, Writer};
use super::report::{Live, Outcome, Report};

/// The offered load.
#[derive(Clone, Debug)]
pub struct Closed {
    /// Connections, each with one request under way.
    pub connections: usize,
    /// When to stop.
    pub until: Until,
}

/// When a load ends.
#[derive(Clone, Debug)]
pub enum Until {
    /// After a time.
    Elapsed(Duration),
    /// When the job has no more to send on any connection.
    Done,
    /// When the flag is set.
    Stopped(Arc<AtomicBool>),
}

/// The delay of a client after 429 or 503, and before it connects again. A real one waits longer.
const PAUSE: Duration = Duration::from_millis(20);

/// Runs a load to its end on a thread of its own with one event loop.
///
/// # Errors
/// The server cannot be reached at the beginning. Later failures are outcomes.
pub fn run(
    address: SocketAddr,
    load: &Closed,
    job: &Arc<dyn Job>,
    live: &Arc<Live>,
) -> Result<Report> {
    start(address, load.clone(), Arc::clone(job), Arc::clone(live))
        .join()
        .map_err(|_| anyhow!("the load generator panicked"))?
}

/// As [`run`], without waiting.
pub fn start(
    address: SocketAddr,
    load: Closed,
    job: Arc<dyn Job>,
    live: Arc<Live>,
) -> std::thread::JoinHandle<Result<Report>> {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let tasks = tokio::task::LocalSet::new();
        let mut report = tasks.block_on(&runtime, drive(address, &load, &job, &live))?;
        report.generator_cpu = procfs::thread_cpu_time()?;
        Ok(report)
    })
}

async fn drive(
    address: SocketAddr,
    load: &Closed,
    job: &Arc<dyn Job>,
    live: &Arc<Live>,
) -> Result<Report> {
    let mut open = Vec::new();
    for _ in 0..load.connections {
        open.push(Connection::open(address).await?);
    }
    let start = Instant::now();
    let clients: Vec<_> = open
        .into_iter()
        .enumerate()
        .map(|(number, connection)| {
            let client = Client {
                number,
                address,
                start,
                until: load.until.clone(),
                job: Arc::clone(job),
                live: Arc::clone(live),
            };
            tokio::task::spawn_local(client.run(connection))
        })
        .collect();
    let mut report = Report::new()?;
    for client in clients {
        report.merge(&client.await.context("a client panicked")??)?;
    }
    report.elapsed = start.elapsed();
    Ok(report)
}

struct Client {
    number: usize,
    address: SocketAddr,
    start: Instant,
    until: Until,
    job: Arc<dyn Job>,
    live: Arc<Live>,
}

impl Client {
    async fn run(self, connection: Connection) -> Result<Report> {
        let mut report = Report::new()?;
        let mut writer = Writer::new(&*self.job);
        let mut connection = Some(connection);
        let mut n = 0;
        while !self.ends(n) {
            let Some(open) = connection.as_mut() else {
                connection = self.reconnect().await;
                continue;
            };
            let begun = Instant::now();
            let exchanged = open
                .exchange(writer.write(&*self.job, self.number, n))
                .await;
            let (outcome, answer) = match exchanged {
                Ok((status, body)) => (Outcome::of(status, body), body),
                Err(_) => (Outcome::Lost, &[][..]),
            };
            report.add(outcome, begun.elapsed(), answer);
            self.live.count(outcome);
            self.job.seen(self.number, n, outcome, answer);
            n += 1;
            match outcome {
                Outcome::Lost => connection = None,
                Outcome::Refused(429 | 503) => tokio::time::sleep(PAUSE).await,
                _ => {}
            }
        }
        Ok(report)
    }

    async fn reconnect(&self) -> Option<Connection> {
        tokio::time::sleep(PAUSE).await;
        Connection::open(self.address).await.ok()
    }

    fn ends(&self, n: u64) -> bool {
        let is_over = match &self.until {
            Until::Elapsed(time) => self.start.elapsed() >= *time,
            Until::Done => false,
            Until::Stopped(stop) => stop.load(Ordering::Relaxed),
        };
        is_over || self.job.ends(self.number, n)
    }
}
