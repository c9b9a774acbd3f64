//! Groups: the entries that one sync made durable.

use super::fields::Fields;
use crate::entry::{Batch, Origin, Position};

/// The bytes of a group's header.
pub(crate) const GROUP_HEADER: usize = 48;
/// The bytes of an entry's header.
pub(crate) const ENTRY_HEADER: usize = 16;
/// The first bytes of a group.
pub(crate) const GROUP_MAGIC: &[u8; 4] = b"WGrp";

/// The header of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    /// The number of bytes after the header.
    pub(crate) body: u32,
    pub(crate) count: u32,
    pub(crate) first: Position,
    /// The time of writing.
    pub(crate) written: u64,
    /// The origin of its first entry.
    pub(crate) origin: Origin,
    /// The checksum of the header, with which those of its entries begin.
    pub(crate) crc: u32,
}

impl GroupHeader {
    /// Decodes a header; `None` if it is incomplete or not of this segment.
    pub(crate) fn decode(bytes: &[u8], salt: u32) -> Option<Self> {
        let bytes: &[u8; GROUP_HEADER] = bytes.first_chunk()?;
        let mut fields = Fields(bytes);
        if fields.array()? != GROUP_MAGIC {
            return None;
        }
        let crc = fields.u32()?;
        if crc32c::crc32c_append(salt, fields.0) != crc {
            return None;
        }
        Some(Self {
            body: fields.u32()?,
            count: fields.u32()?,
            first: Position(fields.u64()?),
            written: fields.u64()?,
            origin: Origin {
                gateway: fields.u64()?,
                sequence: fields.u64()?,
            },
            crc,
        })
    }

    /// Returns the position after its last entry.
    pub(crate) fn end(&self) -> Position {
        self.first.plus(self.count.into())
    }

    /// Returns the bytes of the whole group.
    pub(crate) fn bytes(&self) -> u64 {
        GROUP_HEADER as u64 + u64::from(self.body)
    }
}

/// An entry's position and the range of its payload in the group's body; or the offset in the body
/// of an entry that has changed since it was written.
pub(crate) type Found = Result<(Position, std::ops::Range<usize>), usize>;

/// Returns the entries of a group's body, each checked. Ends after the first that has changed since
/// it was written. The group is valid only if this yields [`GroupHeader::count`] entries.
pub(crate) fn entries<'a>(
    header: &GroupHeader,
    body: &'a [u8],
) -> impl Iterator<Item = Found> + 'a {
    let GroupHeader {
        count, first, crc, ..
    } = *header;
    let (mut at, mut index, mut failed) = (0, 0_u32, false);
    std::iter::from_fn(move || {
        if failed || (index == count && at == body.len()) {
            return None;
        }
        let found = entry(body.get(at..)?, crc, first.plus(index.into()));
        let Some(length) = found.filter(|_| index < count) else {
            failed = true;
            return Some(Err(at));
        };
        let start = at + ENTRY_HEADER;
        (at, index) = (start + length, index + 1);
        Some(Ok((first.plus(u64::from(index) - 1), start..at)))
    })
}

/// Returns the length of the payload of the entry at the start of the bytes, if it is complete.
fn entry(bytes: &[u8], seed: u32, position: Position) -> Option<usize> {
    let mut fields = Fields(bytes);
    let length = fields.array::<4>()?;
    let stored = fields.u32()?;
    let covered = fields.0;
    let number = fields.u64()?;
    let length_bytes = length;
    let length = usize::try_from(u32::from_le_bytes(*length)).ok()?;
    let covered = covered.get(..8 + length)?;
    let crc = crc32c::crc32c_append(seed, length_bytes);
    let crc = crc32c::crc32c_append(crc, covered);
    (crc == stored && number == position.0).then_some(length)
}

/// Lays out groups in a buffer that is reused.
#[derive(Debug, Default)]
pub(crate) struct GroupWriter {
    bytes: Vec<u8>,
}

