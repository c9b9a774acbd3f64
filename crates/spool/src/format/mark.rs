//! The mark: the part of a partition that is known to be synced.
//!
//! Unreadable bytes at the end of a log are either the rest of a group that no client got an answer
//! for, or a damaged group that was acknowledged. The mark distinguishes the two. It is written
//! after each sync, without waiting for it to become durable: a mark that survives is true,
//! whatever else was lost.

use super::fields::{FORMAT, Identity};
use super::header::{HEADER, open, seal};
use crate::entry::Position;

/// The bytes of a mark.
pub(crate) const MARK: usize = HEADER;

const MAGIC: &[u8; 8] = b"WndMark ";

/// The end of the part of a log that was synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The first position of the segment that was written.
    pub(crate) segment: Position,
    /// The bytes of the segment that are synced.
    pub(crate) offset: u64,
    /// The position after the last entry that is synced.
    pub(crate) next: Position,
    /// The position up to which entries were trimmed; a later trim may be missing.
    pub(crate) trimmed: Position,
}

impl Mark {
    pub(crate) fn encode(&self, identity: Identity) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(MARK);
        bytes.extend(MAGIC);
        bytes.extend(FORMAT.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(identity.salt(Position(0)).to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(self.segment.0.to_le_bytes());
        bytes.extend(self.offset.to_le_bytes());
        bytes.extend(self.next.0.to_le_bytes());
        bytes.extend(self.trimmed.0.to_le_bytes());
        seal(bytes)
    }

    /// Decodes a mark; `None` if it is incomplete and thus means nothing.
    pub(crate) fn decode(bytes: &[u8], identity: Identity) -> Option<Self> {
        let mut fields = open(bytes, MAGIC).ok()?;
        let salt = fields.u32()?;
        fields.u32()?;
        let mark = Self {
            segment: Position(fields.u64()?),
            offset: fields.u64()?,
            next: Position(fields.u64()?),
            trimmed: Position(fields.u64()?),
        };
        (salt == identity.salt(Position(0))).then_some(mark)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::SpoolId;

    #[test]
    fn a_mark_comes_back_to_its_own_log_alone() {
        let own = Identity {
            spool: SpoolId(1),
            partition: 0,
        };
        let mark = Mark {
            segment: Position(1),
            offset: 2,
            next: Position(3),
            trimmed: Position(4),
        };
        let bytes = mark.encode(own);
        assert_eq!(bytes.len(), MARK);
        assert_eq!(Mark::decode(&bytes, own), Some(mark));
        let other = Identity {
            partition: 1,
            ..own
        };
        assert_eq!(Mark::decode(&bytes, other), None);
    }
}
