//! Bodies without end: they offer as many rows as the gateway takes.

use std::io::{self, Read};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use anyhow::{Context, Result, anyhow};

use crate::generator::Call;
use crate::generator::http::ROWS;
use crate::generator::stream::{self, Reply};
use crate::reading::Reading;

/// Streams that go on until [`Streams::end`].
pub(super) struct Streams {
    stop: Arc<AtomicBool>,
    running: Vec<JoinHandle<Result<Reply>>>,
}

impl Streams {
    /// Starts `count` streams, with the rows of connections from `first` on.
    pub(super) fn start(address: SocketAddr, count: usize, first: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let running = (first..first + count).map(|connection| {
            let body = Endless {
                connection,
                n: 0,
                stop: Arc::clone(&stop),
                line: Vec::new(),
                at: 0,
            };
            thread::spawn(move || {
                let target = format!("{ROWS}?results=none");
                stream::send(address, &target, "application/x-ndjson", None, body)
            })
        });
        let running = running.collect();
        Self { stop, running }
    }

    /// Tells them to end.
    pub(super) fn stop(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Ends the streams, and returns the number of rows that were reported as written.
    pub(super) fn end(self) -> Result<u64> {
        let mut rows = 0;
        for stream in self.running {
            let reply = stream.join().map_err(|_| anyhow!("a stream panicked"))??;
            let body = reply.succeeded(200)?;
            let counted = body.split("\"rows\":").nth(1);
            let digits = counted.and_then(|t| t.split(|c: char| !c.is_ascii_digit()).next());
            rows += digits
                .and_then(|d| d.parse::<u64>().ok())
                .with_context(|| format!("no row count in {body}"))?;
        }
        Ok(rows)
    }
}

/// An NDJSON body that goes on until a flag is set.
struct Endless {
    connection: usize,
    n: u64,
    stop: Arc<AtomicBool>,
    line: Vec<u8>,
    at: usize,
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.line.len() {
            if self.stop.load(Ordering::SeqCst) {
                return Ok(0);
            }
            self.fill();
        }
        let rest = self.line.get(self.at..).unwrap_or_default();
        let n = (&mut &*rest).read(buffer)?;
        self.at += n;
        Ok(n)
    }
}

impl Endless {
    /// The next hundred rows.
    fn fill(&mut self) {
        self.line.clear();
        self.at = 0;
        for _ in 0..100 {
            Reading::new(Call::new(self.connection, self.n).id()).json(&mut self.line);
            self.line.push(b'\n');
            self.n += 1;
        }
    }
}
