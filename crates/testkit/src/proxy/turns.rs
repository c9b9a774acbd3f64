//! Round trips of one connection.

use std::sync::atomic::{AtomicBool, Ordering};

use super::direction::Direction;

/// Tells round trips apart: a client's burst followed by the server's.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// The client has sent something that the server has not begun to answer.
    asked: AtomicBool,
}

impl Turns {
    /// Bytes have been read that go this way; true where this is the beginning of an answer.
    pub(crate) fn answer_begins(&self, direction: Direction) -> bool {
        match direction {
            Direction::ToServer => {
                self.asked.store(true, Ordering::SeqCst);
                false
            }
            Direction::ToClient => self.asked.swap(false, Ordering::SeqCst),
        }
    }
}
