//! The part of a source in memory, in which records are found without a copy.

use std::io::{self, Read};

use super::fault::SourceFault;
use super::input::{ArchiveDamage, RawInput};

/// The longest record: 64 MiB. Without a limit, a quote that is never closed would make one record
/// of the whole file.
pub const MAX_RECORD_BYTES: usize = 64 << 20;

/// Bytes that are read at once.
const CHUNK: usize = 256 << 10;

/// The size from which the window grows by a quarter at a time. Its memory is released after the
/// record for which it grew.
const LARGE: usize = 8 << 20;

/// Bytes that were read and not yet used.
pub(super) struct Window {
    input: RawInput,
    buffer: Vec<u8>,
    from: usize,
    to: usize,
    ended: bool,
    /// The error that ended the input after the last byte of the window.
    error: Option<io::Error>,
}

impl Window {
    pub(super) fn new(input: RawInput) -> Self {
        Self {
            input,
            buffer: vec![0; CHUNK],
            from: 0,
            to: 0,
            ended: false,
            error: None,
        }
    }

    pub(super) fn input(&self) -> &RawInput {
        &self.input
    }

    /// Returns the bytes that were read and not yet used.
    pub(super) fn data(&self) -> &[u8] {
        self.buffer.get(self.from..self.to).unwrap_or_default()
    }

    /// Returns true if nothing follows [`Window::data`].
    pub(super) fn is_last(&self) -> bool {
        self.ended && self.error.is_none()
    }

    /// Removes bytes from the front.
    pub(super) fn consume(&mut self, bytes: usize) {
        self.from = self.to.min(self.from + bytes);
        if bytes > LARGE {
            // The next records are most likely short again.
            let rest = self.data();
            let mut buffer = Vec::with_capacity(rest.len().max(CHUNK));
            buffer.extend_from_slice(rest);
            (self.from, self.to) = (0, buffer.len());
            buffer.resize(buffer.len().max(CHUNK), 0);
            self.buffer = buffer;
        }
    }

    /// Reads more. `line` is the first line of the record that is not complete yet.
    ///
    /// # Errors
    /// The input cannot be read, is damaged, or the record is longer than [`MAX_RECORD_BYTES`].
    pub(super) fn more(&mut self, line: u64) -> Result<(), SourceFault> {
        if let Some(error) = self.error.take() {
            return Err(self.fault(error, line));
        }
        if self.to - self.from > MAX_RECORD_BYTES {
            return Err(self.form(
                line,
                format!(
                    "the record that begins here is longer than {} MiB, which is the limit; if it is not meant to be, \
                     a quote in it is not closed, or the file has another format",
                    MAX_RECORD_BYTES >> 20
                ),
            ));
        }
        self.make_room();
        self.fill();
        match self.error.take() {
            Some(error) if self.to == self.from => Err(self.fault(error, line)),
            error => {
                self.error = error;
                Ok(())
            }
        }
    }

    fn make_room(&mut self) {
        if self.from > 0 {
            self.buffer.copy_within(self.from..self.to, 0);
            self.to -= self.from;
            self.from = 0;
        }
        if self.buffer.len() - self.to < CHUNK / 2 {
            let most = MAX_RECORD_BYTES + 2 * CHUNK;
            let now = self.buffer.len();
            let more = if now < LARGE { now } else { now / 4 };
            let more = (now + more).min(most) - now;
            self.buffer.reserve_exact(more);
            self.buffer.resize(now + more, 0);
        }
    }

    /// Fills the buffer, so that the data is scanned once and not once for each small piece.
    fn fill(&mut self) {
        while let Some(room) = self.buffer.get_mut(self.to..).filter(|r| !r.is_empty()) {
            match self.input.reader.read(room) {
                Ok(0) => {
                    self.ended = true;
                    return;
                }
                Ok(bytes) => self.to += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    self.ended = true;
                    self.error = Some(error);
                    return;
                }
            }
        }
    }

    /// Returns a fault of the file's form.
    pub(super) fn form(&self, line: u64, reason: impl Into<String>) -> SourceFault {
        SourceFault::Form {
            name: self.input.name.clone(),
            line,
            reason: reason.into(),
        }
    }

    fn fault(&self, error: io::Error, line: u64) -> SourceFault {
        match error.get_ref().and_then(|inner| inner.downcast_ref()) {
            Some(ArchiveDamage(reason)) => self.form(line, reason.clone()),
            None => SourceFault::Io {
                name: self.input.name.clone(),
                error,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_a_long_record_memory_is_given_back() {
        let mut window = Window::new(RawInput::of("long", io::repeat(b'x')));
        while window.data().len() < 40 << 20 {
            window.more(1).unwrap();
        }
        assert!(window.buffer.len() < 51 << 20, "{}", window.buffer.len());
        let rest = window.data().len() - (40 << 20);
        window.consume(40 << 20);
        assert_eq!(window.data().len(), rest);
        assert!(window.buffer.len() < 11 << 20, "{}", window.buffer.len());
        window.consume(rest);
        window.more(1).unwrap();
        assert!(!window.data().is_empty());
    }

    #[test]
    fn a_record_past_the_limit_is_refused_with_the_limit_and_memory_stays_bounded() {
        let mut window = Window::new(RawInput::of("endless", io::repeat(b'x')));
        let fault = loop {
            match window.more(7) {
                Ok(()) => assert!(window.buffer.len() <= MAX_RECORD_BYTES + 2 * CHUNK),
                Err(fault) => break fault.to_string(),
            }
        };
        assert!(fault.starts_with("endless, line 7: "), "{fault}");
        assert!(
            fault.contains("longer than 64 MiB, which is the limit"),
            "{fault}"
        );
    }
}
