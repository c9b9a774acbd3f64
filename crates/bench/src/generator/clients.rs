//! Many clients of one server.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use tokio::task::LocalSet;
use windrow_testkit::procfs;

use super::arrivals::Arrivals;
use super::connection::{Connection, PausedConnection, Target};
use super::job::{Call, Job};
use super::report::{Live, Outcome, Report};
use super::schedule::{Due, Schedule, Until};
use crate::runtime::{block_on, runtime};

/// The delay of a client after 429 or 503, and before it connects again. A real one waits longer.
const PAUSE: Duration = Duration::from_millis(20);

/// Clients that are connected. They keep their connections from load to load.
#[derive(Debug)]
pub struct Clients {
    target: Target,
    streams: Vec<PausedConnection>,
    busy: usize,
}

/// Parts of a load that all of its clients share.
#[derive(Clone)]
struct Shared {
    target: Target,
    until: Until,
    begun: Instant,
    job: Arc<dyn Job>,
    live: Arc<Live>,
}

impl Clients {
    /// Connects them, one after the other.
    ///
    /// # Errors
    /// One is not let in.
    pub fn open(target: &Target, count: usize) -> Result<Self> {
        let streams = block_on(async {
            let mut streams = Vec::with_capacity(count);
            for _ in 0..count {
                streams.push(Connection::open(target).await?.pause()?);
            }
            anyhow::Ok(streams)
        })?;
        Ok(Self {
            target: target.clone(),
            streams,
            busy: count,
        })
    }

    /// Leaves all but the first `busy` silent from now on, and lets these send what a job has to be
    /// prepared with.
    ///
    /// # Errors
    /// The server refuses.
    pub fn prepare(mut self, busy: usize, job: &dyn Job) -> Result<Self> {
        self.busy = busy.min(self.streams.len());
        let (mut request, target) = (Vec::new(), self.target.clone());
        job.prepare(&mut request);
        let active = self.streams.drain(..self.busy).collect::<Vec<_>>();
        let prepared = block_on(async {
            let mut prepared = Vec::with_capacity(active.len());
            for stream in active {
                let mut connection = Connection::resume(stream, &target)?;
                connection.succeed(&request).await?;
                prepared.push(connection.pause()?);
            }
            anyhow::Ok(prepared)
        })?;
        self.streams.splice(0..0, prepared);
        Ok(self)
    }

    /// Lets the clients call until an end. They must have prepared the job.
    ///
    /// # Errors
    /// The system refuses a thread. A connection that ends is an outcome, and is opened again.
    pub fn run(
        &mut self,
        schedule: Schedule,
        until: &Until,
        job: &Arc<dyn Job>,
        live: &Arc<Live>,
    ) -> Result<Report> {
        let active: Vec<_> = self.streams.drain(..self.busy).collect();
        let mut shared = Shared {
            target: self.target.clone(),
            until: until.clone(),
            begun: Instant::now(),
            job: Arc::clone(job),
            live: Arc::clone(live),
        };
        let (streams, mut report) = match schedule {
            Schedule::Closed => on_one_thread(&shared, active, &Arrivals::at_once())?,
            Schedule::Arrivals { .. } => arriving(&shared, active, schedule)?,
            _ => {
                // All threads are there before the first call is due.
                shared.begun += Duration::from_millis(50);
                let dues = schedule.dues(active.len(), until.time);
                open(&shared, active, dues)?
            }
        };
        report.elapsed = shared.begun.elapsed();
        self.busy = streams.len();
        self.streams.splice(0..0, streams);
        Ok(report)
    }
}

/// The calls of a schedule by clients on this thread. Those that are due later than the clients can
/// make them are left out at the end.
fn arriving(
    shared: &Shared,
    active: Vec<PausedConnection>,
    schedule: Schedule,
) -> Result<(Vec<PausedConnection>, Report)> {
    let due = schedule.dues(1, shared.until.time).pop();
    let due = due.context("a schedule of one client")?;
    let (arrivals, pacer) = Arrivals::start(shared.begun, due);
    let (streams, mut report) = on_one_thread(shared, active, &arrivals)?;
    drop(arrivals);
    let pacer = pacer.cpu_time()?;
    report.generator_cpu = report.generator_cpu.map(|cpu| cpu + pacer);
    Ok((streams, report))
}

/// All clients on this thread, with one event loop.
fn on_one_thread(
    shared: &Shared,
    active: Vec<PausedConnection>,
    arrivals: &Arrivals,
) -> Result<(Vec<PausedConnection>, Report)> {
    let cpu = procfs::thread_cpu_time()?;
    // One for all of them: thousands of histograms would fit into no cache.
    let report = Rc::new(RefCell::new(Report::new()?));
    let runtime = runtime()?;
    let streams = LocalSet::new().block_on(&runtime, async {
        let mut running = Vec::with_capacity(active.len());
        for (number, stream) in active.into_iter().enumerate() {
            let connection = Some(Connection::resume(stream, &shared.target)?);
            let mut client = shared.client(number, connection);
            let (report, arrivals) = (Rc::clone(&report), arrivals.clone());
            running.push(tokio::task::spawn_local(async move {
                while !client.is_over() {
                    if client.connection.is_none() {
                        tokio::time::sleep(PAUSE).await;
                        client.connection = client.connect().await.ok();
                        continue;
                    }
                    let Some(since) = arrivals.next().await else {
                        break;
                    };
                    let outcome = client.call().await;
                    let answer = client.answer();
                    report.borrow_mut().add(outcome, since.elapsed(), answer);
                    client.seen(outcome);
                    if matches!(outcome, Outcome::Refused(429 | 503)) {
                        tokio::time::sleep(PAUSE).await;
                    }
                }
                client.end().await
            }));
        }
        let mut streams = Vec::with_capacity(running.len());
        for client in running {
            streams.extend(client.await.context("a client panicked")?);
        }
        anyhow::Ok(streams)
    })?;
    let mut report = report.borrow().clone();
    report.generator_cpu = Some(procfs::thread_cpu_time()? - cpu);
    Ok((streams, report))
}

