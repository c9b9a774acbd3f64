//! How long a load waits for a database that is away and for rows that other sessions hold.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windrow_core::{Backoff, Fault, Retry};

use super::LoadError;

/// How often a portion that others were in the way of is tried.
const MAX_ATTEMPTS: u32 = 12;

/// The first delay between attempts, and the longest.
const FIRST_DELAY: Duration = Duration::from_millis(10);
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// Bounded waiting: until an attempt succeeds, until the time is over, or until the load is to end.
#[derive(Debug)]
pub(super) struct Patience<'a> {
    away_wait: Duration,
    halt: &'a CancellationToken,
    away_since: Option<Instant>,
    conflicts: u32,
    backoff: Backoff,
}

impl<'a> Patience<'a> {
    pub(super) fn new(away_wait: Duration, halt: &'a CancellationToken) -> Self {
        Self {
            away_wait,
            halt,
            away_since: None,
            conflicts: 0,
            backoff: Backoff::new(FIRST_DELAY, LONGEST_DELAY),
        }
    }

    /// Notes that the database answers: later waits begin again.
    pub(super) fn reached(&mut self) {
        self.away_since = None;
        self.backoff.reset();
    }

    /// Waits before another attempt. Conflicts are counted. Everything else is waited for as a
    /// database that is away, locks too: how long these take does not depend on the number of
    /// attempts.
    pub(super) async fn wait(
        &mut self,
        fault: Fault,
        place: impl FnOnce() -> String,
    ) -> Result<(), LoadError> {
        if fault.retry() == Retry::Soon {
            self.conflicts += 1;
            if self.conflicts >= MAX_ATTEMPTS {
                let place = place();
                return Err(LoadError::Database { place, fault });
            }
        } else {
            let since = *self.away_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= self.away_wait {
                return Err(LoadError::Away {
                    place: place(),
                    waited: self.away_wait,
                    fault,
                });
            }
        }
        tokio::select! {
            () = tokio::time::sleep(self.backoff.delay()) => Ok(()),
            () = self.halt.cancelled() => Err(LoadError::Interrupted),
        }
    }
}
