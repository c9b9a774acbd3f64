//! The receive buffer: takes bytes from the socket and returns complete messages. A message is a
//! byte that names it, a length, and a body.

use std::fmt;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes of one read. Answers to a batch are small; rows of the catalog arrive in larger pieces.
const READ_BYTES: usize = 32 * 1024;

/// Bytes that an empty buffer keeps. Memory of larger answers is returned.
const KEPT_BYTES: usize = 256 << 10;

/// Received bytes that have not been taken yet.
#[derive(Debug)]
pub(super) struct Inbox {
    bytes: BytesMut,
    taken: usize,
    longest: usize,
}

impl Inbox {
    /// Returns an empty buffer that refuses messages longer than `longest` bytes.
    pub(super) fn new(longest: usize) -> Self {
        Self {
            bytes: BytesMut::with_capacity(READ_BYTES),
            taken: 0,
            longest,
        }
    }

    /// Changes the largest allowed length of a message, in bytes.
    pub(super) fn set_longest(&mut self, longest: usize) {
        self.longest = longest;
    }

    /// Returns the memory of the buffer, in bytes.
    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Takes the next complete message, if there is one: its tag and body.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<(u8, &[u8])>, BadLength> {
        let behind = self.bytes.get(self.taken..).unwrap_or_default();
        match front(behind, self.longest)? {
            Front::Whole { tag, body, total } => {
                self.taken += total;
                Ok(Some((tag, body)))
            }
            Front::Part(_) => Ok(None),
        }
    }

    /// Returns all bytes that have not been taken.
    pub(super) fn rest(&self) -> &[u8] {
        self.bytes.get(self.taken..).unwrap_or_default()
    }

    /// Removes bytes from the front.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.taken = (self.taken + bytes).min(self.bytes.len());
    }

    /// Reads once. Returns 0 at the end of the stream. Cancel safe.
    pub(super) fn poll_fill(
        &mut self,
        from: &mut (impl AsyncRead + Unpin),
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.make_room();
        pin!(from.read_buf(&mut self.bytes)).poll(cx)
    }

    /// Grows the buffer to at most twice the received bytes, so that an announced length costs no
    /// memory.
    fn make_room(&mut self) {
        if self.taken < self.bytes.len() {
            self.bytes.advance(self.taken);
        } else {
            self.bytes.clear();
            if self.bytes.try_reclaim(KEPT_BYTES + 1) {
                self.bytes = BytesMut::new();
            }
        }
        self.taken = 0;
        if self.bytes.capacity() - self.bytes.len() < READ_BYTES / 2 {
            self.bytes.reserve(self.bytes.len().max(READ_BYTES));
        }
    }
}

/// Bytes of the longest message of a server. PostgreSQL sends none longer (`MaxAllocSize`,
/// 1 GiB - 1).
pub(super) const MAX_MESSAGE_BYTES: usize = 1 << 30;

/// The content of the front of the receive buffer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Front<'a> {
    /// A whole message and its length in bytes.
    Whole {
        tag: u8,
        body: &'a [u8],
        total: usize,
    },
    /// A part of a message, with the length of the message as far as it is known.
    Part(usize),
}

/// A length that no message can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadLength {
    pub(super) tag: u8,
    pub(super) length: i32,
}

impl fmt::Display for BadLength {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the server announced a message `{}` of {} bytes, which PostgreSQL's protocol does not allow here",
            self.tag.escape_ascii(),
            self.length
        )
    }
}

const HEADER: usize = 5;

/// Finds the message at the front of `bytes`. `longest` limits a message, in bytes.
#[inline]
pub(super) fn front(bytes: &[u8], longest: usize) -> Result<Front<'_>, BadLength> {
    let Some((&[tag, a, b, c, d], behind)) = bytes.split_first_chunk::<HEADER>() else {
        return Ok(Front::Part(HEADER));
    };
    let length = i32::from_be_bytes([a, b, c, d]);
    // The length counts itself but not the tag.
    let body_len = usize::try_from(length)
        .ok()
        .and_then(|len| len.checked_sub(4))
        .filter(|len| *len <= longest)
        .ok_or(BadLength { tag, length })?;
    let total = HEADER + body_len;
    Ok(match behind.get(..body_len) {
        Some(body) => Front::Whole { tag, body, total },
        None => Front::Part(total),
    })
}
