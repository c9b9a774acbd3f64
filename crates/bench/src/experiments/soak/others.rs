//! The misbehaving clients, on a thread of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::task::LocalSet;
use tokio::time::sleep;

use super::manners::{self, Manner};
use crate::figures::Metrics;
use crate::generator::Target;
use crate::number::as_f64;
use crate::runtime::runtime;

/// The interval of checks if the clients are to end.
const LOOK: Duration = Duration::from_millis(50);

/// Clients that misbehave until this value is dropped.
pub(in crate::experiments) struct Others {
    stop: Arc<AtomicBool>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Counts {
    begun: AtomicU64,
    broken: AtomicU64,
}

impl Others {
    pub(in crate::experiments) fn start(
        targets: &[Target; 2],
        count: usize,
        pace: Duration,
        manners: &[Manner],
    ) -> Self {
        let (stop, counts) = (Arc::new(AtomicBool::new(false)), Arc::<Counts>::default());
        let manners = manners.to_vec();
        let [sql, http] = targets.clone();
        let (stopped, counting) = (Arc::clone(&stop), Arc::clone(&counts));
        let thread = std::thread::spawn(move || {
            let Ok(runtime) = runtime() else { return };
            let tasks = LocalSet::new();
            for (number, manner) in numbered(count, &manners) {
                let counts = Arc::clone(&counting);
                let target = if number % 2 == 0 { &sql } else { &http };
                let client = misbehave(target.clone(), (number, manner), pace, counts);
                tasks.spawn_local(client);
            }
            tasks.block_on(&runtime, async {
                while !stopped.load(Ordering::Relaxed) {
                    sleep(LOOK).await;
                }
            });
        });
        Self {
            stop,
            counts,
            thread: Some(thread),
        }
    }

    /// Returns how often a client began to misbehave, and how often the server or an error ended
    /// it.
    pub(in crate::experiments) fn metrics(&self) -> Metrics {
        let of = |count: &AtomicU64| as_f64(count.load(Ordering::Relaxed));
        Metrics::new()
            .with("misdeeds", of(&self.counts.begun))
            .with("broken off", of(&self.counts.broken))
    }
}

impl Drop for Others {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

/// Half of the clients over each protocol, all manners over both.
fn numbered(count: usize, manners: &[Manner]) -> impl Iterator<Item = (usize, Manner)> {
    let twice = manners.iter().flat_map(|manner| [*manner; 2]);
    (0..count).zip(twice.cycle())
}

async fn misbehave(
    target: Target,
    (number, manner): (usize, Manner),
    pace: Duration,
    counts: Arc<Counts>,
) {
    let mut rng = StdRng::seed_from_u64(number as u64);
    loop {
        // Not all at once.
        sleep(pace.mul_f64(rng.random_range(0.0..2.0))).await;
        counts.begun.fetch_add(1, Ordering::Relaxed);
        let done = match &target {
            Target::Http(_) => manners::over_http(manner, &target, pace, &mut rng).await,
            _ => manners::over_pg(manner, &target, pace, &mut rng).await,
        };
        let broken = u64::from(done.is_err());
        counts.broken.fetch_add(broken, Ordering::Relaxed);
    }
}