/// Each client on a thread of its own: an event loop's timers have a granularity of a millisecond,
/// and that is more than what is measured. A call that had to wait for its client is measured from
/// the time when it should have left, so slow answers are not hidden by the calls that they delay
/// ("coordinated omission").
fn open(
    shared: &Shared,
    active: Vec<PausedConnection>,
    dues: Vec<Due>,
) -> Result<(Vec<PausedConnection>, Report)> {
    let mut report = Report::new()?;
    let clients: Vec<_> = active
        .into_iter()
        .zip(dues)
        .enumerate()
        .map(|(number, (stream, due))| {
            let shared = shared.clone();
            thread::spawn(move || at_times(&shared, number, stream, due))
        })
        .collect();
    let mut streams = Vec::with_capacity(clients.len());
    for client in clients {
        let ended = client.join().map_err(|_| anyhow!("a client panicked"))?;
        let (stream, seen) = ended?;
        report.merge(&seen)?;
        streams.extend(stream);
    }
    Ok((streams, report))
}

fn at_times(
    shared: &Shared,
    number: usize,
    stream: PausedConnection,
    mut due: Due,
) -> Result<(Option<PausedConnection>, Report)> {
    let runtime = runtime()?;
    let entered = runtime.enter();
    let connection = Some(Connection::resume(stream, &shared.target)?);
    drop(entered);
    let mut client = shared.client(number, connection);
    let mut report = Report::new()?;
    while let Some(due) = due() {
        if client.has_ended() {
            break;
        }
        let since = wait_until(shared.begun + due);
        let outcome = runtime.block_on(client.call());
        report.add(outcome, since.elapsed(), client.answer());
        client.seen(outcome);
    }
    Ok((runtime.block_on(client.end()), report))
}

/// Waits; says from when to measure: from now, if the client was idle (how late the operating
/// system wakes a sleeper is not the server's time), and else from the time due.
fn wait_until(due: Instant) -> Instant {
    match due.checked_duration_since(Instant::now()) {
        Some(early) => {
            thread::sleep(early);
            Instant::now()
        }
        None => due,
    }
}

/// One client of a load.
struct Client {
    shared: Shared,
    number: usize,
    n: u64,
    /// `None` after it was lost.
    connection: Option<Connection>,
    request: Vec<u8>,
}

impl Shared {
    fn client(&self, number: usize, connection: Option<Connection>) -> Client {
        Client {
            shared: self.clone(),
            number,
            n: 0,
            connection,
            request: Vec::new(),
        }
    }
}

impl Client {
    fn is_over(&self) -> bool {
        self.shared.begun.elapsed() >= self.shared.until.time || self.has_ended()
    }

    /// True if the client has no more calls, or is to stop.
    fn has_ended(&self) -> bool {
        let Until { calls, stop, .. } = &self.shared.until;
        let call = Call::new(self.number, self.n);
        self.n >= *calls || stop.load(Ordering::Relaxed) || self.shared.job.ends(call)
    }

    /// Makes the next call; connects again first if the connection was lost.
    async fn call(&mut self) -> Outcome {
        if self.connection.is_none() {
            self.connection = self.connect().await.ok();
        }
        let Some(connection) = &mut self.connection else {
            return Outcome::Lost;
        };
        let call = Call::new(self.number, self.n);
        let outcome = connection.call(&*self.shared.job, call, &mut self.request);
        outcome.await.unwrap_or(Outcome::Lost)
    }

    async fn connect(&self) -> Result<Connection> {
        let mut connection = Connection::open(&self.shared.target).await?;
        let mut request = Vec::new();
        self.shared.job.prepare(&mut request);
        connection.succeed(&request).await?;
        Ok(connection)
    }

    fn answer(&self) -> &[u8] {
        self.connection.as_ref().map_or(b"", Connection::answer)
    }

    fn seen(&mut self, outcome: Outcome) {
        self.shared.live.count(outcome);
        let call = Call::new(self.number, self.n);
        self.shared.job.seen(call, outcome, self.answer());
        self.n += 1;
        if outcome == Outcome::Lost {
            self.connection = None;
        }
    }

    /// Gives the connection back; another one if it was lost last, and none if there is none to be
    /// had.
    async fn end(mut self) -> Option<PausedConnection> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect().await.ok()?,
        };
        connection.pause().ok()
    }
}
