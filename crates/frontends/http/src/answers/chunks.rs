//! A body that is written while it is sent.

use std::fmt;

use bytes::Bytes;
use windrow_core::AnswerPermit;

/// Writes a body while it is sent.
pub(crate) trait Chunks: fmt::Debug + Send {
    /// Returns the next bytes; `None` at the end.
    fn next_chunk(&mut self) -> Option<Bytes>;

    /// True if the rest of the body takes memory from the budget for answers.
    fn takes_room(&self) -> bool {
        false
    }

    /// Returns the length of the whole body, if it is known in advance.
    fn length(&self) -> Option<u64> {
        None
    }
}

/// The bytes of a piece. Shorter bodies are not counted, because they fit into a connection's
/// buffers.
pub(super) const PIECE_BYTES: usize = 16 << 10;

/// The rest of a long body, sent in pieces. A whole body would be copied into the connection's
/// buffer at once, and it would be unknown when it has been sent. The connection asks for the next
/// piece when it has space.
#[derive(Debug)]
pub(super) struct Pieces {
    left: Bytes,
    /// Held until the last piece is taken.
    _room: AnswerPermit,
}

impl Pieces {
    pub(super) fn new(body: Bytes, room: AnswerPermit) -> Self {
        Self {
            left: body,
            _room: room,
        }
    }
}

impl Chunks for Pieces {
    fn next_chunk(&mut self) -> Option<Bytes> {
        let piece = self.left.split_to(self.left.len().min(PIECE_BYTES));
        (!piece.is_empty()).then_some(piece)
    }

    fn takes_room(&self) -> bool {
        true
    }

    fn length(&self) -> Option<u64> {
        Some(self.left.len() as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_it_comes_in_order() {
        let body: Vec<u8> = (0..=u8::MAX).cycle().take(3 * PIECE_BYTES + 5).collect();
        let mut pieces = Pieces::new(body.clone().into(), AnswerPermit::default());
        assert_eq!(pieces.length(), Some(body.len() as u64));
        let mut sent = Vec::new();
        while let Some(piece) = pieces.next_chunk() {
            assert!(piece.len() <= PIECE_BYTES);
            sent.extend_from_slice(&piece);
        }
        assert_eq!((sent, pieces.length()), (body, Some(0)));
    }
}
