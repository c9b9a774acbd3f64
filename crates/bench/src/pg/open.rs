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
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use windrow_testkit::pgclient::{Address, frontend};

use super::answer;
use super::job::{self, Job};
use super::report::{Report, Told};
use crate::http::report::as_f64;

/// How much is offered.
#[derive(Clone, Copy, Debug)]
pub struct Open {
    /// Connections that the calls are spread over.
    pub connections: usize,
    /// Calls a second, of all connections.
    pub rate: f64,
    /// How long.
    pub time: Duration,
    /// The same seed gives the same arrivals.
    pub seed: u64,
}

/// Runs a load to its end.
///
/// # Errors
/// A connection cannot be opened or ends.
pub fn run(address: &Address, load: &Open, job: &Arc<dyn Job>) -> Result<Report> {
    let mut open = Vec::new();
    for _ in 0..load.connections {
        open.push(Connection::open(address, &**job)?);
    }
    let start = Instant::now() + Duration::from_millis(50);
    let clients: Vec<_> = open
        .into_iter()
        .enumerate()
        .map(|(number, connection)| {
            let (load, job) = (*load, Arc::clone(job));
            thread::spawn(move || client(connection, &load, &*job, number, start))
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
    mut connection: Connection,
    load: &Open,
    job: &dyn Job,
    number: usize,
    start: Instant,
) -> Result<Report> {
    let mut rng = StdRng::seed_from_u64(load.seed ^ (number as u64) << 32);
    let mean_gap = as_f64(load.connections as u64) / load.rate;
    let mut report = Report::new()?;
    let mut request = Vec::new();
    let mut due = Duration::ZERO;
    for n in 0.. {
        // The gaps of a Poisson process: 1 - random is never 0.
        due += Duration::from_secs_f64(-mean_gap * (1.0 - rng.random::<f64>()).ln());
        if due >= load.time {
            break;
        }
        job::call(job, number, n, &mut request);
        let begun = crate::http::open::wait_until(start + due);
        let told = connection.exchange(&request)?;
        report.add(told, begun.elapsed());
        job.told(number, n, told);
    }
    Ok(report)
}

/// A connection that blocks.
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
            let told = connection.exchange(&request)?;
            anyhow::ensure!(told == Told::Success, "the server says {told:?}");
        }
        Ok(connection)
    }

    fn exchange(&mut self, request: &[u8]) -> Result<Told> {
        self.stream.write_all(request)?;
        self.input.clear();
        let mut chunk = [0; 4096];
        loop {
            let n = self.stream.read(&mut chunk)?;
            anyhow::ensure!(n > 0, "the server closed the connection");
            self.input
                .extend_from_slice(chunk.get(..n).unwrap_or_default());
            if let Some(told) = answer::parse(&self.input)? {
                return Ok(told);
            }
        }
    }
}
