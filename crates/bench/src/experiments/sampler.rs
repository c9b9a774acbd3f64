//! Samples over time, taken beside the load.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};

/// A thread that takes samples until it is ended.
#[derive(Debug)]
pub(super) struct Sampler<T> {
    start: Instant,
    stop: Sender<()>,
    thread: JoinHandle<Result<Vec<T>>>,
}

impl<T: Send + 'static> Sampler<T> {
    /// Starts to look at an interval. `look` is given the seconds since the start.
    pub(super) fn start(
        interval: Duration,
        mut look: impl FnMut(f64) -> Result<T> + Send + 'static,
    ) -> Self {
        let start = Instant::now();
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let mut samples = Vec::new();
            loop {
                let is_last = stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout);
                samples.push(look(start.elapsed().as_secs_f64())?);
                if is_last {
                    return Ok(samples);
                }
            }
        });
        Self {
            start,
            stop,
            thread,
        }
    }

    /// Returns the seconds since the start.
    pub(super) fn now(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Takes a last sample, and returns all.
    ///
    /// # Errors
    /// A sample could not be taken.
    pub(super) fn end(self) -> Result<Vec<T>> {
        drop(self.stop);
        let samples = self.thread.join();
        samples.map_err(|_| anyhow!("the sampler panicked"))?
    }
}
