//! Splits an envelope into its parts (RFC 2046, 5.1). All parts are checked before the caller
//! executes the first one.
//!
//! A delimiter is a whole line: two dashes, the boundary, and only blanks after it. A part with a
//! `Content-Length` may itself contain such lines.

use bytes::Bytes;
use http::StatusCode;

use crate::malformed::Malformed;
use crate::request;

/// One part of an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvelopePart {
    /// The number of the part in the envelope, from 1.
    pub number: usize,
    /// The content type of the part.
    pub kind: PartKind,
    /// The value of `Content-Id`, unchanged.
    pub id: Option<Box<[u8]>>,
    /// The text after the part's own headers: an HTTP request.
    pub text: Bytes,
}

/// The content type of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PartKind {
    /// `application/x-arango-batchpart`
    Arango,
    /// `application/http`
    Http,
    /// `multipart/mixed`: an OData change set.
    Changes,
}

/// Splits an envelope into its parts.
///
/// # Errors
/// 400 with the number of the part and the line that cannot be read; 413 beyond `limit` parts.
pub fn split(text: &Bytes, dashed: &str, limit: usize) -> Result<Vec<EnvelopePart>, Malformed> {
    let mut cursor = Cursor {
        text,
        at: 0,
        dashed: dashed.as_bytes(),
        number: 0,
    };
    cursor.preamble()?;
    let mut pieces = Vec::new();
    loop {
        cursor.number += 1;
        if pieces.len() >= limit {
            return Err(too_many(limit));
        }
        let (piece, more) = cursor.piece()?;
        pieces.push(piece);
        if !more {
            return Ok(pieces);
        }
    }
}

fn too_many(limit: usize) -> Malformed {
    Malformed::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        format!("the envelope has more than {limit} parts (http.max_atomic_rows)"),
    )
}

const WANTED: &str = "it must be application/x-arango-batchpart or application/http";

/// The role of a line in the envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    Delimiter,
    Close,
    Other,
}

struct Cursor<'t> {
    text: &'t Bytes,
    at: usize,
    dashed: &'t [u8],
    /// The number of the part being read, from 1.
    number: usize,
}

impl<'t> Cursor<'t> {
    /// Skips the text before the first delimiter, which has no meaning.
    fn preamble(&mut self) -> Result<(), Malformed> {
        while let Some((line, next)) = self.line() {
            let kind = self.kind_of(line);
            if kind == Line::Close {
                return Err(self.wrong("the envelope has no parts"));
            }
            self.at = next;
            if kind == Line::Delimiter {
                return Ok(());
            }
        }
        let dashed = String::from_utf8_lossy(self.dashed);
        Err(self.wrong(&format!("no boundary line ({dashed}) was found")))
    }

    /// Reads the next part. Returns true with it if another part follows.
    fn piece(&mut self) -> Result<(EnvelopePart, bool), Malformed> {
        let headers = self.headers()?;
        let start = self.at;
        let said = match headers.kind {
            PartKind::Changes => headers.length,
            PartKind::Arango | PartKind::Http => self.request_end()?.or(headers.length),
        };
        let end = match said {
            Some(length) => self.skip_length(start, length)?,
            None => self.find_delimiter()?,
        };
        let more = self.delimiter()?;
        let piece = EnvelopePart {
            number: self.number,
            kind: headers.kind,
            id: headers.id.map(Vec::into_boxed_slice),
            text: self.text.slice(start..end.max(start)),
        };
        Ok((piece, more))
    }

    /// Reads the part's own headers, up to the blank line.
    fn headers(&mut self) -> Result<PieceHeaders, Malformed> {
        let mut kind = None;
        let (mut id, mut length): (Option<Vec<u8>>, _) = (None, None);
        let mut in_id = false;
        while let Some((line, next)) = self.line() {
            if line.is_empty() {
                self.at = next;
                let kind = kind.ok_or_else(|| {
                    self.wrong(&format!("the part has no Content-Type; {WANTED}"))
                })?;
                return Ok(PieceHeaders { kind, id, length });
            }
            if self.kind_of(line) != Line::Other {
                return Err(
                    self.wrong("the part ends within its headers; a blank line goes behind them")
                );
            }
            // A line that begins with a blank continues the header before it.
            if line.starts_with(b" ") || line.starts_with(b"\t") {
                let more = line.trim_ascii();
                if let Some(id) = id.as_mut().filter(|_| in_id && !more.is_empty()) {
                    if !id.is_empty() {
                        id.push(b' ');
                    }
                    id.extend_from_slice(more);
                }
                self.at = next;
                continue;
            }
            let (name, value) = request::header(line)
                .ok_or_else(|| self.wrong("a header of the part has no colon"))?;
            in_id = name.eq_ignore_ascii_case(b"content-id");
            if in_id {
                id = Some(value.to_vec());
            } else if name.eq_ignore_ascii_case(b"content-type") {
                kind = Some(self.kind(value)?);
            } else if name.eq_ignore_ascii_case(b"content-length") {
                length = Some(self.number(value)?);
            } else if name.eq_ignore_ascii_case(b"content-transfer-encoding") {
                self.check_encoding(value)?;
            }
            self.at = next;
        }
        Err(self.wrong("the envelope ends within the headers of a part"))
    }

