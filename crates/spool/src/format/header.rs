//! The headers of files, which name the spool, the partition and the format.

use super::fields::{FORMAT, Fields, Identity};
use crate::entry::{Position, SpoolId};

/// The bytes of a file's header.
pub(crate) const HEADER: usize = 64;

const META_MAGIC: &[u8; 8] = b"WndSpool";
const SEGMENT_MAGIC: &[u8; 8] = b"WndSegmt";

/// The reason why a header cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The file has a newer format.
    Newer(u32),
    /// The file has changed since it was written.
    Damaged(&'static str),
}

/// The content of the file `spool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) id: SpoolId,
    pub(crate) partitions: u32,
    /// The time of creation.
    pub(crate) made: u64,
}

impl Meta {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = begin(META_MAGIC, self.id);
        bytes.extend(self.partitions.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(self.made.to_le_bytes());
        seal(bytes)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Unread> {
        let mut fields = open(bytes, META_MAGIC)?;
        let meta = (|| {
            let id = SpoolId(fields.u128()?);
            let partitions = fields.u32()?;
            let flags = fields.u32()?;
            let made = fields.u64()?;
            Some((
                Self {
                    id,
                    partitions,
                    made,
                },
                flags,
            ))
        })();
        known_flags(meta)
    }
}

/// The header of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) identity: Identity,
    pub(crate) first: Position,
    /// The time of creation.
    pub(crate) made: u64,
}

impl SegmentHeader {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = begin(SEGMENT_MAGIC, self.identity.spool);
        bytes.extend(self.identity.partition.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(self.first.0.to_le_bytes());
        bytes.extend(self.made.to_le_bytes());
        seal(bytes)
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, Unread> {
        let mut fields = open(bytes, SEGMENT_MAGIC)?;
        let header = (|| {
            let spool = SpoolId(fields.u128()?);
            let partition = fields.u32()?;
            let flags = fields.u32()?;
            let header = Self {
                identity: Identity { spool, partition },
                first: Position(fields.u64()?),
                made: fields.u64()?,
            };
            Some((header, flags))
        })();
        known_flags(header)
    }
}

fn known_flags<T>(read: Option<(T, u32)>) -> Result<T, Unread> {
    match read {
        Some((read, 0)) => Ok(read),
        Some(_) => Err(Unread::Damaged(
            "its header has flags that format 1 does not know",
        )),
        None => Err(SHORT),
    }
}

const SHORT: Unread = Unread::Damaged("its header is not whole");

fn begin(magic: &[u8; 8], id: SpoolId) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER);
    bytes.extend(magic);
    bytes.extend(FORMAT.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(id.0.to_le_bytes());
    bytes
}

/// Extends a header to its full length and sets its checksum.
pub(super) fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(HEADER, 0);
    let crc = crc32c::crc32c(&bytes).to_le_bytes();
    if let Some(place) = bytes.get_mut(12..16) {
        place.copy_from_slice(&crc);
    }
    bytes
}

/// Checks magic, format and checksum, in this order, because a newer format may have another
/// checksum.
pub(super) fn open<'a>(bytes: &'a [u8], magic: &[u8; 8]) -> Result<Fields<'a>, Unread> {
    let bytes: &[u8; HEADER] = bytes.first_chunk().ok_or(SHORT)?;
    let mut fields = Fields(bytes);
    if fields.array() != Some(magic) {
        return Err(Unread::Damaged("it does not begin as such a file does"));
    }
    match fields.u32() {
        Some(FORMAT) => {}
        Some(newer) if newer > FORMAT => return Err(Unread::Newer(newer)),
        _ => return Err(Unread::Damaged("its header names a format that never was")),
    }
    let stored = fields.u32();
    let (before, behind) = (bytes.get(..12), bytes.get(16..));
    let crc = crc32c::crc32c(before.unwrap_or_default());
    let crc = crc32c::crc32c_append(crc, &[0; 4]);
    let crc = crc32c::crc32c_append(crc, behind.unwrap_or_default());
    if stored != Some(crc) {
        return Err(Unread::Damaged("the checksum of its header is wrong"));
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> SegmentHeader {
        SegmentHeader {
            identity: Identity {
                spool: SpoolId(7),
                partition: 3,
            },
            first: Position(12),
            made: 99,
        }
    }

    #[test]
    fn headers_come_back_and_every_flipped_bit_is_seen() {
        let bytes = header().encode();
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header()));
        for bit in 0..HEADER * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&flipped).is_err(), "bit {bit}");
        }
        assert!(SegmentHeader::decode(&bytes[..HEADER - 1]).is_err());
        assert!(Meta::decode(&bytes).is_err(), "another kind of file");
    }

    #[test]
    fn a_newer_format_is_told_apart_from_damage() {
        let mut bytes = header().encode();
        bytes[8] = 2;
        assert_eq!(SegmentHeader::decode(&bytes), Err(Unread::Newer(2)));
    }
}
