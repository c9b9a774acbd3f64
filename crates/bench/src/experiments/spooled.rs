//! The state of Windrow's spool, as seen from outside.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use windrow_testkit::process::Windrow;
use windrow_testkit::procfs;

use super::sampler::Sampler;
use crate::generator::stream;

/// Time between looks.
const STEP: Duration = Duration::from_millis(50);

/// The state of the spool at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Moment {
    /// Seconds since the beginning.
    pub at: f64,
    /// Entries that were ever acknowledged.
    pub end: u64,
    /// Of these, what the database has.
    pub applied: u64,
    /// Resident memory of Windrow, in bytes.
    pub resident: u64,
}

impl Moment {
    /// Entries that the database does not have.
    pub(super) fn waiting(&self) -> u64 {
        self.end.saturating_sub(self.applied)
    }
}

/// Asks `GET /v1/lanes`. Where the database has not been asked yet, nothing counts as applied.
///
/// # Errors
/// Nobody answers, or there is no spool.
pub(super) fn look(address: SocketAddr) -> Result<Moment> {
    let body = stream::ask(address, "GET /v1/lanes")?;
    let lanes: serde_json::Value = serde_json::from_str(&body).context("no JSON")?;
    let partition = lanes.pointer("/spool/partitions/0");
    let number = |name: &str| partition.and_then(|part| part.get(name)?.as_u64());
    Ok(Moment {
        end: number("end").context("there is no spool")?,
        applied: number("applied").unwrap_or(0),
        ..Moment::default()
    })
}

/// Waits until the database has all that is in the spool.
///
/// # Errors
/// The timeout is over.
pub(super) fn level(address: SocketAddr, timeout: Duration) -> Result<()> {
    let start = Instant::now();
    while look(address)?.waiting() > 0 {
        anyhow::ensure!(
            start.elapsed() < timeout,
            "the spool is not applied within {timeout:?}"
        );
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}

/// Begins to watch Windrow's spool.
pub(super) fn watch(windrow: &Windrow) -> Sampler<Moment> {
    let (pid, address) = (windrow.pid(), windrow.address());
    Sampler::start(STEP, move |at| {
        Ok(Moment {
            at,
            resident: procfs::resident_bytes(pid)?,
            ..look(address)?
        })
    })
}

/// All moments as CSV.
pub(super) fn csv(moments: &[Moment]) -> String {
    let mut text = String::from("seconds,acknowledged,applied,resident_bytes\n");
    for m in moments {
        writeln!(text, "{:.3},{},{},{}", m.at, m.end, m.applied, m.resident).ok();
    }
    text
}
