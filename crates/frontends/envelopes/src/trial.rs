//! Checks for arbitrary bytes: the fuzzer invents them (`./test fuzz`), and every test run repeats
//! the inputs that it kept.

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderValue};

use crate::boundary::Boundary;
use crate::multipart::{self, EnvelopePart, PartKind};
use crate::request;

const LIMIT: usize = 50;

/// Checks that an envelope is split without a panic, and that its parts, put into an envelope
/// again, are the same. The first line of the input is the content type.
pub fn envelope(bytes: &[u8]) {
    let end = bytes
        .iter()
        .position(|b| *b == b'\n')
        .unwrap_or(bytes.len());
    let (kind, body) = bytes.split_at(end);
    let body = Bytes::copy_from_slice(body.get(1..).unwrap_or_default());
    let mut headers = HeaderMap::new();
    if let Ok(kind) = HeaderValue::from_bytes(kind) {
        headers.insert(CONTENT_TYPE, kind);
    }
    let boundary = match Boundary::of(&headers) {
        Ok(Some(boundary)) => boundary,
        Ok(None) => match Boundary::peek(&headers, &body) {
            Ok(boundary) => boundary,
            Err(_) => return,
        },
        Err(_) => return,
    };
    let dashed = boundary.dashed();
    let Ok(pieces) = multipart::split(&body, &dashed, LIMIT) else {
        return;
    };
    for (number, piece) in (1..).zip(&pieces) {
        assert_eq!(piece.number, number);
        if let Ok((parts, body)) = request::read(&piece.text, "/_api/") {
            assert!(parts.uri.path().starts_with('/'));
            assert!(body.len() <= piece.text.len());
        }
    }
    let again = multipart::split(&written(&pieces, &dashed), &dashed, LIMIT);
    assert_eq!(again.ok(), Some(pieces));
}

fn written(pieces: &[EnvelopePart], dashed: &str) -> Bytes {
    let mut out = Vec::new();
    for piece in pieces {
        let kind = match piece.kind {
            PartKind::Arango => "application/x-arango-batchpart",
            PartKind::Http => "application/http",
            PartKind::Changes => "multipart/mixed",
        };
        out.extend_from_slice(format!("{dashed}\r\nContent-Type: {kind}\r\n").as_bytes());
        if let Some(id) = &piece.id {
            out.extend_from_slice(b"Content-Id: ");
            out.extend_from_slice(id);
            out.extend_from_slice(b"\r\n");
        }
        let length = piece.text.len();
        out.extend_from_slice(format!("Content-Length: {length}\r\n\r\n").as_bytes());
        out.extend_from_slice(&piece.text);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(format!("{dashed}--\r\n").as_bytes());
    out.into()
}

#[cfg(test)]
#[path = "../../../../fuzz/corpus.rs"]
mod corpus;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_chance_has_found() {
        corpus::each("envelope", envelope);
    }
}
