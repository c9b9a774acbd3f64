//! Where one message of a client ends and the next begins.

use thiserror::Error;
use windrow_core::{Fault, FaultClass};

/// A message's type and its length.
pub(crate) const HEADER: usize = 5;

/// The longest message of the kinds that hold a name at most (PostgreSQL's
/// `PQ_SMALL_MESSAGE_LIMIT`), in bytes.
const SHORT: usize = 10_000;

/// What stands at the front of what a client sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// A whole message and the bytes it takes.
    Whole { tag: u8, total: usize },
    /// A part of a message; how many bytes it takes is known once its header is there.
    Part { header: Option<(u8, usize)> },
}

/// Bytes that are no message. The connection cannot go on after them.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum Violation {
    /// PostgreSQL's own words.
    #[error("invalid frontend message type {0}")]
    Tag(u8),
    /// A length that this kind of message cannot have.
    #[error("invalid message length {length} in a message of type `{}`", tag.escape_ascii())]
    Length { tag: u8, length: i32 },
    /// A message that is longer than configured.
    #[error(
        "a message of type `{}` of {length} bytes is longer than max_message allows ({longest} bytes)",
        tag.escape_ascii()
    )]
    TooLong {
        tag: u8,
        length: usize,
        longest: usize,
    },
}

impl Violation {
    /// What its client is told.
    pub(crate) fn fault(self) -> Fault {
        let fault = Fault::new(FaultClass::Invalid, self.code(), self.to_string());
        match self {
            Self::TooLong { .. } => fault.with_hint(Some(
                "Raise max_message, or send large values by COPY, which has no such limit.",
            )),
            _ => fault,
        }
    }

    /// Its SQLSTATE.
    fn code(self) -> &'static str {
        match self {
            Self::Tag(_) | Self::Length { .. } => "08P01",
            Self::TooLong { .. } => "54000",
        }
    }
}

/// Looks at the front of `bytes`. `longest` bounds a message that is not COPY data, in bytes.
#[inline]
pub(crate) fn front(bytes: &[u8], longest: usize) -> Result<Front, Violation> {
    let Some((&[tag, a, b, c, d], behind)) = bytes.split_first_chunk::<HEADER>() else {
        return match bytes.first() {
            Some(&tag) if !is_known(tag) => Err(Violation::Tag(tag)),
            _ => Ok(Front::Part { header: None }),
        };
    };
    if !is_known(tag) {
        return Err(Violation::Tag(tag));
    }
    let length = i32::from_be_bytes([a, b, c, d]);
    let bad = Violation::Length { tag, length };
    // The length counts itself but not the tag.
    let body = usize::try_from(length).ok().and_then(|n| n.checked_sub(4));
    let body = body.ok_or(bad)?;
    if body > SHORT && is_short(tag) {
        return Err(bad);
    }
    // COPY data is passed on piece by piece, whatever its length.
    if body > longest && tag != b'd' {
        return Err(Violation::TooLong {
            tag,
            length: body,
            longest,
        });
    }
    let total = HEADER + body;
    Ok(if behind.len() >= body {
        Front::Whole { tag, total }
    } else {
        Front::Part {
            header: Some((tag, total)),
        }
    })
}

fn is_known(tag: u8) -> bool {
    matches!(
        tag,
        b'B' | b'C' | b'D' | b'E' | b'F' | b'H' | b'P' | b'Q' | b'S' | b'X' | b'c' | b'd' | b'f'
    )
}

fn is_short(tag: u8) -> bool {
    matches!(tag, b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'c' | b'f')
}
