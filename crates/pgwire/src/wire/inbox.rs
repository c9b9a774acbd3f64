//! The receive buffer: bytes as they come, messages as they are whole.

use std::io;
use std::pin::pin;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::frame::{self, BadLength, Front};

/// Room for one read. Answers to a batch are small; rows of a catalog read come in larger pieces.
const READ: usize = 32 * 1024;

/// What an empty buffer may keep, so that one large answer does not hold its memory for the
/// connection's life.
const KEEP: usize = 256 << 10;

/// Bytes received and not yet taken out.
#[derive(Debug)]
pub(super) struct Inbox {
    bytes: BytesMut,
    taken: usize,
    longest: usize,
}

impl Inbox {
    /// An empty buffer that refuses messages longer than `longest` bytes.
    pub(super) fn new(longest: usize) -> Self {
        Self {
            bytes: BytesMut::with_capacity(READ),
            taken: 0,
            longest,
        }
    }

    /// Changes the longest message that is allowed, in bytes.
    pub(super) fn set_longest(&mut self, longest: usize) {
        self.longest = longest;
    }

    /// Bytes that the buffer takes in memory.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// The next whole message, if there is one: its tag and body.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<(u8, &[u8])>, BadLength> {
        let behind = self.bytes.get(self.taken..).unwrap_or_default();
        match frame::front(behind, self.longest)? {
            Front::Whole { tag, body, total } => {
                self.taken += total;
                Ok(Some((tag, body)))
            }
            Front::Part(_) => Ok(None),
        }
    }

    /// All that is not taken out yet.
    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.get(self.taken..).unwrap_or_default()
    }

    /// Takes bytes out from the front.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.taken = (self.taken + bytes).min(self.bytes.len());
    }

    /// Reads once. 0 is the end of the stream. Cancel safe.
    pub(super) fn poll_fill(
        &mut self,
        from: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.make_room();
        pin!(from.read_buf(&mut self.bytes)).poll(cx)
    }

    /// The buffer grows with the bytes that are there, at most to their double: an announced length
    /// costs nothing.
    fn make_room(&mut self) {
        if self.taken < self.bytes.len() {
            self.bytes.advance(self.taken);
        } else {
            self.bytes.clear();
            if self.bytes.try_reclaim(KEEP + 1) {
                self.bytes = BytesMut::new();
            }
        }
        self.taken = 0;
        if self.bytes.capacity() - self.bytes.len() < READ / 2 {
            self.bytes.reserve(self.bytes.len().max(READ));
        }
    }
}
