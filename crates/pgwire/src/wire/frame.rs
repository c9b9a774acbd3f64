//! Finds the boundaries of messages. A message is a byte that names it, a length, and a body.

use std::fmt;

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
