//! The answer to a part, as it stands in the envelope.

use http::header::{CONTENT_LENGTH, HeaderName};
use http::{HeaderMap, StatusCode};

use crate::multipart::Kind;

/// How many parts have a status of 400 or more; not there where none has.
pub const ERRORS: HeaderName = HeaderName::from_static("x-arango-errors");

/// All of a part's answer that stands before its body.
#[derive(Clone, Copy, Debug)]
pub struct AnswerHead<'a> {
    /// What the part said that it is.
    pub kind: Kind,
    /// The part's `Content-Id`.
    pub id: Option<&'a [u8]>,
    /// The status of the answer.
    pub status: StatusCode,
    /// Its headers, without its length.
    pub headers: &'a HeaderMap,
    /// The length of its body, where it is to be said.
    pub length: Option<usize>,
}

impl AnswerHead<'_> {
    /// The boundary line, the part's own headers, and the head of the answer with the blank line
    /// behind it. `dashed`: [`crate::Boundary::dashed`].
    pub fn encode(&self, dashed: &str) -> Box<[u8]> {
        let mut out = Vec::with_capacity(256);
        let mut put = |texts: &[&[u8]]| texts.iter().for_each(|text| out.extend_from_slice(text));
        put(&[dashed.as_bytes(), b"\r\nContent-Type: "]);
        put(&[match self.kind {
            Kind::Arango => b"application/x-arango-batchpart",
            Kind::Http | Kind::Changes => b"application/http\r\nContent-Transfer-Encoding: binary",
        }]);
        if let Some(id) = self.id {
            let id: Vec<u8> = id
                .iter()
                .copied()
                .filter(|b| !b.is_ascii_control())
                .collect();
            put(&[b"\r\nContent-Id: "]);
            // Google's clients write their own between angle brackets, and look for the same with a
            // word before it.
            match (self.kind, id.strip_prefix(b"<")) {
                (Kind::Http | Kind::Changes, Some(rest)) if rest.ends_with(b">") => {
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
