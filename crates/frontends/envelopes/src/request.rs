//! Parses the text of a part as an HTTP request.

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue, TRANSFER_ENCODING};
use http::request::Parts;
use http::{Method, Request, StatusCode, Uri};

use crate::malformed::Malformed;

/// Bytes of the largest head of a part, the same as for a request outside an envelope.
const MAX_HEAD: usize = 16 << 10;
/// The largest number of headers of a part, the same as for a request outside an envelope.
const MAX_HEADERS: usize = 100;

/// Returns the line that begins at a position, without its CRLF or LF, and the position after it.
pub(crate) fn line(text: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = text.get(at..).filter(|rest| !rest.is_empty())?;
    let Some(end) = memchr::memchr(b'\n', rest) else {
        return Some((rest, text.len()));
    };
    let line = rest.get(..end).unwrap_or_default();
    Some((line.strip_suffix(b"\r").unwrap_or(line), at + end + 1))
}

/// Returns name and value of a header.
pub(crate) fn header(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr::memchr(b':', line)?;
    let (name, value) = line.split_at(colon);
    Some((name, value.get(1..).unwrap_or_default().trim_ascii()))
}

/// Parses the value of a `Content-Length`, which has only digits.
pub(crate) fn length(value: &[u8]) -> Option<usize> {
    let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value)
        .ok()
        .filter(|_| digits)?
        .parse()
        .ok()
}

/// Parses the request of a part. A target without a leading slash is relative to `base`.
///
/// # Errors
/// The syntax error of this part. The other parts are not affected.
pub fn read(text: &Bytes, base: &str) -> Result<(Parts, Bytes), Malformed> {
    let mut at = 0;
    let mut first: &[u8] = &[];
    while let Some((found, next)) = line(text, at) {
        (first, at) = (found, next);
        if !found.is_empty() {
            break;
        }
    }
    let (method, uri) = request_line(first, base)?;
    let (mut head, ()) = Request::new(()).into_parts();
    head.method = method;
    head.uri = uri;
    while let Some((found, next)) = line(text, at) {
        at = next;
        if found.is_empty() {
            break;
        }
        add(&mut head, found)?;
        if at > MAX_HEAD {
            return Err(too_long());
        }
    }
    let body = text.slice(at.min(text.len())..);
    let body = cut(&head, body)?;
    Ok((head, body))
}

/// Parses `METHOD target`, optionally followed by `HTTP/1.1`. ArangoDB's and Google's clients send
/// both forms.
fn request_line(text: &[u8], base: &str) -> Result<(Method, Uri), Malformed> {
    if text.len() > MAX_HEAD {
        return Err(too_long());
    }
    let wrong = || {
        let shown = String::from_utf8_lossy(text.get(..80).unwrap_or(text)).into_owned();
        Malformed::bad(format!(
            "the part is no HTTP request: its first line is {shown:?}; write METHOD /path HTTP/1.1"
        ))
    };
    let text = std::str::from_utf8(text).map_err(|_| wrong())?;
    let mut words = text.split_ascii_whitespace();
    let (Some(method), Some(target), version, None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(wrong());
    };
    let known = ["HTTP/1.1", "HTTP/1.0"];
    if !version.is_none_or(|version| known.iter().any(|k| version.eq_ignore_ascii_case(k))) {
        return Err(wrong());
    }
    let method = self::method(method).ok_or_else(wrong)?;
    let uri =
        uri(target, base).ok_or_else(|| Malformed::bad(format!("{target:?} is not a path")))?;
    Ok((method, uri))
}

/// Returns the method in capitals. ArangoDB accepts methods of parts in either case, and clients
/// rely on it (python-arango 5.4 sends `post /_api/document/..`).
fn method(word: &str) -> Option<Method> {
    word.to_ascii_uppercase().parse().ok()
}

/// Returns path and query of a target, which may be a whole URL or relative to the envelope's path.
fn uri(target: &str, base: &str) -> Option<Uri> {
    let uri: Uri = if target.starts_with('/') || target.contains("://") {
        target.parse().ok()?
    } else {
        format!("{base}{target}").parse().ok()?
    };
    let uri = Uri::from(uri.path_and_query()?.clone());
    // `http://host#part` has no path.
    Some(match uri.path() {
        "" => Uri::default(),
        _ => uri,
    })
}

