//! The bytes of a spool's files, format 1. All numbers are little-endian.
//!
//! A spool is a directory with the file `spool` (64 bytes) that names it, and a directory for each
//! partition (`0000`) with segments and a mark:
//!
//! | file | content |
//! | --- | --- |
//! | `spool` | a header of 64 bytes: the spool's name and the number of its partitions |
//! | `0000/00000000000000000000.log` | a segment: a header of 64 bytes, then groups |
//! | `0000/mark` | 64 bytes: the length of the log that is known to be synced |
//!
//! **The file `spool`**: magic `WndSpool`, format u32, crc u32, id 16 bytes, partitions u32, flags
//! u32, made u64, 16 zeros.
//!
//! **A segment's header** (its name is its first position): magic `WndSegmt`, format u32, crc u32,
//! the spool's id 16 bytes, partition u32, flags u32, first position u64, made u64, 8 zeros.
//!
//! **The mark**: magic `WndMark` and a blank, format u32, crc u32, the salt of the partition's
//! position 0 u32, 4 zeros, the segment's first position u64, bytes of it that are synced u64, the
//! position behind them u64, the position up to which the log was trimmed u64, 8 zeros.
//!
//! **A group** is what one sync made durable: a header of 48 bytes (magic `WGrp`, crc u32, length
//! of the body u32, number of entries u32, first position u64, written u64, gateway u64, first
//! sequence u64), then its entries: length of the payload u32, crc u32, position u64, payload.
//!
//! **After the last group** of a segment there may be zeros, which were allocated ahead of time and
//! mean nothing. Anything else there was left by a crash.
//!
//! **Checksums** are CRC-32C. That of a file's header covers the header with zeros in the
//! checksum's place. That of a group's header begins with a salt made of the spool's id, the
//! partition and the segment's first position. No client knows the salt, so bytes of a payload
//! cannot be mistaken for a group, and neither can a group of another file. That of an entry begins
//! with its group header's checksum, so that entries of two attempts to write the same positions
//! never mix.
//!
//! Times are milliseconds since 1970. Flags are zero; a file with others is refused.

mod fields;
mod group;
mod header;
mod mark;

pub(crate) use self::fields::{FORMAT, Identity, millis, time};
pub(crate) use self::group::{
    ENTRY_HEADER, GROUP_HEADER, GROUP_MAGIC, GroupHeader, GroupWriter, entries,
};
pub(crate) use self::header::{HEADER, Meta, SegmentHeader, Unread};
pub(crate) use self::mark::{MARK, Mark};
