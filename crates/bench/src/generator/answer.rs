//! Where an answer ends and what it says, without taking it apart.

use std::ops::Range;

use anyhow::{Context, Result, bail};

use super::mysql::{END, ERROR, OK, PREPARE};
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
    of_code(codes.next())
}

/// The outcome that an SQLSTATE says.
fn of_code(code: Option<[u8; 5]>) -> Outcome {
    match code.unwrap_or(*b"?????") {
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

/// The longest packet that ends columns or rows over MySQL's protocol.
const MAX_END_BYTES: usize = 8;

/// Returns the content of MySQL's packet that begins at a place, if all of it is there.
pub(super) fn packet(buffer: &[u8], at: usize) -> Option<Range<usize>> {
    let [a, b, c, _] = *buffer.get(at..)?.first_chunk()?;
    let length = usize::try_from(u32::from_le_bytes([a, b, c, 0])).ok()?;
    let content = at + 4..at + 4 + length;
    (content.end <= buffer.len()).then_some(content)
}

/// Finds the end of MySQL's answer to a command; `None` if it is not complete yet. The body of the
/// answer is its last row, the message of an error, or the number of a statement that was prepared.
pub(super) fn over_mysql(command: u8, buffer: &[u8]) -> Option<Answer> {
    let (mut at, mut body) = (0, 0..0);
    // The packets behind columns or rows that are still to come.
    let mut ends = None;
    while let Some(place) = packet(buffer, at) {
        at = place.end;
        let content = buffer.get(place.clone()).unwrap_or_default();
        match (content.first(), ends) {
            (Some(&ERROR), _) => {
                // The number of the error, `#` and the SQLSTATE stand before the message.
                let code = content.get(4..).and_then(<[u8]>::first_chunk);
                let outcome = of_code(code.copied());
                let body = place.end.min(place.start + 9)..place.end;
                return Some(Answer { outcome, body });
            }
            (Some(&OK), None) if command == PREPARE => {
                ends = Some(ends_of_prepared(content));
                body = place.start + 1..place.start + 5;
            }
            (Some(&OK), None) => ends = Some(0),
            (_, None) => ends = Some(2),
            (Some(&END), Some(left)) if content.len() <= MAX_END_BYTES => ends = Some(left - 1),
            _ if command != PREPARE => body = place,
            _ => {}
        }
        if ends == Some(0) {
            let outcome = Outcome::Success;
            return Some(Answer { outcome, body });
        }
    }
    None
}

/// Returns the number of packets that end descriptions of a prepared statement: one behind those of
/// its columns and one behind those of its parameters, if it has any.
fn ends_of_prepared(content: &[u8]) -> u8 {
    let has = |at| u8::from(content.get(at..at + 2).is_some_and(|count| count != [0, 0]));
    // Behind success and the statement's number.
    has(5) + has(7)
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

    #[test]
    fn an_answer_of_mysql_is_whole_at_its_last_packet() {
        const QUERY: u8 = 3;
        let end = b"\x05\0\0\x03\xfe\0\0\x02\0";
        let described = b"\x03\0\0\x02def";
        let prepared = b"\x0c\0\0\x01\0\x07\0\0\0\0\0\x01\0\0\0\0";
        let rows = b"\x01\0\0\x01\x01";
        let whole = |command, parts: &[&[u8]], expected, body: &[u8]| {
            let bytes = parts.concat();
            for cut in 0..bytes.len() {
                assert_eq!(over_mysql(command, &bytes[..cut]), None, "{cut}");
            }
            let answer = over_mysql(command, &bytes).unwrap();
            assert_eq!(answer.outcome, expected);
            assert_eq!(&bytes[answer.body], body);
        };
        let ok = b"\x07\0\0\x01\0\x01\0\x02\0\0\0";
        let row = b"\x04\0\0\x04\0\xfe\xff\xff";
        whole(QUERY, &[ok], Outcome::Success, b"");
        whole(
            QUERY,
            &[rows, described, end, row, end],
            Outcome::Success,
            b"\0\xfe\xff\xff",
        );
        whole(
            PREPARE,
            &[prepared, described, end],
            Outcome::Success,
            b"\x07\0\0\0",
        );
        let error = b"\x0f\0\0\x01\xff\x26\x04#23000double";
        whole(QUERY, &[error], Outcome::Failed(*b"23000"), b"double");
        let unknown = b"\x09\0\0\x01\xff\x26\x04#08007";
        whole(QUERY, &[unknown], Outcome::Unknown, b"");
    }
}
