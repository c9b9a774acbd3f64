//! Memory for long messages, taken when they begin to come.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep, timeout};
use windrow_core::{Budget, Fault, FaultClass, Permit};

/// What of a message is read before memory is taken for it, in bytes; shorter ones are counted once they wait in a lane.
pub(crate) const FREE: usize = 16 * 1024;

/// How long memory is waited for, and how long a message may stand still for which others wait.
const PATIENCE: Duration = Duration::from_secs(10);

/// What has to come in that time, in bytes.
const STEP: usize = 64 * 1024;

/// The part of the memory budget that long messages may hold while they come: half of it, so that whoever sends short ones
/// is never kept out by those who send long ones slowly. Whoever has some of it waits for the budget itself, and nobody
/// who holds some of the budget waits for this: so nobody waits in a circle.
#[derive(Debug)]
pub(crate) struct LongMessages {
    half: usize,
    share: Budget,
}

impl LongMessages {
    pub(crate) fn new(budget: &Budget) -> Self {
        let half = budget.total() / 2;
        Self {
            half,
            // Of a budget three quarters can be waited for.
            share: Budget::new(half + half / 2),
        }
    }

    /// Memory for a message that ends at `until` in the inbox, of which `here` bytes are there. Cancel safe.
    ///
    /// # Errors
    /// [`FaultClass::TooLarge`] for more than half of the budget, [`FaultClass::Overloaded`] where nothing becomes free for 10 seconds.
    pub(super) async fn take(
        &self,
        budget: &Budget,
        until: usize,
        here: usize,
    ) -> Result<Charge, Fault> {
        if until > self.half {
            return Err(Fault::too_large(format!(
                "a message of {until} bytes is longer than half of the memory budget (limits.memory, {} bytes)",
                budget.total()
            )));
        }
        let both = async {
            let share = self.share.take(until).await?;
            Ok((share, budget.take(until).await?))
        };
        let taken = timeout(PATIENCE, both).await;
        let (share, permit) = taken.unwrap_or_else(|_| Err(full(budget)))?;
        Ok(Charge {
            _share: share,
            permit,
            until,
            seen: here,
            time: Box::pin(sleep(PATIENCE)),
        })
    }
}

fn full(budget: &Budget) -> Fault {
    let message = format!(
        "the memory budget (limits.memory) of {} bytes has been full for 10 seconds; try again later",
        budget.total()
    );
    Fault::new(FaultClass::Overloaded, "53200", message)
}

/// Memory that is held for a long message while it comes.
#[derive(Debug)]
pub(crate) struct Charge {
    _share: Permit,
    permit: Permit,
    /// Where in the inbox the message ends.
    until: usize,
    /// How much of the inbox was there when the time began.
    seen: usize,
    time: Pin<Box<Sleep>>,
}

impl Charge {
    pub(super) fn until(&self) -> usize {
        self.until
    }

    /// Bytes have left the inbox. True where the message has.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        self.seen = self.seen.saturating_sub(bytes);
        self.until = self.until.saturating_sub(bytes);
        self.until == 0
    }

    /// Hands over memory, if so much is held.
    pub(super) fn pay(&mut self, bytes: usize) -> Option<Permit> {
        (self.permit.bytes() >= bytes).then(|| self.permit.split(bytes))
    }

    /// Ready where `here`, what is in the inbox, has not grown for a while, and somebody waits for memory.
    pub(super) fn poll_stalled(
        &mut self,
        budget: &Budget,
        here: usize,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        while self.time.as_mut().poll(cx).is_ready() {
            let stands = here < self.until && here < self.seen + STEP;
            if stands && budget.is_waited_for() {
                return Poll::Ready(());
            }
            self.seen = here;
            self.time.as_mut().reset(Instant::now() + PATIENCE);
        }
        Poll::Pending
    }
}

/// What is told to a client whose message does not come.
pub(crate) fn stalled() -> Fault {
    let message = "a long message made no progress for 10 seconds while others waited for the memory that was held for it";
    Fault::new(FaultClass::Overloaded, "53200", message)
}
