//! Finds the boundary between the parts: in the content type, or else in the body's first line.

use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, StatusCode};

use crate::malformed::Malformed;

/// Bytes of the longest boundary (RFC 2046, 5.1.1).
const MAX_BOUNDARY_BYTES: usize = 70;

/// The boundary between the parts of an envelope, and the content type of its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Boundary {
    text: Box<str>,
    content_type: HeaderValue,
}

impl Boundary {
    /// Returns the boundary that the content type names; `None` if it names none. Then
    /// [`Boundary::peek`] reads it from the body.
    ///
    /// # Errors
    /// 415 for anything but an envelope, 400 for a boundary that cannot be one.
    pub fn of(headers: &HeaderMap) -> Result<Option<Self>, Malformed> {
        let Some(value) = headers.get(CONTENT_TYPE) else {
            return Ok(None);
        };
        let text = value.to_str().map_err(|_| wrong_type("that is no text"))?;
        let (kind, parameters) = text.split_once(';').unwrap_or((text, ""));
        if !is_envelope(kind) {
            return Err(wrong_type(kind.trim()));
        }
        let Some(text) = parameter(parameters)? else {
            return Ok(None);
        };
        check(&text)?;
        Ok(Some(Self {
            text: text.into(),
            content_type: value.clone(),
        }))
    }

    /// Returns the boundary at the beginning of the body: the text after `--`, up to the first
    /// blank or the end of the line.
    ///
    /// # Errors
    /// 400 if the body does not begin with a boundary.
    pub fn peek(headers: &HeaderMap, body: &[u8]) -> Result<Self, Malformed> {
        let body = body.trim_ascii_start();
        let end = body.iter().position(u8::is_ascii_whitespace);
        let line = body.get(..end.unwrap_or(body.len())).unwrap_or_default();
        let text = line.strip_prefix(b"--").filter(|text| text.len() >= 3);
        let text = text.and_then(|text| std::str::from_utf8(text).ok());
        let text = text.ok_or_else(|| {
            Malformed::bad(
                "the content type names no boundary, and the body does not begin with a boundary line (--BOUNDARY); \
                 send Content-Type: multipart/form-data; boundary=BOUNDARY",
            )
        })?;
        check(text)?;
        let kind = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
        let kind = kind.unwrap_or("multipart/form-data");
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let content_type = HeaderValue::from_str(&format!("{kind}; boundary=\"{text}\""));
        Ok(Self {
            text: text.into(),
            content_type: content_type.map_err(|_| Malformed::bad("the boundary is no text"))?,
        })
    }

    /// Returns the boundary with its two leading dashes.
    pub fn dashed(&self) -> String {
        format!("--{}", self.text)
    }

    /// Returns the content type of the answer, which is that of the request.
    pub fn content_type(&self) -> &HeaderValue {
        &self.content_type
    }
}

/// Returns true for content types of envelopes.
pub fn is_envelope(kind: &str) -> bool {
    let kind = kind.trim();
    kind.eq_ignore_ascii_case("multipart/form-data") || kind.eq_ignore_ascii_case("multipart/mixed")
}

/// Returns the parameter `boundary` of a content type. Values may be plain, quoted
/// (`name="a \"quoted\" value"`), or in single quotes, as some clients send them.
fn parameter(mut rest: &str) -> Result<Option<String>, Malformed> {
    loop {
        rest = rest.trim_start_matches([' ', '\t', ';']);
        if rest.is_empty() {
            return Ok(None);
        }
        let Some((name, behind)) = rest.split_once('=') else {
            return Ok(None);
        };
        let (value, behind) = value(behind)?;
        if name.trim().eq_ignore_ascii_case("boundary") {
            return Ok(Some(value));
        }
        rest = behind;
    }
}

