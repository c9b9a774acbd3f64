//! Encodes the answer to one part of an envelope.

use http::header::{CONTENT_LENGTH, HeaderName};
use http::{HeaderMap, StatusCode};

use crate::multipart::PartKind;

/// Header with the number of parts that failed (status 400 or more). Absent if none failed.
pub const ERRORS: HeaderName = HeaderName::from_static("x-arango-errors");

/// The lines of a part's answer before its body.
#[derive(Clone, Copy, Debug)]
pub struct AnswerHead<'a> {
    /// The content type of the part, which the answer repeats.
    pub kind: PartKind,
    /// The part's `Content-Id`.
    pub id: Option<&'a [u8]>,
    /// The status of the answer.
    pub status: StatusCode,
    /// The headers of the answer, without `Content-Length`.
    pub headers: &'a HeaderMap,
    /// The value of `Content-Length`; `None` to leave the header out.
    pub length: Option<usize>,
}

impl AnswerHead<'_> {
    /// Returns the boundary line, the part's own headers, and the head of the answer up to its
    /// blank line. `dashed` is [`crate::Boundary::dashed`].
    pub fn encode(&self, dashed: &str) -> Box<[u8]> {
        let mut out = Vec::with_capacity(256);
        let mut put = |texts: &[&[u8]]| texts.iter().for_each(|text| out.extend_from_slice(text));
        put(&[dashed.as_bytes(), b"\r\nContent-Type: "]);
        put(&[match self.kind {
            PartKind::Arango => b"application/x-arango-batchpart",
            PartKind::Http | PartKind::Changes => {
                b"application/http\r\nContent-Transfer-Encoding: binary"
            }
        }]);
        if let Some(id) = self.id {
            let id: Vec<u8> = id
                .iter()
                .copied()
                .filter(|b| !b.is_ascii_control())
                .collect();
            put(&[b"\r\nContent-Id: "]);
            // Google's clients send `<id>` and expect `<response-id>`.
            match (self.kind, id.strip_prefix(b"<")) {
                (PartKind::Http | PartKind::Changes, Some(rest)) if rest.ends_with(b">") => {
                    put(&[b"<response-", rest]);
                }
                _ => put(&[&id]),
            }
        }
        let reason = self.status.canonical_reason().unwrap_or("Unknown");
        put(&[
            b"\r\n\r\nHTTP/1.1 ",
            self.status.as_str().as_bytes(),
            b" ",
            reason.as_bytes(),
            b"\r\n",
        ]);
        for (name, value) in self.headers {
            put(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"]);
        }
        if let Some(length) = self.length {
            put(&[CONTENT_LENGTH.as_str().as_bytes(), b": "]);
            put(&[itoa::Buffer::new().format(length).as_bytes(), b"\r\n"]);
        }
        put(&[b"\r\n"]);
        out.into()
    }
}
