//! An open loop: requests leave at times that were fixed before, however slow the answers are.
//!
//! Each connection is a thread of its own with blocking calls: an event loop's timers have a
//! granularity of a millisecond, and that is more than what is measured here. Arrivals are those of
//! independent clients (a Poisson process); a request that had to wait for its connection is
//! measured from the time when it should have left, so slow answers are not hidden by the requests
//! that they delay ("coordinated omission").

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::answer;
use super::job::{Job, Writer};
use super::report::{Outcome, Report};
use crate::number::as_f64;

/// The offered load.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    /// Connections that the requests are spread over.
    pub connections: usize,
    /// Requests a second, of all connections.
    pub rate: f64,
    /// The time of the load.
    pub time: Duration,
    /// The same seed gives the same arrivals.
    pub seed: u64,
}

/// Runs a load to its end.
///
/// # Errors
/// A connection cannot be opened. That one ends is an outcome.
pub fn run(address: SocketAddr, load: &Open, job: &Arc<dyn Job>) -> Result<Report> {
    spread(address, load.connections, job, |number| {
        let mean_gap = as_f64(load.connections as u64) / load.rate;
        arrivals(load.seed, number, mean_gap, load.time)
    })
}

/// Returns the schedule of one connection: the arrivals of a Poisson process until the time is
/// over.
pub(crate) fn arrivals(
    seed: u64,
    connection: usize,
    mean_gap: f64,
    time: Duration,
) -> impl FnMut() -> Option<Duration> + Send + 'static {
    let mut rng = StdRng::seed_from_u64(seed ^ (connection as u64) << 32);
    let mut due = Duration::ZERO;
    move || {
        // 1 - random is never 0.
        due += Duration::from_secs_f64(-mean_gap * (1.0 - rng.random::<f64>()).ln());
        (due < time).then_some(due)
    }
}

/// As [`run`], but any connection that is free takes the next request, at even distances: as long
/// as one is free, no request waits for a connection, however many others wait for their answers.
/// Ends when the job says so.
///
/// # Errors
/// As [`run`].
pub fn run_by_free_connections(
    address: SocketAddr,
    load: &Open,
    job: &Arc<dyn Job>,
) -> Result<Report> {
    let next = Arc::new(AtomicU64::new(0));
    spread(address, load.connections, job, |_| {
        let (next, rate, time) = (Arc::clone(&next), load.rate, load.time);
        move || {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let due = Duration::from_secs_f64(as_f64(number) / rate);
            (due < time).then_some(due)
        }
    })
}

/// A thread for each connection, with a schedule of its own: when its next request is due, if it
/// has one.
fn spread<S>(
    address: SocketAddr,
    connections: usize,
    job: &Arc<dyn Job>,
    schedule: impl Fn(usize) -> S,
) -> Result<Report>
where
    S: FnMut() -> Option<Duration> + Send + 'static,
{
    let start = Instant::now() + Duration::from_millis(50);
    let clients: Vec<_> = (0..connections)
        .map(|number| {
            let (schedule, job) = (schedule(number), Arc::clone(job));
            thread::spawn(move || client(address, schedule, &*job, number, start))
        })
        .collect();
    let mut report = Report::new()?;
    for client in clients {
        let seen = client.join().map_err(|_| anyhow!("a client panicked"))?;
        report.merge(&seen?)?;
    }
    report.elapsed = start.elapsed();
    Ok(report)
}

fn client(
    address: SocketAddr,
    mut schedule: impl FnMut() -> Option<Duration>,
    job: &dyn Job,
    number: usize,
    start: Instant,
) -> Result<Report> {
    let mut stream = connect(address)?;
    let mut report = Report::new()?;
    let mut writer = Writer::new(job);
    let mut input = Vec::with_capacity(4096);
    for n in 0.. {
        let Some(due) = schedule() else { break };
        if job.ends(number, n) {
            break;
        }
        let begun = wait_until(start + due);
        let exchanged = exchange(&mut stream, writer.write(job, number, n), &mut input);
        let took = begun.elapsed();
        let (outcome, answer) = match exchanged {
            Ok((status, body)) => {
                let answer = input.get(body).unwrap_or_default();
                (Outcome::of(status, answer), answer)
            }
            Err(_) => {
                stream = connect(address)?;
                (Outcome::Lost, &[][..])
            }
        };
        report.add(outcome, took, answer);
        job.seen(number, n, outcome, answer);
    }
    Ok(report)
}

/// Waits; says from when to measure: from now, where the connection was idle (how late the
/// operating system wakes a sleeper is not the server's time), and from the time due where it was
/// not.
pub(crate) fn wait_until(due: Instant) -> Instant {
    match due.checked_duration_since(Instant::now()) {
        Some(early) => {
            thread::sleep(early);
            Instant::now()
        }
        None => due,
    }
}

fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect(address).context("nobody listens")?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn exchange(
    stream: &mut TcpStream,
    request: &[u8],
    input: &mut Vec<u8>,
) -> Result<(u16, std::ops::Range<usize>)> {
    stream.write_all(request)?;
    input.clear();
    let mut chunk = [0; 4096];
    loop {
        let n = stream.read(&mut chunk)?;
        anyhow::ensure!(n > 0, "the server closed the connection");
        input.extend_from_slice(chunk.get(..n).unwrap_or_default());
        if let Some(answer) = answer::parse(input)? {
            return Ok((answer.status, answer.body));
        }
    }
}