fn value(text: &str) -> Result<(String, &str), Malformed> {
    let text = text.trim_start();
    let quote = text.chars().next().filter(|c| matches!(c, '"' | '\''));
    let Some(quote) = quote else {
        let (value, behind) = text.split_once(';').unwrap_or((text, ""));
        return Ok((value.trim_end().to_owned(), behind));
    };
    let mut value = String::new();
    let mut chars = text.char_indices().skip(1);
    while let Some((at, c)) = chars.next() {
        if c == quote {
            return Ok((value, text.get(at + 1..).unwrap_or_default()));
        }
        match c {
            '\\' => value.extend(chars.next().map(|(_, c)| c)),
            c => value.push(c),
        }
    }
    // A single quote may also be a character of the boundary itself (RFC 2046, 5.1.1).
    if quote == '\'' {
        let (value, behind) = text.split_once(';').unwrap_or((text, ""));
        return Ok((value.trim_end().to_owned(), behind));
    }
    Err(Malformed::bad(
        "a quotation mark in the content type is not closed",
    ))
}

fn check(text: &str) -> Result<(), Malformed> {
    if text.is_empty() || text.len() > MAX_BOUNDARY_BYTES {
        return Err(Malformed::bad(format!(
            "the boundary has {} characters; it must have 1 to {MAX_BOUNDARY_BYTES} (RFC 2046)",
            text.len()
        )));
    }
    if text.ends_with(' ') || !text.bytes().all(|b| (b' '..=b'~').contains(&b)) {
        return Err(Malformed::bad(
            "the boundary must be of printable ASCII characters and not end in a blank",
        ));
    }
    Ok(())
}

fn wrong_type(kind: &str) -> Malformed {
    let message = format!(
        "the content type {kind:?} is not accepted here; send multipart/form-data (parts of \
         application/x-arango-batchpart) or multipart/mixed (parts of application/http), with a boundary"
    );
    Malformed::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> Result<Option<String>, String> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, value.parse().unwrap());
        match Boundary::of(&headers) {
            Ok(boundary) => Ok(boundary.map(|b| b.dashed())),
            Err(malformed) => Err(malformed.message.into()),
        }
    }

    #[test]
    fn however_it_is_quoted() {
        for (value, dashed) in [
            ("multipart/form-data; boundary=XXX", "--XXX"),
            ("Multipart/Mixed;BOUNDARY=\"a b;c\"", "--a b;c"),
            (
                "multipart/mixed; boundary=\"a\\\"b\"; charset=utf-8",
                "--a\"b",
            ),
            ("multipart/mixed; charset=\"x;y\"; boundary='X Y' ", "--X Y"),
            ("multipart/mixed; boundary='X", "--'X"),
            ("multipart/mixed; boundary = X ; a=b", "--X"),
        ] {
            assert_eq!(of(value), Ok(Some(dashed.to_owned())), "{value}");
        }
        assert_eq!(of("multipart/mixed"), Ok(None));
        assert_eq!(of("multipart/mixed; charset=utf-8"), Ok(None));
    }

    #[test]
    fn what_cannot_be_one() {
        let long = format!("multipart/mixed; boundary={}", "x".repeat(71));
        for (value, part) in [
            ("application/json", "application/http"),
            ("multipart/related; boundary=x", "multipart/related"),
            ("multipart/mixed; boundary=", "1 to 70"),
            (&long, "71 characters"),
            ("multipart/mixed; boundary=\"x", "not closed"),
            ("multipart/mixed; boundary=\"x \"", "blank"),
        ] {
            let message = of(value).unwrap_err();
            assert!(message.contains(part), "{value}: {message}");
        }
    }

    #[test]
    fn the_body_may_say_it() {
        let none = HeaderMap::new();
        let boundary = Boundary::peek(&none, b"\r\n--a=b \r\nx").unwrap();
        assert_eq!(boundary.dashed(), "--a=b");
        assert_eq!(
            boundary.content_type(),
            "multipart/form-data; boundary=\"a=b\""
        );
        for body in ["", "--", "--ab\r\n", "x--abc", "{}"] {
            assert!(Boundary::peek(&none, body.as_bytes()).is_err(), "{body}");
        }
    }
}
