//! Decodes strings in single quotes.

/// Returns true if the value of an `E'..'` string does not depend on an encoding. The server
/// refuses some strings whose value does.
pub(crate) fn is_plain_escape(literal: &str) -> bool {
    let end = literal.len().saturating_sub(1);
    literal
        .get(2..end)
        .is_some_and(|body| unquote(&mut Vec::new(), body, true).is_some())
}

/// Appends the body of a string in single quotes, in which quotes are doubled or, with `escapes`,
/// escaped. `None` if its value depends on an encoding.
pub(crate) fn unquote(values: &mut Vec<u8>, body: &str, escapes: bool) -> Option<()> {
    let mut rest = body.as_bytes();
    loop {
        let special = if escapes {
            memchr::memchr2(b'\'', b'\\', rest)
        } else {
            memchr::memchr(b'\'', rest)
        };
        let Some(at) = special else {
            values.extend_from_slice(rest);
            return Some(());
        };
        let (plain, behind) = rest.split_at_checked(at)?;
        values.extend_from_slice(plain);
        rest = match behind {
            [b'\'', b'\'', behind @ ..] => {
                values.push(b'\'');
                behind
            }
            [b'\\', behind @ ..] => escape(values, behind)?,
            _ => return None,
        };
    }
}

/// Appends one escape, given without its backslash, and returns the bytes after it. `None` for
/// characters outside of ASCII, because their value depends on the encodings of both sides.
fn escape<'a>(values: &mut Vec<u8>, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let (first, behind) = bytes.split_first()?;
    let (byte, behind) = match first {
        b'b' => (8, behind),
        b'f' => (12, behind),
        b'n' => (b'\n', behind),
        b'r' => (b'\r', behind),
        b't' => (b'\t', behind),
        b'0'..=b'7' => code(bytes, 8, 3)?,
        b'x' if behind.first().is_some_and(u8::is_ascii_hexdigit) => code(behind, 16, 2)?,
        // This means a vertical tab from PostgreSQL 16 on, and the letter before.
        b'v' => return None,
        b'u' | b'U' => return None,
        // A backslash before any other character is ignored. The character may be the first byte of
        // several.
        other => (*other, behind),
    };
    values.push(byte);
    Some(behind)
}

/// Returns a character by its number in ASCII, 1 to 127.
fn code(bytes: &[u8], radix: u32, most: usize) -> Option<(u8, &[u8])> {
    let mut value = 0_u32;
    let mut length = 0;
    while let Some(digit) = bytes
        .get(length)
        .and_then(|b| char::from(*b).to_digit(radix))
    {
        if length == most {
            break;
        }
        value = value * radix + digit;
        length += 1;
    }
    let byte = u8::try_from(value).ok().filter(|b| (1..128).contains(b))?;
    Some((byte, bytes.get(length..)?))
}
