//! Outcomes of requests over HTTP, and their counters.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::load_report::{LoadOutcome, LoadReport};

/// Latencies and outcomes of a load over HTTP.
pub type Report = LoadReport<Outcome>;

/// The outcome of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Outcome {
    /// Answered with success.
    Success,
    /// Answered with an error: the row is certainly not there.
    Refused(u16),
    /// Answered that the outcome is unknown (SQLSTATE 08007).
    Unknown,
    /// Not answered: the connection ended.
    Lost,
}

impl LoadOutcome for Outcome {
    fn is_success(self) -> bool {
        self == Self::Success
    }
}

impl Outcome {
    /// Reads an outcome from an answer.
    pub fn of(status: u16, body: &[u8]) -> Self {
        match status {
            200..300 => Self::Success,
            _ if memchr::memmem::find(body, b"08007").is_some() => Self::Unknown,
            _ => Self::Refused(status),
        }
    }
}

/// Counters of a running load.
#[derive(Debug, Default)]
pub struct Live {
    success: AtomicU64,
    other: AtomicU64,
}

impl Live {
    pub(super) fn count(&self, outcome: Outcome) {
        let counter = match outcome {
            Outcome::Success => &self.success,
            _ => &self.other,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the requests answered with success so far.
    pub fn successes(&self) -> u64 {
        self.success.load(Ordering::Relaxed)
    }

    /// Returns the requests with any other outcome so far.
    pub fn others(&self) -> u64 {
        self.other.load(Ordering::Relaxed)
    }
}
