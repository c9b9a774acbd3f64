//! An open loop: calls leave at times that were fixed before, however slow the answers are.
//!
//! As [`crate::http::open`]: a thread for each connection, arrivals of independent clients (a
//! Poisson process), and a call that had to wait for its connection is measured from the time when
//! it should have left.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use windrow_testkit::pgclient::{Address, frontend};

use super::answer;
use super::job::{self, Job};
use super::report::{CallOutcome, Report};
use crate::http::open::{arrivals, wait_until};
use crate::number::as_f64;

/// The offered load.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    /// Calls a second, of all connections.
    pub rate: f64,
    /// The time of the load.
    pub time: Duration,
    /// The same seed gives the same arrivals.
    pub seed: u64,
}

/// Connections that the calls are spread over.
#[derive(Debug)]
pub struct Clients(Vec<Connection>);

impl Clients {
    /// Opens them, and lets them prepare a job's statement.
    ///
    /// # Errors
    /// One is not let in.
    pub fn open(address: &Address, count: usize, job: &dyn Job) -> Result<Self> {
        let open = (0..count).map(|_| Connection::open(address, job));
        Ok(Self(open.collect::<Result<_>>()?))
    }

    /// Runs a load to its end.
    ///
    /// # Errors
    /// A connection ends.
    pub fn run(&mut self, load: &Open, job: &Arc<dyn Job>) -> Result<Report> {
        let start = Instant::now() + Duration::from_millis(50);
        let mean_gap = as_f64(self.0.len() as u64) / load.rate;
        let clients: Vec<_> = std::mem::take(&mut self.0)
            .into_iter()
            .enumerate()
            .map(|(number, mut connection)| {
                let (load, job) = (*load, Arc::clone(job));
                thread::spawn(move || {
                    let seen = client(&mut connection, (&load, mean_gap), &*job, number, start)?;
                    anyhow::Ok((connection, seen))
                })
            })
            .collect();
        let mut report = Report::new()?;
        for client in clients {
            let ended = client.join().map_err(|_| anyhow!("a client panicked"))?;
            let (connection, seen) = ended?;
            report.merge(&seen)?;
            self.0.push(connection);
        }
        report.elapsed = start.elapsed();
        Ok(report)
    }
}

fn client(
    connection: &mut Connection,
    (load, mean_gap): (&Open, f64),
    job: &dyn Job,
    number: usize,
    start: Instant,
) -> Result<Report> {
    let mut arrivals = arrivals(load.seed, number, mean_gap, load.time);
    let mut report = Report::new()?;
    let mut request = Vec::new();
    for n in 0.. {
        let Some(due) = arrivals() else { break };
        job::call(job, number, n, &mut request);
        let begun = wait_until(start + due);
        let outcome = connection.exchange(&request)?;
        report.add(outcome, begun.elapsed(), b"");
        job.seen(number, n, outcome);
    }
    Ok(report)
}

/// A connection that blocks.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    input: Vec<u8>,
}

impl Connection {
    fn open(address: &Address, job: &dyn Job) -> Result<Self> {
        let stream = TcpStream::connect(address.socket).context("nobody listens")?;
        stream.set_nodelay(true)?;
        let mut connection = Self {
            stream,
            input: Vec::new(),
        };
        let mut out = Vec::new();
        let parameters = [
            ("user", address.role.as_str()),
            ("database", address.database.as_str()),
        ];
        frontend::startup(&mut out, &parameters);
        for request in [out, job::prepare(job)] {
            let outcome = connection.exchange(&request)?;
            anyhow::ensure!(
                outcome == CallOutcome::Success,
                "the server says {outcome:?}"
            );
        }
        Ok(connection)
    }

    fn exchange(&mut self, request: &[u8]) -> Result<CallOutcome> {
        self.stream.write_all(request)?;
        self.input.clear();
        let mut chunk = [0; 4096];
        loop {
            let n = self.stream.read(&mut chunk)?;
            anyhow::ensure!(n > 0, "the server closed the connection");
            self.input
                .extend_from_slice(chunk.get(..n).unwrap_or_default());
            if let Some(outcome) = answer::parse(&self.input)? {
                return Ok(outcome);
            }
        }
    }
}
