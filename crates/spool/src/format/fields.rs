//! The fields that all files have in common: numbers, times, and the salts of checksums.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::entry::{Position, SpoolId};

/// The format that is written, which is also the newest that is read.
pub(crate) const FORMAT: u32 = 1;

/// The log to which bytes belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) spool: SpoolId,
    pub(crate) partition: u32,
}

impl Identity {
    /// Returns the salt with which the checksums of a segment begin.
    pub(crate) fn salt(self, segment: Position) -> u32 {
        let salt = crc32c::crc32c(&self.spool.0.to_le_bytes());
        let salt = crc32c::crc32c_append(salt, &self.partition.to_le_bytes());
        crc32c::crc32c_append(salt, &segment.0.to_le_bytes())
    }
}

/// Reads numbers from the front of bytes.
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

/// Converts a time to its form in files.
pub(crate) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Converts a time from its form in files.
pub(crate) fn time(millis: u64) -> SystemTime {
    let time = UNIX_EPOCH.checked_add(Duration::from_millis(millis));
    time.unwrap_or(UNIX_EPOCH)
}
