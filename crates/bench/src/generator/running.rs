//! A load on a thread of its own.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use anyhow::{Result, anyhow};

use super::clients::Clients;
use super::job::Job;
use super::report::{Live, Report};
use super::schedule::{Schedule, Until};

/// A load under way.
#[derive(Debug)]
pub struct Running {
    /// The counters of the load.
    pub live: Arc<Live>,
    until: Until,
    thread: JoinHandle<Result<Report>>,
}

impl Running {
    /// Starts a load of prepared clients.
    pub fn start(
        mut clients: Clients,
        schedule: Schedule,
        until: Until,
        job: Arc<dyn Job>,
    ) -> Self {
        let live = Arc::<Live>::default();
        let (counts, end) = (Arc::clone(&live), until.clone());
        Self {
            live,
            until,
            thread: thread::spawn(move || clients.run(schedule, &end, &job, &counts)),
        }
    }

    /// Stops the clients after their calls under way.
    ///
    /// # Errors
    /// As [`Running::wait`].
    pub fn stop(self) -> Result<Report> {
        self.until.stop.store(true, Ordering::Relaxed);
        self.wait()
    }

    /// Waits for the end of the load.
    ///
    /// # Errors
    /// As [`Clients::run`].
    pub fn wait(self) -> Result<Report> {
        self.thread.join().map_err(|_| anyhow!("a load panicked"))?
    }
}
