//! Memory for long messages, taken while they arrive.

#[cfg(test)]
mod model;

use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};
use windrow_core::{AnswerRoom, Budget, Fault, FaultClass, Permit};

/// The bytes of a message that are read before memory is taken for it. Shorter messages are counted
/// once they wait in a lane.
pub(crate) const FREE_BYTES: usize = 16 * 1024;

/// The time for which a task waits while no task gets any memory, and for which a message may make
/// no progress while others wait for its memory.
const STALL_TIMEOUT: Duration = Duration::from_secs(10);

/// The bytes that must arrive in that time.
const STALL_BYTES: usize = 64 * 1024;

/// The time for which a client may not read its answers while others wait for their memory, and the
/// interval of the checks. Short, because the others wait as long: a client that reads at all reads
/// something in that time.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(2);
const UNREAD_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// The number of copies of a relayed message in memory: in the inbox, and in the buffer to the
/// server.
const RELAYED: usize = 2;

/// The number of copies of a joined message in memory: the text, its values, and both again in the
/// batch that is sent.
const JOINED: usize = 4;

/// The part of the memory budget that long messages may hold while they arrive. It is half of the
/// budget, so that slow clients with long messages never block clients with short ones. A task that
/// holds a part of it may wait for the budget itself, but no task that holds budget waits for this
/// part, so no tasks wait in a circle.
#[derive(Debug)]
pub(crate) struct LongMessages {
    half: usize,
    share: Budget,
    /// The number of times that a waiting task got memory.
    granted: AtomicU64,
}

impl LongMessages {
    pub(crate) fn new(budget: &Budget) -> Self {
        let half = budget.total() / 2;
        Self {
            half,
            // Three quarters of a budget can be waited for.
            share: Budget::new(half + half / 2 + 2),
            granted: AtomicU64::new(0),
        }
    }

    /// Takes memory for a message that ends at `until` in the inbox, of which `here` bytes have
    /// arrived: for all of its copies, not only for its bytes. Cancel safe.
    ///
    /// # Errors
    /// [`FaultClass::TooLarge`] for more than a quarter of the budget; [`FaultClass::Overloaded`]
    /// if no task gets any memory for 10 seconds.
    pub(crate) async fn take(
        &self,
        budget: &Budget,
        until: usize,
        here: usize,
    ) -> Result<Charge, Fault> {
        let most = self.half.max(RELAYED * FREE_BYTES);
        if until > most / RELAYED + FREE_BYTES {
            return Err(Fault::too_large(format!(
                "a message of {until} bytes is longer than a quarter of the memory budget (limits.memory, {} bytes)",
                budget.total()
            )));
        }
        let wanted = self.wanted(until);
        let (share, permit) = self.in_turn(budget, wanted).await?;
        self.granted.fetch_add(1, Ordering::Relaxed);
        Ok(Charge {
            share,
            permit,
            until,
            seen: here,
            time: Box::pin(sleep(STALL_TIMEOUT)),
        })
    }

    /// Takes more memory for a charged message, for everything up to `until`. Returns false if
    /// there is none; what is held stays. Does not wait, because no task may hold memory while it
    /// waits for more.
    pub(crate) fn grow(
        &self,
        charge: &mut Charge,
        budget: &Budget,
        until: usize,
        here: usize,
    ) -> bool {
        let wanted = self.wanted(until);
        let missing = wanted.saturating_sub(charge.share.bytes());
        let (Ok(share), Ok(permit)) = (self.share.try_take(missing), budget.try_take(missing))
        else {
            return false;
        };
        charge.share.merge(share);
        charge.permit.merge(permit);
        (charge.until, charge.seen) = (until, here);
        true
    }

    /// Gives memory back that a message does not need any more: `kept` bytes of it are left, with
    /// all that they become.
    pub(crate) fn shrink(&self, charge: &mut Charge, kept: usize) {
        let wanted = self.wanted(kept);
        charge.share.shrink_to(wanted);
        charge.permit.shrink_to(wanted);
    }

    /// Returns the memory of a message that ends at `until`, with all that it becomes.
    fn wanted(&self, until: usize) -> usize {
        until.saturating_mul(JOINED).min(self.half)
    }

    /// Waits in order, as long as other tasks get memory from time to time.
    async fn in_turn(&self, budget: &Budget, bytes: usize) -> Result<(Permit, Permit), Fault> {
        let mut both = pin!(async {
            let share = self.share.take(bytes).await?;
            Ok((share, budget.take(bytes).await?))
        });
        loop {
            let granted = self.granted.load(Ordering::Relaxed);
            tokio::select! {
                biased;
                both = &mut both => return both,
                () = sleep(STALL_TIMEOUT) => {}
            }
            if self.granted.load(Ordering::Relaxed) == granted {
                return Err(full(budget));
            }
        }
    }
}

