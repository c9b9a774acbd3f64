//! What the load generator itself costs: the same requests against a server that answers without
//! doing anything.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::load::latencies;
use crate::figures::Run;
use crate::http::closed::{self, Closed, Until};
use crate::http::report::as_f64;
use crate::http::{Inserts, Job, Live};
use crate::say;

/// Settings of the experiment.
#[derive(Clone, Debug, clap::Args)]
pub struct Ceiling {
    /// Clients, each with one request under way.
    #[arg(long, default_value_t = 64)]
    pub connections: usize,
    /// Seconds of each measurement.
    #[arg(long, default_value_t = 5)]
    pub seconds: u64,
    /// Repetitions.
    #[arg(long, default_value_t = 3)]
    pub rounds: u32,
}

const ARM: &str = "a server that does nothing";

/// What Windrow answers to one row, in the same length.
const ANSWER: &[u8] =
    b"HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: 10\r\n\
    date: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\n{\"rows\":1}";

impl Ceiling {
    /// Measures, prints and stores.
    ///
    /// # Errors
    /// The server cannot be started.
    pub fn run(&self, root: &Path) -> Result<()> {
        let mut run = Run::new("ceiling", "What the load generator itself costs");
        let address = serve()?;
        let time = Duration::from_secs(self.seconds);
        for round in 1..=self.rounds {
            let load = Closed {
                connections: self.connections,
                until: Until::Elapsed(time),
            };
            let job: Arc<dyn Job> = Arc::new(Inserts::new());
            let live = Arc::new(Live::default());
            let report = say::during(ARM, time, || closed::run(address, &load, &job, &live))?;
            let mut metrics = latencies(&report);
            let micros = report.generator_cpu.as_secs_f64() * 1e6;
            metrics.push(("generator CPU us/row", micros / as_f64(report.requests())));
            run.add_all(round, ARM, &metrics);
        }
        run.store(root)?;
        Ok(())
    }
}

/// Listens on a thread of its own, until the program ends.
fn serve() -> Result<SocketAddr> {
    let (say, said) = std::sync::mpsc::channel();
    thread::spawn(move || -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(async {
            let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
            say.send(listener.local_addr()?)?;
            loop {
                let (socket, _) = listener.accept().await?;
                tokio::spawn(answer(socket));
            }
        })
    });
    said.recv().context("the server does not listen")
}

/// One answer for each request. A request's body ends in `}`, and a client has one request under
/// way.
async fn answer(mut socket: TcpStream) {
    socket.set_nodelay(true).ok();
    let mut request = Vec::with_capacity(4096);
    while let Ok(1..) = socket.read_buf(&mut request).await {
        if request.last() == Some(&b'}') {
            request.clear();
            if socket.write_all(ANSWER).await.is_err() {
                return;
            }
        }
    }
}
