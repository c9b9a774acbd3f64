//! What a body consists of that is written while it is sent.

use std::fmt;

use bytes::Bytes;

/// What writes a body while it is sent.
pub(crate) trait Chunks: fmt::Debug + Send {
    /// The next bytes, `None` at the end.
    fn next_chunk(&mut self) -> Option<Bytes>;

    /// True where what is left of it takes room for answers.
    fn takes_room(&self) -> bool {
        false
    }

    /// How long all of it is, where that is known before it is written.
    fn length(&self) -> Option<u64> {
        None
    }
}
