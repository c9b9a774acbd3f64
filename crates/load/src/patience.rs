//! How long a load waits for what comes and goes: a database that is away, rows that others hold.

use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windrow_core::{Fault, FaultClass};

use super::LoadError;

/// Somebody else holds a lock: the rows, or in SQLite the file.
const LOCKED: &str = "55P03";

/// How often a portion that others were in the way of is tried.
const TRIES: u32 = 12;

/// Bounded waiting: until it worked, until it was too long, or until somebody asks for the end.
#[derive(Debug)]
pub(super) struct Patience<'a> {
    away_wait: Duration,
    halt: &'a CancellationToken,
    away_since: Option<Instant>,
    conflicts: u32,
    pauses: u32,
}

impl<'a> Patience<'a> {
    pub(super) fn new(away_wait: Duration, halt: &'a CancellationToken) -> Self {
        Self {
            away_wait,
            halt,
            away_since: None,
            conflicts: 0,
            pauses: 0,
        }
    }

    /// The database answers: what comes later is waited for anew.
    pub(super) fn reached(&mut self) {
        (self.away_since, self.pauses) = (None, 0);
    }

    /// Waits before another try. Conflicts are counted; everything else is taken for a database
    /// that is away, what somebody else holds too: how long that takes is not up to the number
    /// of tries.
    pub(super) async fn wait(
        &mut self,
        fault: Fault,
        place: impl FnOnce() -> String,
    ) -> Result<(), LoadError> {
        if fault.class == FaultClass::Conflict && fault.code != LOCKED {
            self.conflicts += 1;
            if self.conflicts >= TRIES {
                let place = place();
                return Err(LoadError::Database { place, fault });
            }
            self.pauses = self.conflicts;
        } else {
            let since = *self.away_since.get_or_insert_with(Instant::now);
            if since.elapsed() >= self.away_wait {
                return Err(LoadError::Away {
                    place: place(),
                    waited: self.away_wait,
                    fault,
                });
            }
            self.pauses += 1;
        }
        let pause = Duration::from_millis(5 << self.pauses.min(8)).min(Duration::from_secs(1));
        tokio::select! {
            () = tokio::time::sleep(pause) => Ok(()),
            () = self.halt.cancelled() => Err(LoadError::Interrupted),
        }
    }
}

/// True where it helps to try again later.
pub(super) fn is_passing(fault: &Fault) -> bool {
    matches!(
        fault.class,
        FaultClass::Unavailable | FaultClass::Conflict | FaultClass::Overloaded
    )
}
