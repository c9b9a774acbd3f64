//! A long body that is there, sent in pieces.
//!
//! A body that is given away as a whole is copied into the connection's buffer at once, and nobody
//! knows when it has left. Of one in pieces the next is asked for when there is room for it.

use bytes::Bytes;
use windrow_core::AnswerPermit;

use crate::answers::chunks::Chunks;

/// Bytes of a piece. Shorter bodies are not counted: no more than a connection's buffers.
pub(super) const PIECE: usize = 16 << 10;

/// A body of which so much is left.
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
        let piece = self.left.split_to(self.left.len().min(PIECE));
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
        let body: Vec<u8> = (0..=u8::MAX).cycle().take(3 * PIECE + 5).collect();
        let mut pieces = Pieces::new(body.clone().into(), AnswerPermit::default());
        assert_eq!(pieces.length(), Some(body.len() as u64));
        let mut told = Vec::new();
        while let Some(piece) = pieces.next_chunk() {
            assert!(piece.len() <= PIECE);
            told.extend_from_slice(&piece);
        }
        assert_eq!((told, pieces.length()), (body, Some(0)));
    }
}
