//! Clients that behave well: each inserts a row at fixed times and waits for the answer.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use hdrhistogram::Histogram;
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::super::outcomes::Remembered;
use super::ways::Ways;
use crate::http::connection::Connection;
use crate::http::job::Writer;
use crate::http::{Job as _, Outcome};
use crate::number::as_f64;
use crate::pg::Inserts;
use crate::pg::job::{call, prepare};
use crate::pg::report::CallOutcome;
use crate::pg::session::Session;

/// The delay before a client connects again.
const PAUSE: Duration = Duration::from_millis(100);

/// Latencies above this, in microseconds, count as this: an hour.
const LONGEST: u64 = 3_600_000_000;

/// The good clients.
pub(super) struct Good {
    pub(super) clients: usize,
    /// The number of the first one: their rows are numbered by it.
    pub(super) first: usize,
    /// Between two rows of one client.
    pub(super) gap: Duration,
    pub(super) time: Duration,
}

/// The results of the clients of one protocol.
struct Seen {
    latencies: Histogram<u64>,
    failures: u64,
}

/// The results of all good clients.
pub(super) struct Both {
    pg: Seen,
    http: Seen,
}

impl Seen {
    fn new() -> Result<Self> {
        Ok(Self {
            latencies: Histogram::new_with_bounds(1, LONGEST, 3)?,
            failures: 0,
        })
    }

    fn ms(&self, percent: f64) -> f64 {
        as_f64(self.latencies.value_at_percentile(percent)) / 1000.0
    }

    fn add(&mut self, outcome: Outcome, since: Instant) {
        let micros = u64::try_from(since.elapsed().as_micros()).unwrap_or(LONGEST);
        self.latencies.saturating_record(micros.max(1));
        self.failures += u64::from(outcome != Outcome::Success);
    }
}

impl Both {
    pub(super) fn metrics(&self) -> Vec<(&'static str, f64)> {
        vec![
            ("pg p50 ms", self.pg.ms(50.0)),
            ("pg p99 ms", self.pg.ms(99.0)),
            ("pg max ms", self.pg.ms(100.0)),
            ("pg rows", as_f64(self.pg.latencies.len())),
            ("pg failures", as_f64(self.pg.failures)),
            ("http p50 ms", self.http.ms(50.0)),
            ("http p99 ms", self.http.ms(99.0)),
            ("http max ms", self.http.ms(100.0)),
            ("http rows", as_f64(self.http.latencies.len())),
            ("http failures", as_f64(self.http.failures)),
        ]
    }
}

/// Runs them to their end, on a thread of their own.
pub(super) fn run(good: &Good, ways: &Ways, remembered: &Arc<Remembered>) -> Result<Both> {
    let running = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        LocalSet::new().block_on(&runtime, drive(good, ways, remembered))
    };
    std::thread::scope(|scope| {
        let thread = scope.spawn(running);
        thread.join().map_err(|_| anyhow!("the clients panicked"))?
    })
}

async fn drive(good: &Good, ways: &Ways, remembered: &Arc<Remembered>) -> Result<Both> {
    let start = Instant::now() + Duration::from_millis(200);
    let clients: Vec<_> = (0..good.clients)
        .map(|number| {
            let share = number as f64 / good.clients as f64;
            let client = Client {
                number: good.first + number,
                due: start + good.gap.mul_f64(share),
                gap: good.gap,
                end: start + good.time,
                ways: ways.clone(),
                remembered: Arc::clone(remembered),
                writer: Writer::new(&**remembered),
                request: Vec::new(),
            };
            let pg = number % 2 == 0;
            let calls = tokio::task::spawn_local(client.run(pg));
            (pg, calls)
        })
        .collect();
    let mut both = Both {
        pg: Seen::new()?,
        http: Seen::new()?,
    };
    for (pg, client) in clients {
        let seen = client.await.context("a client panicked")??;
        let all = if pg { &mut both.pg } else { &mut both.http };
        all.latencies.add(&seen.latencies)?;
        all.failures += seen.failures;
    }
    Ok(both)
}

struct Client {
    number: usize,
    due: Instant,
    gap: Duration,
    end: Instant,
    ways: Ways,
    remembered: Arc<Remembered>,
    writer: Writer,
    request: Vec<u8>,
}

/// An open connection.
enum Line {
    Pg(Session),
    Http(Connection),
}

impl Client {
    async fn run(mut self, pg: bool) -> Result<Seen> {
        let mut seen = Seen::new()?;
        let (mut line, mut n) = (None, 0);
        while self.due < self.end {
            // A row that had to wait for the one before it is measured from the time when it should
            // have left.
            let since = match Instant::now() {
                now if now > self.due => self.due,
                _ => {
                    sleep_until(self.due).await;
                    Instant::now()
                }
            };
            let outcome = match &mut line {
                Some(open) => self.exchange(open, n).await,
                None => {
                    line = self.open(pg).await;
                    match &mut line {
                        Some(open) => self.exchange(open, n).await,
                        None => Outcome::Lost,
                    }
                }
            };
            seen.add(outcome, since);
            self.remembered.seen(self.number, n, outcome, b"");
            n += 1;
            self.due += self.gap;
            if outcome == Outcome::Lost {
                line = None;
                sleep(PAUSE).await;
            }
        }
        Ok(seen)
    }

    async fn open(&self, pg: bool) -> Option<Line> {
        if !pg {
            return Connection::open(self.ways.http).await.ok().map(Line::Http);
        }
        let mut session = Session::open(&self.ways.pg).await.ok()?;
        session.expect(&prepare(&Inserts::default())).await.ok()?;
        Some(Line::Pg(session))
    }

    async fn exchange(&mut self, line: &mut Line, n: u64) -> Outcome {
        match line {
            Line::Http(connection) => {
                let request = self.writer.write(&*self.remembered, self.number, n);
                match connection.exchange(request).await {
                    Ok((status, body)) => Outcome::of(status, body),
                    Err(_) => Outcome::Lost,
                }
            }
            Line::Pg(session) => {
                call(&Inserts::default(), self.number, n, &mut self.request);
                match session.exchange(&self.request).await {
                    Ok(CallOutcome::Success) => Outcome::Success,
                    Ok(CallOutcome::Error(code)) if code == *b"08007" => Outcome::Unknown,
                    Ok(CallOutcome::Error(_)) => Outcome::Refused(0),
                    Err(_) => Outcome::Lost,
                }
            }
        }
    }
}
