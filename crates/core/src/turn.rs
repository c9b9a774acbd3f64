//! Connections that share a thread take turns.

use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Poll};

use tokio::task::yield_now;

/// Bytes that one connection moves before others have their turn: a tenth of a millisecond's work.
///
/// The runtime lets a task go on for some hundred reads and writes, however long these are: one
/// client with a large answer would hold up everybody else of its thread for milliseconds.
const BYTES: usize = 128 << 10;

/// What a connection has moved in its turn.
#[derive(Debug, Default)]
pub struct Turn {
    moved: usize,
}

impl Turn {
    /// Pending once the turn is over; then the task is called again when others have had theirs.
    #[inline]
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.moved < BYTES {
            return Poll::Ready(());
        }
        self.moved = 0;
        // The waker is kept until the runtime has looked what has come over all other connections.
        // A task that wakes itself runs sixty times more before it does so.
        pin!(yield_now()).poll(cx)
    }

    /// So many bytes were read or written.
    #[inline]
    pub fn add(&mut self, bytes: usize) {
        self.moved += bytes;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::poll_fn;

    use super::*;

    /// Moves so many bytes, 8 KiB at a time; tells how far it has come.
    async fn moves(bytes: usize, moved: &Cell<usize>) {
        let mut turn = Turn::default();
        while moved.get() < bytes {
            poll_fn(|cx| turn.poll(cx)).await;
            turn.add(8 << 10);
            moved.set(moved.get() + (8 << 10));
        }
    }

    #[tokio::test]
    async fn a_long_transfer_lets_a_short_one_pass() {
        let (long, short) = (Cell::new(0), Cell::new(0));
        let others = async {
            moves(8 << 10, &short).await;
            long.get()
        };
        let (_, at) = tokio::join!(moves(64 << 20, &long), others);
        assert!(at <= BYTES, "the short one waited for {at} bytes");
    }
}
