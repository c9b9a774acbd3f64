//! When clients make their calls, and when they stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::number::as_f64;

/// When clients make their calls.
#[derive(Clone, Copy, Debug)]
pub enum Schedule {
    /// Each makes its next call when the last one is answered. Finds the highest rate.
    Closed,
    /// At times that were fixed before, so many a second of all clients, as of independent clients
    /// (a Poisson process). The same seed gives the same times.
    Poisson {
        /// Calls a second.
        rate: f64,
        /// The seed.
        seed: u64,
    },
    /// The same times, and each call by any client that is free. All clients are on one thread,
    /// which costs the machine less: for rates that it hardly carries.
    Arrivals {
        /// Calls a second, of all clients.
        rate: f64,
        /// The seed.
        seed: u64,
    },
    /// Each client at even distances, and one after the other.
    Even {
        /// Calls a second, of all clients.
        rate: f64,
    },
    /// At even distances, by any client that is free: as long as one is free, no call waits for a
    /// client, however many others wait for their answers.
    FirstFree {
        /// Calls a second, of all clients.
        rate: f64,
    },
}

/// When clients stop.
#[derive(Clone, Debug)]
pub struct Until {
    /// After a time.
    pub time: Duration,
    /// After so many calls of each client.
    pub calls: u64,
    /// When the flag is set.
    pub stop: Arc<AtomicBool>,
}

impl Until {
    /// Returns the end after a time.
    pub fn after(time: Duration) -> Self {
        Self {
            time,
            calls: u64::MAX,
            stop: Arc::default(),
        }
    }

    /// Returns the end after so many calls of each client, or when the job has no more.
    pub fn calls(calls: u64) -> Self {
        Self {
            calls,
            ..Self::after(Duration::MAX)
        }
    }
}

/// The time of a client's next call since the beginning; `None` after the last one.
pub(super) type Due = Box<dyn FnMut() -> Option<Duration> + Send>;

impl Schedule {
    /// Returns the times of each client's calls.
    pub(super) fn dues(self, clients: usize, time: Duration) -> Vec<Due> {
        let taken = Arc::new(AtomicU64::new(0));
        let all = as_f64(clients as u64);
        let of = |client: usize| -> Due {
            match self {
                Self::Closed => Box::new(|| Some(Duration::ZERO)),
                Self::Poisson { rate, seed } | Self::Arrivals { rate, seed } => {
                    let mut rng = StdRng::seed_from_u64(seed ^ (client as u64) << 32);
                    let mut due = Duration::ZERO;
                    Box::new(move || {
                        // 1 - random is never 0.
                        let wait = -(all / rate) * (1.0 - rng.random::<f64>()).ln();
                        due += Duration::from_secs_f64(wait);
                        (due < time).then_some(due)
                    })
                }
                Self::Even { rate } => {
                    let mut number = client as u64;
                    Box::new(move || {
                        let due = Duration::from_secs_f64(as_f64(number) / rate);
                        number += clients as u64;
                        (due < time).then_some(due)
                    })
                }
                Self::FirstFree { rate } => {
                    let taken = Arc::clone(&taken);
                    Box::new(move || {
                        let number = taken.fetch_add(1, Ordering::Relaxed);
                        let due = Duration::from_secs_f64(as_f64(number) / rate);
                        (due < time).then_some(due)
                    })
                }
            }
        };
        (0..clients).map(of).collect()
    }
}
