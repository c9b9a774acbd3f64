//! Reads small pieces of a file without a system call for each.

use std::io;

use crate::files::{FileHandle, read_full};

/// The number of bytes that are read ahead.
const AHEAD: usize = 256 << 10;

/// A part of a file in memory.
pub(crate) struct Window<'a> {
    file: &'a dyn FileHandle,
    /// The offset after which nothing is read ahead.
    end: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    /// Returns a window. `end`: the offset after which reading ahead is useless, if it is known.
    pub(crate) fn new(file: &'a dyn FileHandle, end: u64) -> Self {
        Self {
            file,
            end,
            start: 0,
            bytes: Vec::new(),
        }
    }

    /// Returns this number of bytes from an offset, fewer only at the end of the file. Bytes are
    /// read once for as long as the window exists, so they may be older than the file.
    pub(crate) fn at(&mut self, offset: u64, length: usize) -> io::Result<&[u8]> {
        if !self.holds(offset, length) {
            let there = usize::try_from(self.end.saturating_sub(offset)).unwrap_or(usize::MAX);
            self.bytes.resize(length.max(there.min(AHEAD)), 0);
            let read = read_full(self.file, &mut self.bytes, offset)?;
            self.bytes.truncate(read);
            self.start = offset;
        }
        let skip = usize::try_from(offset - self.start).unwrap_or(usize::MAX);
        let rest = self.bytes.get(skip..).unwrap_or_default();
        Ok(rest.get(..length).unwrap_or(rest))
    }

    fn holds(&self, offset: u64, length: usize) -> bool {
        let skip = offset.checked_sub(self.start);
        let end = skip.and_then(|skip| skip.checked_add(length as u64));
        end.is_some_and(|end| end <= self.bytes.len() as u64)
    }
}
