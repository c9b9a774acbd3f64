//! Reading a file here and there without a system call for each few bytes.

use std::io;

use crate::files::{FileHandle, read_full};

/// Bytes that are read ahead.
const AHEAD: usize = 256 << 10;

/// A part of a file in memory.
pub(crate) struct Window<'a> {
    file: &'a dyn FileHandle,
    start: u64,
    bytes: Vec<u8>,
}

impl<'a> Window<'a> {
    pub(crate) fn new(file: &'a dyn FileHandle) -> Self {
        Self {
            file,
            start: 0,
            bytes: Vec::new(),
        }
    }

    /// So many bytes from a place on; fewer only where the file ends. What was read once is not
    /// read again while the window is there, so it may be older than the file.
    pub(crate) fn at(&mut self, offset: u64, length: usize) -> io::Result<&[u8]> {
        if !self.holds(offset, length) {
            self.bytes.resize(length.max(AHEAD), 0);
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
