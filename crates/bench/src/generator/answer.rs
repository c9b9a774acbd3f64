//! Where an answer ends and what it says, without taking it apart.

use std::ops::Range;

use anyhow::{Context, Result, bail};

use super::report::Outcome;

/// A whole answer at the beginning of a buffer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) outcome: Outcome,
    /// The place of its body.
    pub(super) body: Range<usize>,
}

/// Finds the first HTTP answer in a buffer; `None` if it is not complete yet.
///
/// # Errors
/// It is not HTTP/1.1, or has no `Content-Length` (the server answers single rows with one).
pub(super) fn over_http(buffer: &[u8]) -> Result<Option<Answer>> {
    let Some(head_end) = memchr::memmem::find(buffer, b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = buffer.get(..head_end).unwrap_or_default();
    let status = status(head)?;
    let start = head_end + 4;
    let end = start + content_length(head)?;
    let Some(body) = buffer.get(start..end) else {
        return Ok(None);
    };
    let outcome = match status {
        200..300 => Outcome::Success,
        _ if memchr::memmem::find(body, b"08007").is_some() => Outcome::Unknown,
        _ => Outcome::Refused(status),
    };
    let body = start..end;
    Ok(Some(Answer { outcome, body }))
}

/// Returns the status of an answer's first line.
///
/// # Errors
/// It is not an HTTP/1.1 status line.
pub(super) fn status(head: &[u8]) -> Result<u16> {
    let digits = head
        .strip_prefix(b"HTTP/1.1 ")
        .and_then(|rest| rest.get(..3));
    let shown = || String::from_utf8_lossy(head.get(..60).unwrap_or(head)).into_owned();
    let status = digits.and_then(number).map(u16::try_from);
    let status = status.with_context(|| format!("not an HTTP answer: {}", shown()))?;
    Ok(status?)
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

/// Finds the end of PostgreSQL's answer: its ReadyForQuery, which must be the last message that
/// came, for a client has one call under way. `None` if it is not complete yet. The body of the
/// answer is the first value of its last row.
///
/// # Errors
/// These are no messages.
pub(super) fn over_pg(buffer: &[u8]) -> Result<Option<Answer>> {
    let (mut outcome, mut value, mut at) = (Outcome::Success, 0..0, 0);
    while let Some((head, rest)) = buffer.get(at..).and_then(<[u8]>::split_first_chunk::<5>) {
        let [tag, length @ ..] = *head;
        let length = usize::try_from(u32::from_be_bytes(length))?;
        if length < 4 {
            bail!("a message of {length} bytes");
        }
        let Some(body) = rest.get(..length - 4) else {
            return Ok(None);
        };
        match tag {
            b'E' if outcome == Outcome::Success => outcome = failure(body),
            b'D' => value = first_value(body, at + 5),
            b'Z' => {
                return Ok(Some(Answer {
                    outcome,
                    body: value,
                }));
            }
            _ => {}
        }
        at += 1 + length;
    }
    Ok(None)
}

/// The outcome in the field `C` of an ErrorResponse.
fn failure(body: &[u8]) -> Outcome {
    let fields = body.split(|byte| *byte == 0);
    let mut codes = fields.filter_map(|field| field.strip_prefix(b"C")?.try_into().ok());
    match codes.next().unwrap_or(*b"?????") {
        code if code == *b"08007" => Outcome::Unknown,
        code => Outcome::Failed(code),
    }
}

/// The place of the first value of a DataRow, whose body begins at `begin`; empty if it has none.
fn first_value(body: &[u8], begin: usize) -> Range<usize> {
    // The number of columns, the length of the first one, and that.
    let length = body.get(2..).and_then(|rest| rest.first_chunk());
    let length = length.map_or(-1, |length| i32::from_be_bytes(*length));
    let begin = begin + 6;
    begin..begin + usize::try_from(length).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_http_answer_is_complete_at_its_last_byte() {
        let text =
            b"HTTP/1.1 201 Created\r\nServer: x\r\nContent-Length:  10\r\n\r\n{\"rows\":1}HTTP";
        let whole = text.len() - 4;
        for cut in 0..whole {
            assert_eq!(over_http(&text[..cut]).unwrap(), None, "{cut}");
        }
        let answer = over_http(text).unwrap().unwrap();
        assert_eq!(answer.outcome, Outcome::Success);
        assert_eq!(&text[answer.body], b"{\"rows\":1}");
    }

    #[test]
    fn what_is_not_http_is_refused() {
        assert!(over_http(b"SSH-2.0-x\r\n\r\n").is_err());
        assert!(over_http(b"HTTP/1.1 200 OK\r\nx-content-length: 3\r\n\r\n").is_err());
    }

    #[test]
    fn an_answer_of_postgresql_is_whole_at_ready_for_query() {
        let outcome = |bytes: &[u8]| over_pg(bytes).unwrap().map(|answer| answer.outcome);
        let ready = b"Z\0\0\0\x05I";
        let good = [&b"2\0\0\0\x04C\0\0\0\x0fINSERT 0 1\0"[..], ready].concat();
        let bad = [&b"E\0\0\0\x16SERROR\0C23505\0Mx\0\0"[..], ready].concat();
        assert_eq!(outcome(&good), Some(Outcome::Success));
        assert_eq!(outcome(&good[..good.len() - 1]), None);
        assert_eq!(outcome(&bad), Some(Outcome::Failed(*b"23505")));
        assert!(over_pg(b"Z\0\0\0\x01I").is_err());
        let returned = [&b"D\0\0\0\x0d\0\x01\0\0\0\x0342!"[..], &good].concat();
        let value = over_pg(&returned).unwrap().unwrap().body;
        assert_eq!(&returned[value], b"42!");
    }
}
