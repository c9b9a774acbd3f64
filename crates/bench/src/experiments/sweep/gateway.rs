//! The same rows through Windrow's lane, and the point that its pace finds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use windrow_testkit::process::Windrow;

use super::place::Place;
use super::rows::{Body, Rows};
use crate::http::connection::Connection;
use crate::http::stream;
use crate::servers;

const TARGET: &str = "/v1/tables/lineitem/rows?results=none";

/// How often the point is looked at while it is measured.
const LOOKS: u32 = 10;

/// What the lane did.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Rows a second.
    pub(super) rate: f64,
    /// The largest batch that pace allows.
    pub(super) rows: f64,
    /// The flights that it allows.
    pub(super) flights: f64,
    /// The mean batch.
    pub(super) mean: f64,
}

/// Streams so many bodies at once: for a while in which pace finds its point, then while it is
/// measured.
pub(super) fn run(
    place: &Place,
    rows: &Arc<Rows>,
    bodies: usize,
    (find, time): (Duration, Duration),
) -> Result<Found> {
    let windrow = servers::windrow(&place.url(), &[])?;
    let ends = Arc::new(AtomicBool::new(false));
    let before = rows.taken();
    let found = thread::scope(|scope| {
        let senders: Vec<_> = (0..bodies)
            .map(|_| {
                let (address, body) = (windrow.address(), Body::new(rows, &ends));
                scope.spawn(move || {
                    stream::post(address, TARGET, "application/x-ndjson", None, body)
                })
            })
            .collect();
        let found = look(&windrow, find, time);
        ends.store(true, Ordering::Relaxed);
        for sender in senders {
            let reply = sender.join().map_err(|_| anyhow!("a sender panicked"))??;
            ensure!(reply.status == 200, "{} {}", reply.status, reply.body);
        }
        found
    })?;
    // A body takes whole portions, and was answered once all of it was written.
    let (sent, there) = (rows.taken() - before, place.count()?);
    ensure!(
        sent == there,
        "{sent} rows were sent to Windrow, {there} are there"
    );
    Ok(found)
}

fn look(windrow: &Windrow, find: Duration, time: Duration) -> Result<Found> {
    thread::sleep(find);
    let (start, first) = (Instant::now(), Sample::of(windrow)?);
    let mut samples = Vec::new();
    for _ in 0..LOOKS {
        thread::sleep(time / LOOKS);
        samples.push(Sample::of(windrow)?);
    }
    let (took, last) = (start.elapsed(), samples.last().copied().unwrap_or(first));
    let median = |of: fn(&Sample) -> f64| {
        let mut all: Vec<f64> = samples.iter().map(of).collect();
        all.sort_unstable_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or_default()
    };
    let (rows, batches) = (last.rows - first.rows, last.batches - first.batches);
    ensure!(rows > 0.0, "no row was written within {took:?}");
    Ok(Found {
        rate: rows / took.as_secs_f64(),
        rows: median(|sample| sample.most),
        flights: median(|sample| sample.flights),
        mean: rows / batches,
    })
}

/// What the lane's metrics say at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sample {
    rows: f64,
    batches: f64,
    most: f64,
    flights: f64,
}

impl Sample {
    fn of(windrow: &Windrow) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let text = runtime.block_on(async {
            let mut connection = Connection::open(windrow.address()).await?;
            let request = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
            let (status, body) = connection.exchange(request).await?;
            ensure!(status == 200, "GET /metrics is answered {status}");
            Ok(String::from_utf8_lossy(body).into_owned())
        })?;
        Self::read(&text)
    }

    fn read(text: &str) -> Result<Self> {
        let of = |name: &str| {
            let mut lines = text
                .lines()
                .filter_map(|line| line.strip_prefix(name)?.strip_prefix("{lane=\"default\"} "));
            let value = lines
                .next()
                .and_then(|value| value.trim().parse::<f64>().ok());
            value.with_context(|| format!("/metrics has no {name} of the lane `default`"))
        };
        Ok(Self {
            rows: of("windrow_batch_rows_sum")?,
            batches: of("windrow_batch_rows_count")?,
            most: of("windrow_batch_rows_limit")?,
            flights: of("windrow_flights_limit")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_of_the_lane_that_writes() {
        let text = "windrow_batch_rows_sum{lane=\"default\"} 1200.0\nwindrow_batch_rows_count{lane=\"default\"} 4\n\
             windrow_batch_rows_limit{lane=\"other\"} 9\nwindrow_batch_rows_limit{lane=\"default\"} 512\n\
             windrow_flights_limit{lane=\"default\"} 2\n";
        let sample = Sample {
            rows: 1_200.0,
            batches: 4.0,
            most: 512.0,
            flights: 2.0,
        };
        assert_eq!(Sample::read(text).unwrap(), sample);
        let error = Sample::read("").unwrap_err().to_string();
        assert!(error.contains("windrow_batch_rows_sum"), "{error}");
    }
}
