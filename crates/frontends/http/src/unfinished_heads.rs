//! Connections that have sent a part of a request's head, or of a TLS handshake, and not the rest.
//!
//! Their buffers are not charged to the budget, because there is no request yet that could be
//! refused. So their number is limited: one more closes the oldest. An honest client is not among
//! them for long, because its head nearly always arrives in one piece.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use parking_lot::Mutex;

/// The memory of an unfinished head and its connection.
const HEAD_BYTES: usize = 32 << 10;

/// The part of the memory budget that limits the number of unfinished heads: an eighth.
const BUDGET_PART: usize = 8;

/// The number that is allowed with any budget.
const MIN_HEADS: usize = 256;

/// All unfinished heads of a server. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct UnfinishedHeads(Arc<Heads>);

#[derive(Debug)]
struct Heads {
    most: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    /// The connections by number, the oldest first.
    all: BTreeMap<u64, Arc<Closing>>,
}

/// Signal that closes the connection.
#[derive(Debug, Default)]
struct Closing {
    is_closed: AtomicBool,
    waker: AtomicWaker,
}

/// A connection that counts as unfinished until this is dropped.
#[derive(Debug)]
pub(crate) struct UnfinishedHead {
    heads: UnfinishedHeads,
    number: u64,
    closing: Arc<Closing>,
}

impl UnfinishedHeads {
    /// Returns a limit that fits the size of the memory budget, in bytes.
    pub(crate) fn new(memory: usize) -> Self {
        Self::of((memory / BUDGET_PART / HEAD_BYTES).max(MIN_HEADS))
    }

    fn of(most: usize) -> Self {
        let open = Mutex::default();
        Self(Arc::new(Heads { most, open }))
    }

    /// Adds a connection, and closes the oldest if there are too many.
    pub(crate) fn enter(&self) -> UnfinishedHead {
        let closing = Arc::new(Closing::default());
        let mut open = self.0.open.lock();
        let number = open.next;
        open.next += 1;
        open.all.insert(number, Arc::clone(&closing));
        let oldest = match open.all.len() > self.0.most {
            true => open.all.pop_first(),
            false => None,
        };
        drop(open);
        if let Some((_, oldest)) = oldest {
            oldest.is_closed.store(true, SeqCst);
            oldest.waker.wake();
        }
        UnfinishedHead {
            heads: self.clone(),
            number,
            closing,
        }
    }
}

impl UnfinishedHead {
    /// Returns ready once the connection must be closed for newer ones.
    pub(crate) fn poll_closed(&self, cx: &Context<'_>) -> Poll<()> {
        self.closing.waker.register(cx.waker());
        match self.closing.is_closed.load(SeqCst) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }

    /// Waits until the connection must be closed for newer ones. Cancel safe.
    pub(crate) async fn closed(&self) {
        poll_fn(|cx| self.poll_closed(cx)).await;
    }
}

impl Drop for UnfinishedHead {
    fn drop(&mut self) {
        self.heads.0.open.lock().all.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn one_more_closes_the_oldest() {
        let heads = UnfinishedHeads::of(2);
        let is_closed = |head: &UnfinishedHead| head.closed().now_or_never().is_some();
        let (first, second) = (heads.enter(), heads.enter());
        assert!(!is_closed(&first) && !is_closed(&second));
        let third = heads.enter();
        assert!(is_closed(&first) && !is_closed(&second));
        drop(second);
        let fourth = heads.enter();
        assert!(!is_closed(&third) && !is_closed(&fourth));
        drop((first, third, fourth));
        assert!(heads.0.open.lock().all.is_empty());
    }

    #[test]
    fn the_bound_grows_with_the_budget() {
        assert_eq!(UnfinishedHeads::new(16 << 20).0.most, MIN_HEADS);
        assert_eq!(UnfinishedHeads::new(256 << 20).0.most, 1024);
    }
}
