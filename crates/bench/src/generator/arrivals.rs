//! The times of calls that any client makes which is free.

use std::rc::Rc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use tokio::sync::{Mutex, mpsc};
use windrow_testkit::procfs;

use super::schedule::Due;

/// The times of calls, handed to the clients of one thread in the order in which these ask.
#[derive(Clone)]
pub(super) struct Arrivals(Option<Rc<Mutex<mpsc::UnboundedReceiver<Instant>>>>);

/// The thread that waits for the times.
pub(super) struct Pacer(JoinHandle<Result<Duration>>);

impl Arrivals {
    /// Returns arrivals without end: each client's next call is due when the client asks.
    pub(super) fn at_once() -> Self {
        Self(None)
    }

    /// Starts a thread that waits for each time: the timers of an event loop have a granularity of
    /// a millisecond.
    pub(super) fn start(begun: Instant, mut due: Due) -> (Self, Pacer) {
        let (sender, receiver) = mpsc::unbounded_channel();
        let pacer = thread::spawn(move || {
            while let Some(due) = due() {
                let due = begun + due;
                if let Some(early) = due.checked_duration_since(Instant::now()) {
                    thread::sleep(early);
                }
                if sender.send(due).is_err() {
                    break;
                }
            }
            procfs::thread_cpu_time()
        });
        (Self(Some(Rc::new(Mutex::new(receiver)))), Pacer(pacer))
    }

    /// Waits for the next call, and returns the time when it was due; `None` after the last one.
    pub(super) async fn next(&self) -> Option<Instant> {
        match &self.0 {
            None => Some(Instant::now()),
            Some(times) => times.lock().await.recv().await,
        }
    }
}

impl Pacer {
    /// Waits for the end of the thread, and returns its CPU time.
    pub(super) fn cpu_time(self) -> Result<Duration> {
        let cpu = self.0.join();
        cpu.map_err(|_| anyhow!("the pacer of a load panicked"))?
    }
}
