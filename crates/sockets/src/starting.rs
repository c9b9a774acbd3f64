//! Slots for connections that are being admitted.
//!
//! While there are slots no connection waits. If there is none, a connection that has been starting
//! for longer than [`SLOT_TIMEOUT`] gives up its slot. So a flood of silent connections blocks no
//! client, and many clients that come at once only wait for their turn.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

/// The most connections being admitted.
const MAX_STARTING: usize = 1_000;

/// The time for which a connection may be starting while others wait for its slot.
const SLOT_TIMEOUT: Duration = Duration::from_secs(5);

/// The connections being admitted.
#[derive(Debug)]
pub struct Starting {
    slots: Arc<Semaphore>,
    since: Mutex<Since>,
}

#[derive(Debug, Default)]
struct Since {
    next: u64,
    /// The connections in the order of their arrival.
    all: BTreeMap<u64, (Instant, CancellationToken)>,
}

/// The slot of a connection that is being admitted.
#[derive(Debug)]
pub struct StartSlot {
    starting: Arc<Starting>,
    number: u64,
    /// Cancelled when the slot is needed by others.
    pub given_up: CancellationToken,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Default for Starting {
    fn default() -> Self {
        Self::of(MAX_STARTING)
    }
}

impl Starting {
    fn of(most: usize) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(most)),
            since: Mutex::default(),
        }
    }

    /// Waits for a slot. Cancel safe.
    pub async fn slot(self: &Arc<Self>) -> StartSlot {
        let acquiring = Arc::clone(&self.slots).acquire_owned();
        tokio::pin!(acquiring);
        loop {
            let oldest = self.oldest();
            tokio::select! {
                biased;
                // The semaphore is never closed.
                permit = &mut acquiring => return self.start(permit.ok()),
                () = sleep_until(oldest.0 + SLOT_TIMEOUT) => oldest.1.cancel(),
            }
        }
    }

    fn start(self: &Arc<Self>, permit: Option<OwnedSemaphorePermit>) -> StartSlot {
        let given_up = CancellationToken::new();
        let mut since = self.since.lock();
        let number = since.next;
        since.next += 1;
        since.all.insert(number, (Instant::now(), given_up.clone()));
        StartSlot {
            starting: Arc::clone(self),
            number,
            given_up,
            _permit: permit,
        }
    }

    /// Returns the connection that has been starting for the longest time and was not asked to give
    /// up, or one that starts right now.
    fn oldest(&self) -> (Instant, CancellationToken) {
        let since = self.since.lock();
        let mut waiting = since
            .all
            .values()
            .filter(|(_, token)| !token.is_cancelled());
        waiting
            .next()
            .cloned()
            .unwrap_or_else(|| (Instant::now(), CancellationToken::new()))
    }
}

impl Drop for StartSlot {
    fn drop(&mut self) {
        self.starting.since.lock().all.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_is_slow_gives_up_its_slot_when_it_is_needed() {
        let starting = Arc::new(Starting::of(2));
        let (slow, quick) = (starting.slot().await, starting.slot().await);
        tokio::time::advance(2 * SLOT_TIMEOUT).await;
        // Nobody needs it.
        assert!(!slow.given_up.is_cancelled());
        let third = tokio::spawn({
            let starting = Arc::clone(&starting);
            async move { starting.slot().await }
        });
        slow.given_up.cancelled().await;
        drop(slow);
        let third = third.await.unwrap();
        assert!(!third.given_up.is_cancelled());
        assert_eq!(starting.since.lock().all.len(), 2);
        drop((quick, third));
        assert!(starting.since.lock().all.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_crowd_waits_its_turn() {
        let starting = Arc::new(Starting::of(1));
        for _ in 0..100 {
            let slot = starting.slot().await;
            let next = starting.slot();
            tokio::pin!(next);
            tokio::select! {
                biased;
                _ = &mut next => panic!("one too many"),
                () = tokio::time::sleep(SLOT_TIMEOUT / 2) => {}
            }
            assert!(!slot.given_up.is_cancelled());
            drop(slot);
            drop(next.await);
        }
    }
}