fn full(budget: &Budget) -> Fault {
    let message = format!(
        "the memory budget (limits.memory) of {} bytes has been full for 10 seconds; try again later",
        budget.total()
    );
    Fault::new(FaultClass::Overloaded, "53200", message)
}

/// Memory held for a long message while it arrives.
#[derive(Debug)]
pub(crate) struct Charge {
    share: Permit,
    permit: Permit,
    /// The end of the message in the inbox.
    until: usize,
    /// The bytes in the inbox when the current period began.
    seen: usize,
    time: Pin<Box<Sleep>>,
}

impl Charge {
    pub(crate) fn until(&self) -> usize {
        self.until
    }

    /// Notes that bytes have left the inbox. Returns true if the whole message has.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        self.seen = self.seen.saturating_sub(bytes);
        self.until = self.until.saturating_sub(bytes);
        self.until == 0
    }

    /// Returns memory for the statements made from the message, and for what is sent of it, out of
    /// what is held or free. Does not wait, because no task may hold memory while it waits for
    /// more.
    pub(crate) fn pay(&mut self, budget: &Budget, bytes: usize) -> Option<Permit> {
        let wanted = bytes * (JOINED / RELAYED);
        let mut paid = self.permit.split(wanted);
        match budget.try_take(wanted - paid.bytes()) {
            Ok(more) => paid.merge(more),
            Err(_) => {
                self.permit.merge(paid);
                return None;
            }
        }
        Some(paid)
    }

    /// Returns ready if `here`, the bytes in the inbox, has not grown for a while, and another task
    /// waits for memory.
    pub(crate) fn poll_stalled(
        &mut self,
        budget: &Budget,
        here: usize,
        cx: &mut Context<'_>,
    ) -> Poll<()> {
        while self.time.as_mut().poll(cx).is_ready() {
            let stands = here < self.until && here < self.seen + STALL_BYTES;
            if stands && budget.is_waited_for() {
                return Poll::Ready(());
            }
            self.seen = here;
            self.time.as_mut().reset(Instant::now() + STALL_TIMEOUT);
        }
        Poll::Pending
    }
}

/// Buffers of a client that make no progress: the beginning of a message, or unread answers.
#[derive(Debug)]
pub(crate) struct StillBuffers {
    /// The bytes that had arrived and left at the last check.
    seen: u64,
    time: Pin<Box<Sleep>>,
}

impl Default for StillBuffers {
    fn default() -> Self {
        Self {
            seen: 0,
            time: Box::pin(sleep(STALL_TIMEOUT)),
        }
    }
}

impl StillBuffers {
    /// Returns ready if nothing has moved for a while, and another task waits for memory.
    pub(crate) fn poll(&mut self, budget: &Budget, now: u64, cx: &mut Context<'_>) -> Poll<()> {
        while self.time.as_mut().poll(cx).is_ready() {
            if self.seen == now && budget.is_waited_for() {
                return Poll::Ready(());
            }
            self.seen = now;
            self.time.as_mut().reset(Instant::now() + STALL_TIMEOUT);
        }
        Poll::Pending
    }
}

/// Answers that a client does not read.
#[derive(Debug)]
pub(crate) struct UnreadAnswers {
    /// The bytes that had left at the last check, and its time.
    seen: u64,
    since: Instant,
    time: Pin<Box<Sleep>>,
}

impl Default for UnreadAnswers {
    fn default() -> Self {
        Self {
            seen: 0,
            since: Instant::now(),
            time: Box::pin(sleep(UNREAD_CHECK_INTERVAL)),
        }
    }
}

impl UnreadAnswers {
    /// Returns ready if the client has read nothing for a while, and others need the memory of its
    /// answers.
    pub(crate) fn poll(&mut self, room: &AnswerRoom, sent: u64, cx: &mut Context<'_>) -> Poll<()> {
        while self.time.as_mut().poll(cx).is_ready() {
            let now = Instant::now();
            if self.seen != sent {
                (self.seen, self.since) = (sent, now);
            } else if now >= self.since + UNREAD_TIMEOUT && room.is_wanted() {
                return Poll::Ready(());
            }
            self.time.as_mut().reset(now + UNREAD_CHECK_INTERVAL);
        }
        Poll::Pending
    }
}

/// The way in which a client blocks others.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stalled {
    /// The client does not read its answers.
    Unread,
    /// A message that it has begun does not arrive, or nothing moves.
    Still,
}

/// Returns the fault of a client that blocks others.
pub(crate) fn stalled() -> Fault {
    let message = "a message that was begun, or answers that are not taken, made no progress for 10 seconds while others waited for the memory that is held for them";
    Fault::new(FaultClass::Overloaded, "53200", message)
}
