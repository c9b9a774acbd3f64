//! The content of a body that is written while it is sent.

use std::fmt;

use bytes::Bytes;
use windrow_core::AnswerPermit;

/// A writer of a body while it is sent.
pub(crate) trait Chunks: fmt::Debug + Send {
    /// Returns the next bytes, `None` at the end.
    fn next_chunk(&mut self) -> Option<Bytes>;

    /// True if what is left of it takes room for answers.
    fn takes_room(&self) -> bool {
        false
    }

    /// Returns the length of the whole body, if that is known before it is written.
    fn length(&self) -> Option<u64> {
        None
    }
}

/// Bytes of a piece. Shorter bodies are not counted: no more than a connection's buffers.
pub(super) const PIECE_BYTES: usize = 16 << 10;

/// The rest of a long body, sent in pieces. A body that is given away as a whole is copied into the
/// connection's buffer at once, and the moment when it has left is unknown. The next piece is asked
/// for when there is room for it.
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
