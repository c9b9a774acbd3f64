//! Converts other encodings to UTF-8.

use std::io::{self, Read};

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8};

/// Bytes that are read and decoded at once.
const CHUNK: usize = 64 << 10;

/// Replaces bytes that are invalid in their encoding. UTF-8 never contains this byte, so the record
/// is found to be invalid, with its line, when it is read.
const NO_CHARACTER: u8 = 0xff;

/// Returns the encoding of a name (`latin1`, `windows-1252`, `utf-16` ..., as
/// <https://encoding.spec.whatwg.org/> lists them).
///
/// # Errors
/// There is none.
pub(super) fn encoding(label: &str) -> io::Result<&'static Encoding> {
    Encoding::for_label(label.as_bytes()).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!(
                "there is no encoding called {label:?}; known are utf-8, latin1, windows-1252, utf-16, shift_jis and the \
                 other names of encoding.spec.whatwg.org"
            ),
        )
    })
}

/// Decodes a text to UTF-8, without a byte order mark.
pub(super) fn reader(
    inner: Box<dyn Read + Send>,
    encoding: &'static Encoding,
) -> Box<dyn Read + Send> {
    if encoding == UTF_8 {
        // Nothing is decoded, because records are checked one by one. Only the byte order mark is
        // removed.
        return Box::new(WithoutMark {
            inner,
            at_start: true,
        });
    }
    Box::new(DecodingReader {
        inner,
        decoder: encoding.new_decoder_with_bom_removal(),
        raw: vec![0; CHUNK],
        raw_from: 0,
        raw_to: 0,
        ended: false,
        text: vec![0; CHUNK],
        text_from: 0,
        text_to: 0,
    })
}

struct WithoutMark {
    inner: Box<dyn Read + Send>,
    at_start: bool,
}

impl Read for WithoutMark {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];
        if self.at_start {
            self.at_start = false;
            let mut first = Vec::with_capacity(MARK.len());
            Read::by_ref(&mut self.inner)
                .take(MARK.len() as u64)
                .read_to_end(&mut first)?;
            if first != MARK {
                let rest = std::mem::replace(&mut self.inner, Box::new(io::empty()));
                self.inner = Box::new(io::Cursor::new(first).chain(rest));
            }
        }
        self.inner.read(buffer)
    }
}

struct DecodingReader {
    inner: Box<dyn Read + Send>,
    decoder: Decoder,
    raw: Vec<u8>,
    raw_from: usize,
    raw_to: usize,
    ended: bool,
    text: Vec<u8>,
    text_from: usize,
    text_to: usize,
}

impl Read for DecodingReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.text_from == self.text_to {
            if self.ended && self.raw_from == self.raw_to {
                return Ok(0);
            }
            self.decode()?;
        }
        let ready = self.text.get(self.text_from..self.text_to);
        let ready = ready.unwrap_or_default();
        let bytes = ready.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..bytes), ready.get(..bytes)) {
            to.copy_from_slice(from);
        }
        self.text_from += bytes;
        Ok(bytes)
    }
}

impl DecodingReader {
    fn decode(&mut self) -> io::Result<()> {
        if self.raw_from == self.raw_to && !self.ended {
            self.raw_from = 0;
            self.raw_to = self.inner.read(&mut self.raw)?;
            self.ended = self.raw_to == 0;
        }
        let raw = self.raw.get(self.raw_from..self.raw_to);
        // One byte is kept free for the replacement of invalid bytes.
        let room = self.text.len() - 1;
        let text = self.text.get_mut(..room).unwrap_or_default();
        let (result, read, written) = self.decoder.decode_to_utf8_without_replacement(
            raw.unwrap_or_default(),
            text,
            self.ended,
        );
        self.raw_from += read;
        (self.text_from, self.text_to) = (0, written);
        if let DecoderResult::Malformed(..) = result
            && let Some(free) = self.text.get_mut(written)
        {
            *free = NO_CHARACTER;
            self.text_to += 1;
        }
        if result == DecoderResult::InputEmpty && self.ended {
            self.raw_from = self.raw_to;
        }
        Ok(())
    }
}
