//! The bytes of a spool's files, format 1. All numbers are little-endian.
//!
//! A spool is a directory with the file `spool` (64 bytes) that names it, and a directory for each
//! partition (`0000`) with segments and a mark:
//!
//! | file | holds |
//! | --- | --- |
//! | `spool` | magic `WndSpool`, format u32, crc u32, id 16 bytes, partitions u32, flags u32, made u64, 16 zeros |
//! | `0000/00000000000000000000.log` | a segment: a header of 64 bytes, then groups; its name is its first position |
//! | `0000/mark` | 64 bytes: how far the log is known to be synced |
//!
//! **A segment's header**: magic `WndSegmt`, format u32, crc u32, the spool's id 16 bytes, partition
//! u32, flags u32, first position u64, made u64, 8 zeros.
//!
//! **A group** is what one sync made durable: a header of 48 bytes (magic `WGrp`, crc u32, length of
//! the body u32, number of entries u32, first position u64, written u64, gateway u64, first sequence
//! u64), then its entries: length of the payload u32, crc u32, position u64, payload.
//!
//! **Checksums** are CRC-32C. That of a file's header covers the header with zeros in the
//! checksum's place. That of a group's header begins with a salt made of the spool's id, the
//! partition and the segment's first position, which no client knows: bytes of a payload cannot be
//! taken for a group, nor can a group of another file. That of an entry begins with its group
//! header's checksum, so that entries of two attempts to write the same positions never mix.
//!
//! Times are milliseconds since 1970. Flags are zero; a program that meets others refuses the file.

mod group;
mod header;
mod mark;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::entry::{Position, SpoolId};

pub(crate) use self::group::{
    ENTRY_HEADER, GROUP_HEADER, GROUP_MAGIC, GroupHeader, GroupWriter, entries,
};
pub(crate) use self::header::{HEADER, Meta, SegmentHeader, Unread};
pub(crate) use self::mark::{MARK, Mark};

/// The format that is written, and the newest that is read.
pub(crate) const FORMAT: u32 = 1;

/// Which log bytes belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) spool: SpoolId,
    pub(crate) partition: u32,
}

impl Identity {
    /// What checksums within the segment begin with.
    pub(crate) fn salt(self, segment: Position) -> u32 {
        let salt = crc32c::crc32c(&self.spool.0.to_le_bytes());
        let salt = crc32c::crc32c_append(salt, &self.partition.to_le_bytes());
        crc32c::crc32c_append(salt, &segment.0.to_le_bytes())
    }
}

/// Takes numbers off the front of bytes.
pub(crate) struct Fields<'a>(pub(crate) &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn array<const N: usize>(&mut self) -> Option<&'a [u8; N]> {
        let (front, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(front)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(|bytes| u32::from_le_bytes(*bytes))
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(|bytes| u64::from_le_bytes(*bytes))
    }

    pub(crate) fn u128(&mut self) -> Option<u128> {
        self.array().map(|bytes| u128::from_le_bytes(*bytes))
    }
}

/// A time as it stands in files.
pub(crate) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// A time from a file.
pub(crate) fn time(millis: u64) -> SystemTime {
    let time = UNIX_EPOCH.checked_add(Duration::from_millis(millis));
    time.unwrap_or(UNIX_EPOCH)
}
