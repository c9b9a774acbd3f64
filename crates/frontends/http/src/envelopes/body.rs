//! The answer of an envelope, written while it is sent.

use std::vec::IntoIter;

use bytes::Bytes;
use http_body::Body as _;
use windrow_core::Permit;

use crate::answers::{AnswerBody, Chunks};

/// Bytes after which a chunk is sent.
const CHUNK_BYTES: usize = 16 << 10;

/// The answer to one part, in the format of the envelope.
#[derive(Debug)]
pub(super) struct EncodedPart {
    /// The boundary line, the part's headers, and the head of its answer with the blank line after
    /// it.
    pub(super) lead: Box<[u8]>,
    pub(super) body: AnswerBody,
}

/// The answers of all parts, in their order, and the closing boundary line.
#[derive(Debug)]
pub(super) struct EnvelopeBody {
    parts: IntoIter<EncodedPart>,
    current: Option<AnswerBody>,
    /// The closing line; taken when it is written.
    close: Option<Box<str>>,
    length: Option<u64>,
    /// Held until the last byte is written.
    _memory: Permit,
}

impl EnvelopeBody {
    pub(super) fn new(parts: Vec<EncodedPart>, dashed: &str, memory: Permit) -> Self {
        let close = format!("{dashed}--\r\n");
        let lengths = parts.iter().map(|part| {
            let body = part.body.size_hint().exact()?;
            Some(part.lead.len() as u64 + body + 2)
        });
        let length = lengths.sum::<Option<u64>>();
        Self {
            length: length.map(|length| length + close.len() as u64),
            parts: parts.into_iter(),
            current: None,
            close: Some(close.into()),
            _memory: memory,
        }
    }

    /// Writes the text before the next body, or the closing line. Returns false if nothing is left.
    fn begin(&mut self, out: &mut Vec<u8>) -> bool {
        if let Some(EncodedPart { lead, body }) = self.parts.next() {
            out.extend_from_slice(&lead);
            self.current = Some(body);
            return true;
        }
        match self.close.take() {
            Some(close) => out.extend_from_slice(close.as_bytes()),
            None => return false,
        }
        true
    }
}

impl Chunks for EnvelopeBody {
    fn next_chunk(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        while out.len() < CHUNK_BYTES {
            let Some(body) = &mut self.current else {
                if !self.begin(&mut out) {
                    break;
                }
                continue;
            };
            let chunk = match body {
                AnswerBody::Whole(bytes) if bytes.len() >= CHUNK_BYTES && !out.is_empty() => break,
                AnswerBody::Whole(bytes) => Some(std::mem::take(bytes)).filter(|b| !b.is_empty()),
                AnswerBody::Chunked(chunks, _) => chunks.next_chunk(),
                // No part has such an answer.
                AnswerBody::Live(_) => None,
            };
            match chunk {
                // Not copied, because it is as long as a chunk should be, or longer.
                Some(chunk) if out.is_empty() && chunk.len() >= CHUNK_BYTES => return Some(chunk),
                Some(chunk) => out.extend_from_slice(&chunk),
                None => {
                    out.extend_from_slice(b"\r\n");
                    self.current = None;
                }
            }
        }
        (!out.is_empty()).then(|| out.into())
    }

    fn length(&self) -> Option<u64> {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack::Ack;
    use crate::answers::Report;
    use crate::answers::ledger::{Ledger, Results};
    use windrow_core::{Budget, WriteDone};

    fn encoded(body: AnswerBody) -> EncodedPart {
        EncodedPart {
            lead: b"--X\r\n\r\n"[..].into(),
            body,
        }
    }

    fn written(mut body: EnvelopeBody) -> String {
        let mut text = Vec::new();
        while let Some(chunk) = body.next_chunk() {
            assert!(!chunk.is_empty());
            text.extend_from_slice(&chunk);
        }
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn whole_bodies_have_a_length_and_long_ones_are_not_copied() {
        let long = "y".repeat(3 * CHUNK_BYTES);
        let bodies = ["a", "", &long, "b"].map(|b| Bytes::copy_from_slice(b.as_bytes()));
        let parts = bodies.map(|b| encoded(AnswerBody::Whole(b)));
        let body = EnvelopeBody::new(parts.into(), "--X", Permit::empty());
        let length = body.length().unwrap();
        let text = written(body);
        assert_eq!(text.len() as u64, length);
        assert_eq!(
            text,
            format!(
                "--X\r\n\r\na\r\n--X\r\n\r\n\r\n--X\r\n\r\n{long}\r\n--X\r\n\r\nb\r\n--X--\r\n"
            )
        );
    }

    #[test]
    fn results_that_are_written_while_sent_have_none() {
        let mut ledger = Ledger::new(Results::All, Ack::Commit, Budget::new(1 << 20));
        ledger.done(WriteDone::rows(1));
        let report = AnswerBody::chunked(Report::new(ledger, None));
        let body = EnvelopeBody::new(vec![encoded(report)], "--X", Permit::empty());
        assert_eq!(body.length(), None);
        assert_eq!(
            written(body),
            "--X\r\n\r\n{\"results\":[{\"rows\":1}],\"rows\":1,\"errors\":0}\r\n--X--\r\n"
        );
    }
}