    fn kind(&self, value: &[u8]) -> Result<PartKind, Malformed> {
        let kind = value.split(|b| *b == b';').next().unwrap_or_default();
        let kind = kind.trim_ascii();
        if kind.eq_ignore_ascii_case(b"application/x-arango-batchpart") {
            Ok(PartKind::Arango)
        } else if kind.eq_ignore_ascii_case(b"application/http") {
            Ok(PartKind::Http)
        } else if kind.eq_ignore_ascii_case(b"multipart/mixed") {
            Ok(PartKind::Changes)
        } else {
            let kind = String::from_utf8_lossy(kind);
            Err(self.wrong(&format!("the part's Content-Type is {kind:?}; {WANTED}")))
        }
    }

    fn number(&self, value: &[u8]) -> Result<usize, Malformed> {
        request::length(value).ok_or_else(|| self.wrong("its Content-Length is not a number"))
    }

    fn check_encoding(&self, value: &[u8]) -> Result<(), Malformed> {
        let known = [&b"binary"[..], b"8bit", b"7bit"];
        if known.iter().any(|k| value.eq_ignore_ascii_case(k)) {
            return Ok(());
        }
        Err(self.wrong("its Content-Transfer-Encoding must be binary, 8bit or 7bit"))
    }

    /// Returns the length in bytes of the request in this part; `None` if its head has no
    /// `Content-Length`.
    fn request_end(&self) -> Result<Option<usize>, Malformed> {
        let rest = self.rest();
        let mut at = 0;
        let mut length = None;
        let mut begun = false;
        while let Some((line, next)) = request::line(rest, at) {
            if self.kind_of(line) != Line::Other {
                return Ok(None);
            }
            at = next;
            if line.is_empty() {
                if begun {
                    return Ok(length.map(|n: usize| n.saturating_add(at)));
                }
                continue;
            }
            begun = true;
            match request::header(line) {
                Some((name, value)) if name.eq_ignore_ascii_case(b"content-length") => {
                    length = Some(self.number(value)?);
                }
                _ => {}
            }
        }
        Ok(None)
    }

    /// Moves to the end of a part of known length.
    fn skip_length(&mut self, start: usize, length: usize) -> Result<usize, Malformed> {
        let end = start.saturating_add(length);
        let Some(behind) = self.text.get(end..) else {
            return Err(self.wrong(&format!(
                "its Content-Length goes beyond the end of the envelope, by {} bytes",
                end - self.text.len()
            )));
        };
        let blank = behind
            .iter()
            .take_while(|b| b.is_ascii_whitespace())
            .count();
        self.at = end + blank;
        let on_new_line = self.text.get(..self.at).is_some_and(|t| t.ends_with(b"\n"));
        let line = self.line().map_or(&b""[..], |(line, _)| line);
        if !on_new_line || self.kind_of(line) == Line::Other {
            self.at = end;
            return Err(self.wrong(
                "no boundary line follows where its Content-Length says that the part ends",
            ));
        }
        Ok(end)
    }

    /// Moves to the next delimiter. Returns the end of the text before it, without the line break
    /// that belongs to the delimiter.
    fn find_delimiter(&mut self) -> Result<usize, Malformed> {
        while let Some((line, next)) = self.line() {
            if self.kind_of(line) != Line::Other {
                let before = self.text.get(..self.at).unwrap_or_default();
                let before = before.strip_suffix(b"\n").unwrap_or(before);
                return Ok(before.strip_suffix(b"\r").unwrap_or(before).len());
            }
            self.at = next;
        }
        Err(self.wrong("the closing boundary line is missing: the envelope was cut off"))
    }

    /// Moves past the delimiter at this position. Returns false if it closes the envelope.
    fn delimiter(&mut self) -> Result<bool, Malformed> {
        let Some((line, next)) = self.line() else {
            return Err(
                self.wrong("the closing boundary line is missing: the envelope was cut off")
            );
        };
        let kind = self.kind_of(line);
        self.at = next;
        Ok(kind == Line::Delimiter)
    }

    fn kind_of(&self, line: &[u8]) -> Line {
        let Some(rest) = line.strip_prefix(self.dashed) else {
            return Line::Other;
        };
        let closing = rest.strip_prefix(b"--");
        let padding = closing.unwrap_or(rest);
        match closing {
            _ if !padding.trim_ascii().is_empty() => Line::Other,
            Some(_) => Line::Close,
            None => Line::Delimiter,
        }
    }

    fn rest(&self) -> &'t [u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn line(&self) -> Option<(&'t [u8], usize)> {
        request::line(self.text, self.at)
    }

    fn wrong(&self, what: &str) -> Malformed {
        let before = self.text.get(..self.at).unwrap_or_default();
        let line = 1 + memchr::memchr_iter(b'\n', before).count();
        let place = match self.number {
            0 => format!("the envelope, line {line}"),
            part => format!("part {part} of the envelope, line {line}"),
        };
        Malformed::bad(format!("{place}: {what}"))
    }
}

struct PieceHeaders {
    kind: PartKind,
    id: Option<Vec<u8>>,
    length: Option<usize>,
}

#[cfg(test)]
#[path = "multipart_tests.rs"]
mod tests;
