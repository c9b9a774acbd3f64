//! Retries calls to the database that do not go through a lane.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windrow_core::{Backoff, Fault, Retry, RetryPolicy};

use super::LoadError;

/// The first delay between attempts, and the longest.
const FIRST_DELAY: Duration = Duration::from_millis(10);
const LONGEST_DELAY: Duration = Duration::from_secs(1);

/// Retries until an attempt succeeds, the time is over, or the load is to end.
#[derive(Debug)]
pub(super) struct Retries<'a> {
    policy: RetryPolicy,
    away_wait: Duration,
    halt: &'a CancellationToken,
    away_since: Option<Instant>,
    conflicts: u32,
    backoff: Backoff,
}

impl<'a> Retries<'a> {
    pub(super) fn new(away_wait: Duration, halt: &'a CancellationToken) -> Self {
        Self {
            policy: RetryPolicy::load(away_wait),
            away_wait,
            halt,
            away_since: None,
            conflicts: 0,
            backoff: Backoff::new(FIRST_DELAY, LONGEST_DELAY),
        }
    }

    /// Calls the database, again while a retry may help. `place` names the call's rows.
    pub(super) async fn call<T, F: Future<Output = Result<T, Fault>>>(
        &mut self,
        place: impl Fn() -> String,
        ask: impl Fn() -> F,
    ) -> Result<T, LoadError> {
        loop {
            match ask().await {
                Ok(answer) => {
                    self.away_since = None;
                    self.backoff.reset();
                    return Ok(answer);
                }
                Err(fault) if fault.may_retry() => self.wait(fault, &place).await?,
                Err(fault) => {
                    let place = place();
                    return Err(LoadError::Database { place, fault });
                }
            }
        }
    }

    /// Waits before another attempt. Conflicts are counted. For everything else, locks included,
    /// the limit is the time to wait for an unreachable database, because how long it lasts does
    /// not depend on the number of attempts.
    pub(super) async fn wait(
        &mut self,
        fault: Fault,
        place: impl FnOnce() -> String,
    ) -> Result<(), LoadError> {
        let is_conflict = fault.retry() == Retry::Soon;
        let (retry, waited) = match is_conflict {
            true => {
                self.conflicts += 1;
                (Retry::Soon, Duration::ZERO)
            }
            false => {
                let since = self.away_since.get_or_insert_with(Instant::now);
                (Retry::WhenBack, since.elapsed())
            }
        };
        let away_wait = self.away_wait;
        if !self.policy.allows(retry, self.conflicts, waited, away_wait) {
            let place = place();
            return Err(match is_conflict {
                true => LoadError::Database { place, fault },
                false => LoadError::Away {
                    place,
                    waited: away_wait,
                    fault,
                },
            });
        }
        tokio::select! {
            () = tokio::time::sleep(self.backoff.delay()) => Ok(()),
            () = self.halt.cancelled() => Err(LoadError::Interrupted),
        }
    }
}