fn add(head: &mut Parts, line: &[u8]) -> Result<(), Malformed> {
    let wrong = || {
        let shown = String::from_utf8_lossy(line.get(..80).unwrap_or(line));
        Malformed::bad(format!("{shown:?} is not a header"))
    };
    let (name, value) = header(line).ok_or_else(wrong)?;
    let name = HeaderName::from_bytes(name).map_err(|_| wrong())?;
    let value = HeaderValue::from_bytes(value).map_err(|_| wrong())?;
    if name == TRANSFER_ENCODING {
        return Err(Malformed::bad(
            "a part takes no Transfer-Encoding: its body stands as it is".to_owned(),
        ));
    }
    if name == CONTENT_LENGTH && head.headers.get(&name).is_some_and(|other| *other != value) {
        return Err(Malformed::bad(
            "the part has two Content-Lengths".to_owned(),
        ));
    }
    if head.headers.len() >= MAX_HEADERS {
        return Err(Malformed::bad(format!(
            "the part has more than {MAX_HEADERS} headers, which is the limit"
        )));
    }
    head.headers.append(name, value);
    Ok(())
}

/// Cuts the body to the length that its head states. Some clients add blank lines after it.
fn cut(head: &Parts, body: Bytes) -> Result<Bytes, Malformed> {
    let Some(value) = head.headers.get(CONTENT_LENGTH) else {
        return Ok(body);
    };
    let length = length(value.as_bytes()).filter(|length| *length <= body.len());
    let length = length.ok_or_else(|| {
        Malformed::bad("the part's Content-Length is not the length of its body".to_owned())
    })?;
    Ok(body.slice(..length))
}

fn too_long() -> Malformed {
    Malformed::new(
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        format!("the head of the part is longer than {MAX_HEAD} bytes, which is the limit"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<(Parts, Bytes), String> {
        let text = Bytes::copy_from_slice(text.as_bytes());
        read(&text, "/_api/").map_err(|malformed| malformed.message.into())
    }

    #[test]
    fn requests_as_clients_write_them() {
        for (text, target, body) in [
            (
                "POST /_api/document?collection=xyz HTTP/1.1\r\n\r\n{}",
                "/_api/document?collection=xyz",
                "{}",
            ),
            ("\r\nGET /v1/tables/t/rows/1", "/v1/tables/t/rows/1", ""),
            ("GET http://host:1/v1/lanes HTTP/1.1\n\n", "/v1/lanes", ""),
            ("GET http://host HTTP/1.1\n\n", "/", ""),
            ("GET http://host#part HTTP/1.1\n\n", "/", ""),
            (
                "PUT document/c/k\nContent-Length: 2\n\n{}\n\n",
                "/_api/document/c/k",
                "{}",
            ),
        ] {
            let (head, got) = parse(text).unwrap();
            assert_eq!(head.uri.to_string(), target, "{text:?}");
            assert_eq!(got, body.as_bytes(), "{text:?}");
        }
        for text in ["post /x", "Post /x http/1.1", "POST /x HTTP/1.1"] {
            assert_eq!(parse(text).unwrap().0.method, Method::POST, "{text}");
        }
        let (head, _) = parse("GET /x HTTP/1.1\r\nX-A:  b \r\nx-a: c\r\n\r\n").unwrap();
        let values: Vec<_> = head.headers.get_all("x-a").iter().collect();
        assert_eq!(values, ["b", "c"]);
    }

    #[test]
    fn what_is_no_request() {
        let many = format!("GET /x\r\n{}\r\n", "a: b\r\n".repeat(101));
        let long = format!("GET /x\r\na: {}\r\n", "b".repeat(17_000));
        for (text, part) in [
            ("", "no HTTP request"),
            ("{\"a\": 1}", "no HTTP request"),
            ("GET", "no HTTP request"),
            ("GET /x HTTP/2", "no HTTP request"),
            ("GET /x HTTP/1.1 y", "no HTTP request"),
            ("G{T /x HTTP/1.1", "no HTTP request"),
            ("GET /\u{1}", "not a path"),
            ("GET /x\r\nno colon\r\n", "not a header"),
            ("GET /x\r\na b: c\r\n", "not a header"),
            ("GET /x\r\na: b\r\n c\r\n", "not a header"),
            (
                "GET /x\r\ntransfer-encoding: chunked\r\n",
                "Transfer-Encoding",
            ),
            (
                "GET /x\r\ncontent-length: 1\r\ncontent-length: 2\r\n",
                "two",
            ),
            ("GET /x\r\ncontent-length: 5\r\n\r\nabc", "Content-Length"),
            (&many, "100"),
            (&long, "16384"),
        ] {
            let message = parse(text).unwrap_err();
            assert!(message.contains(part), "{text:?}: {message}");
        }
    }
}
