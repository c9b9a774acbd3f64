//! Unpacks bodies in gzip, in pieces, so that a small body that unpacks to a large one never takes
//! more memory than one piece.

use std::io::{self, BufRead, Read};

use bytes::{Buf, Bytes};
use flate2::bufread::MultiGzDecoder;
use http::header::CONTENT_ENCODING;
use http::{HeaderMap, StatusCode};

use crate::answers::Refusal;

/// The most bytes of a piece.
const PIECE_BYTES: usize = 64 << 10;

/// Returns true if the headers say that a body is packed by gzip.
pub(super) fn is_packed(headers: &HeaderMap) -> bool {
    let encoding = headers.get(CONTENT_ENCODING);
    encoding.is_some_and(|named| {
        let named = named.as_bytes();
        named.eq_ignore_ascii_case(b"gzip") || named.eq_ignore_ascii_case(b"x-gzip")
    })
}

/// Unpacks one body.
#[derive(Debug)]
pub(super) struct Inflate {
    decoder: MultiGzDecoder<Arrived>,
}

/// The next event of unpacking.
pub(super) enum Piece {
    /// Bytes, at least one.
    Bytes(Bytes),
    /// All bytes that have arrived are unpacked.
    Wants,
    /// The end.
    End,
}

/// Packed bytes that have arrived and are not unpacked yet.
#[derive(Debug, Default)]
struct Arrived {
    chunk: Bytes,
    /// True if nothing follows.
    last: bool,
}

impl Read for Arrived {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

impl BufRead for Arrived {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.chunk.is_empty() && !self.last {
            true => Err(io::ErrorKind::WouldBlock.into()),
            false => Ok(&self.chunk),
        }
    }

    fn consume(&mut self, read: usize) {
        self.chunk.advance(read.min(self.chunk.len()));
    }
}

impl Inflate {
    pub(super) fn new() -> Self {
        Self {
            decoder: MultiGzDecoder::new(Arrived::default()),
        }
    }

    /// Adds the next chunk, once the one before is unpacked; `None` at the end.
    pub(super) fn give(&mut self, chunk: Option<Bytes>) {
        let arrived = self.decoder.get_mut();
        arrived.last = chunk.is_none();
        arrived.chunk = chunk.unwrap_or_default();
    }

    /// Unpacks the next piece.
    ///
    /// # Errors
    /// 400 for a body that is not gzip, is damaged or ends too early.
    pub(super) fn piece(&mut self) -> Result<Piece, Refusal> {
        let mut piece = vec![0; PIECE_BYTES];
        match self.decoder.read(&mut piece) {
            Ok(0) => Ok(Piece::End),
            Ok(length) => {
                piece.truncate(length);
                Ok(Piece::Bytes(piece.into()))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(Piece::Wants),
            Err(error) => Err(damaged(&error)),
        }
    }
}

fn damaged(error: &io::Error) -> Refusal {
    let message = match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            "the gzip body ends before its end mark; send all of it".to_owned()
        }
        _ => format!(
            "the body is no whole gzip ({error}), as its Content-Encoding says; send it again, or as it is without that header"
        ),
    };
    Refusal::protocol(StatusCode::BAD_REQUEST, message)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// Unpacks chunks of this size; returns the bytes and the largest piece.
    fn unpacked(packed: &[u8], chunk: usize) -> Result<(Vec<u8>, usize), Refusal> {
        let (mut inflate, mut out, mut largest) = (Inflate::new(), Vec::new(), 0);
        let mut chunks = packed.chunks(chunk);
        loop {
            match inflate.piece()? {
                Piece::Bytes(piece) => {
                    largest = largest.max(piece.len());
                    out.extend_from_slice(&piece);
                }
                Piece::Wants => inflate.give(chunks.next().map(Bytes::copy_from_slice)),
                Piece::End => return Ok((out, largest)),
            }
        }
    }

    #[test]
    fn it_comes_out_in_pieces_whatever_the_chunks() {
        let text = b"a line of text\n".repeat(300_000);
        let packed = packed(&text);
        for chunk in [1, 7, 1000, packed.len()] {
            let (out, largest) = unpacked(&packed, chunk).unwrap();
            assert_eq!(out, text, "{chunk}");
            assert!(largest <= PIECE_BYTES, "{largest}");
        }
    }

    #[test]
    fn members_follow_each_other_and_damage_is_told() {
        let mut both = packed(b"a");
        both.extend(packed(b"b"));
        assert_eq!(unpacked(&both, 5).unwrap().0, b"ab");
        let whole = packed(b"some text");
        for (bytes, word) in [
            (&whole[..whole.len() - 3], "before its end mark"),
            (b"no gzip at all", "no whole gzip"),
            (b"", "before its end mark"),
        ] {
            let refusal = unpacked(bytes, 4).unwrap_err();
            let message = &refusal.fault().message;
            assert!(message.contains(word), "{message}");
        }
        let mut damaged = whole;
        *damaged.iter_mut().rev().nth(5).unwrap() ^= 1;
        assert!(unpacked(&damaged, 100).is_err());
    }
}
