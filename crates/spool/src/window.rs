//! Reading a file here and there without a system call for each few bytes.

use std::io;

use crate::files::{FileHandle, read_full};

/// Bytes that are read ahead.
const AHEAD: usize = 256 << 10;

/// A part of a file in memory.
pub(crate) struct Window<'a> {
    file: &'a dyn FileHandle,
    /// Nothing behind it is read ahead.
    end: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    /// `end`: where what is worth reading ends, as far as that is known.
    pub(crate) fn new(file: &'a dyn FileHandle, end: u64) -> Self {
        Self {
            file,
            end,
            start: 0,
            bytes: Vec::new(),
        }
    }

    /// Returns so many bytes from a place on, fewer only at the end of the file. Bytes are read
    /// once for as long as the window exists, so they may be older than the file.
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