impl GroupWriter {
    /// Returns the bytes of a group with all entries of the batches.
    pub(crate) fn lay_out<'b>(
        &mut self,
        salt: u32,
        (first, written, origin): (Position, u64, Origin),
        batches: impl Iterator<Item = &'b Batch> + Clone,
    ) -> &[u8] {
        let count: usize = batches.clone().map(Batch::len).sum();
        let payload: usize = batches.clone().map(Batch::bytes).sum();
        let body = payload + count * ENTRY_HEADER;
        self.bytes.clear();
        self.bytes.reserve(GROUP_HEADER + body);
        self.bytes.extend(GROUP_MAGIC);
        self.bytes.extend([0; 4]);
        // The limit on an append keeps both numbers far below 4 GiB.
        self.bytes
            .extend(u32::try_from(body).unwrap_or(u32::MAX).to_le_bytes());
        self.bytes
            .extend(u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
        self.bytes.extend(first.0.to_le_bytes());
        self.bytes.extend(written.to_le_bytes());
        self.bytes.extend(origin.gateway.to_le_bytes());
        self.bytes.extend(origin.sequence.to_le_bytes());
        let crc = crc32c::crc32c_append(salt, self.bytes.get(8..).unwrap_or_default());
        if let Some(place) = self.bytes.get_mut(4..8) {
            place.copy_from_slice(&crc.to_le_bytes());
        }
        let mut position = first;
        for payload in batches.flat_map(Batch::iter) {
            self.entry(crc, position, payload);
            position = position.plus(1);
        }
        &self.bytes
    }

    fn entry(&mut self, seed: u32, position: Position, payload: &[u8]) {
        let length = u32::try_from(payload.len())
            .unwrap_or(u32::MAX)
            .to_le_bytes();
        let number = position.0.to_le_bytes();
        let crc = crc32c::crc32c_append(seed, &length);
        let crc = crc32c::crc32c_append(crc, &number);
        let crc = crc32c::crc32c_append(crc, payload);
        self.bytes.extend(length);
        self.bytes.extend(crc.to_le_bytes());
        self.bytes.extend(number);
        self.bytes.extend_from_slice(payload);
    }

    /// Frees memory after a group that was much larger than most.
    pub(crate) fn shrink(&mut self, most: usize) {
        if self.bytes.capacity() > most {
            self.bytes = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: Origin = Origin {
        gateway: 5,
        sequence: 6,
    };

    fn group(salt: u32, sequence: u64, batches: &[Batch]) -> Vec<u8> {
        let origin = Origin { sequence, ..ORIGIN };
        let mut writer = GroupWriter::default();
        let head = (Position(10), 77, origin);
        writer.lay_out(salt, head, batches.iter()).to_vec()
    }

    fn read(bytes: &[u8], salt: u32) -> Option<Vec<Vec<u8>>> {
        let header = GroupHeader::decode(bytes, salt)?;
        let body = bytes.get(GROUP_HEADER..)?;
        let mut read = Vec::new();
        for found in entries(&header, body) {
            read.push(body[found.ok()?.1].to_vec());
        }
        (read.len() == header.count as usize).then_some(read)
    }

    #[test]
    fn a_group_comes_back_and_every_flipped_bit_is_seen() {
        let mut batch = Batch::of(b"first");
        batch.push(b"");
        let bytes = group(1, 6, &[batch, Batch::of(b"third")]);
        let whole = vec![b"first".to_vec(), vec![], b"third".to_vec()];
        assert_eq!(read(&bytes, 1), Some(whole));
        assert_eq!(read(&bytes, 2), None, "a group of another segment");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&flipped, 1), None, "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert_eq!(read(&bytes[..length], 1), None, "cut at {length}");
        }
    }

    #[test]
    fn entries_of_two_attempts_do_not_mix() {
        let (one, two) = (Batch::of(b"aaaa"), Batch::of(b"bbbb"));
        let (one, two) = (group(1, 6, &[one]), group(1, 7, &[two]));
        let mixed = [&one[..GROUP_HEADER], &two[GROUP_HEADER..]].concat();
        assert_eq!(read(&mixed, 1), None);
    }
}
