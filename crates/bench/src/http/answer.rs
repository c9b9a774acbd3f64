//! Where an answer ends and what its status is.

use std::ops::Range;

use anyhow::{Context, Result, bail};

/// A whole answer at the beginning of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Where its body is.
    pub body: Range<usize>,
}

/// Finds the first answer in a buffer; `None` if it is not complete yet.
///
/// # Errors
/// It is not HTTP/1.1, or has no `Content-Length` (the server answers single rows with one).
pub fn parse(buffer: &[u8]) -> Result<Option<Answer>> {
    let Some(head_end) = memchr::memmem::find(buffer, b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = buffer.get(..head_end).unwrap_or_default();
    let status = status(head)?;
    let start = head_end + 4;
    let end = start + content_length(head)?;
    Ok((buffer.len() >= end).then_some(Answer {
        status,
        body: start..end,
    }))
}

/// The status of an answer's first line.
///
/// # Errors
/// It is not an HTTP/1.1 status line.
pub fn status(head: &[u8]) -> Result<u16> {
    let digits = head
        .strip_prefix(b"HTTP/1.1 ")
        .and_then(|rest| rest.get(..3));
    let status = digits.and_then(number);
    match status.map(u16::try_from) {
        Some(Ok(status)) => Ok(status),
        _ => bail!(
            "not an HTTP answer: {}",
            String::from_utf8_lossy(head.get(..60).unwrap_or(head))
        ),
    }
}

fn content_length(head: &[u8]) -> Result<usize> {
    const NAME: &[u8] = b"content-length:";
    let lines = memchr::memchr_iter(b'\n', head).map(|at| head.get(at + 1..).unwrap_or_default());
    let mut lines = lines.filter(|line| {
        line.get(..NAME.len())
            .is_some_and(|name| name.eq_ignore_ascii_case(NAME))
    });
    let line = lines.next().context("an answer without Content-Length")?;
    let value = line.get(NAME.len()..).unwrap_or_default();
    let value = value.split(|b| *b == b'\r').next().unwrap_or_default();
    number(value.trim_ascii()).context("a Content-Length that is no number")
}

fn number(digits: &[u8]) -> Option<usize> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_complete_at_its_last_byte() {
        let text =
            b"HTTP/1.1 201 Created\r\nServer: x\r\nContent-Length:  10\r\n\r\n{\"rows\":1}HTTP";
        let whole = text.len() - 4;
        for cut in 0..whole {
            assert_eq!(parse(&text[..cut]).unwrap(), None, "{cut}");
        }
        let answer = parse(text).unwrap().unwrap();
        assert_eq!(answer.status, 201);
        assert_eq!(&text[answer.body], b"{\"rows\":1}");
    }

    #[test]
    fn what_is_not_http_is_refused() {
        assert!(parse(b"SSH-2.0-x\r\n\r\n").is_err());
        assert!(parse(b"HTTP/1.1 200 OK\r\nx-content-length: 3\r\n\r\n").is_err());
    }
}
