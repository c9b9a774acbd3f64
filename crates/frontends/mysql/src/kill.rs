//! Replaces the number in `KILL`: the client knows the session by the number of its greeting, and
//! the server by another.

use windrow_mysqlwire::{CapabilityFlags, command};

/// The longest text that is searched, in bytes.
pub(crate) const MAX_KILL_BYTES: usize = 100;

/// Returns the place of the number in the content of a `COM_QUERY` or `COM_STMT_PREPARE` whose
/// first statement is a `KILL`.
pub(crate) fn number(content: &[u8], flags: CapabilityFlags) -> Option<(usize, usize)> {
    let has_attributes = content.first() == Some(&command::QUERY)
        && flags.contains(CapabilityFlags::CLIENT_QUERY_ATTRIBUTES);
    // One set of attributes, which is empty.
    let start = match (has_attributes, content.get(1..3)) {
        (true, Some([0, 1])) => 3,
        (true, _) => return None,
        (false, _) => 1,
    };
    let text = content.get(start..)?;
    let is_space = |byte: &u8| byte.is_ascii_whitespace();
    let word = text.iter().position(|byte| !is_space(byte))?;
    let (verb, rest) = text.get(word..)?.split_at_checked(4)?;
    if !verb.eq_ignore_ascii_case(b"KILL") || !rest.first().is_some_and(is_space) {
        return None;
    }
    let end = content
        .iter()
        .position(|byte| *byte == b';')
        .unwrap_or(content.len());
    let statement = content.get(..end)?.trim_ascii_end();
    let start = statement.iter().rposition(|byte| !byte.is_ascii_digit())? + 1;
    (start < statement.len()).then_some((start, statement.len()))
}

/// Returns the content with another number in this place, if `other` gives one, and the number that
/// stood there.
pub(crate) fn renumbered(
    content: &[u8],
    (start, end): (usize, usize),
    other: impl Fn(u64) -> Option<u32>,
) -> Option<(Vec<u8>, u64)> {
    let digits = str::from_utf8(content.get(start..end)?).ok()?;
    let id = digits.parse().ok()?;
    let other = other(id)?;
    let mut new = content.get(..start)?.to_vec();
    new.extend_from_slice(other.to_string().as_bytes());
    new.extend_from_slice(content.get(end..)?);
    Some((new, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renumber(content: &[u8], flags: CapabilityFlags) -> Option<String> {
        let place = number(content, flags)?;
        let new = renumbered(content, place, |id| (id == 1_073_741_824).then_some(7));
        new.map(|(new, _)| String::from_utf8(new).unwrap())
    }

    #[test]
    fn a_kill_gets_the_servers_number() {
        let none = CapabilityFlags::empty();
        for (text, expected) in [
            ("\x03KILL 1073741824", Some("\x03KILL 7")),
            ("\x03kill query 1073741824 ; ", Some("\x03kill query 7 ; ")),
            (
                "\x03KILL /*!50000 QUERY*/ 1073741824",
                Some("\x03KILL /*!50000 QUERY*/ 7"),
            ),
            (
                "\x03kill 1073741824; select 'kill';",
                Some("\x03kill 7; select 'kill';"),
            ),
            ("\x16KILL 1073741824", Some("\x16KILL 7")),
            ("\x03select 1; KILL 1073741824", None),
            ("\x03KILL ?", None),
            ("\x03KILL 12", None),
            ("\x03KILL USER x", None),
            ("\x03KILLER 1073741824", None),
            ("\x03SELECT 1073741824", None),
            ("\x03", None),
        ] {
            assert_eq!(
                renumber(text.as_bytes(), none).as_deref(),
                expected,
                "{text}"
            );
        }
        let attributes = CapabilityFlags::CLIENT_QUERY_ATTRIBUTES;
        let content = b"\x03\x00\x01KILL 1073741824";
        assert_eq!(
            renumber(content, attributes).as_deref(),
            Some("\x03\0\x01KILL 7")
        );
        assert_eq!(renumber(b"\x03\x01\x01KILL 1073741824", attributes), None);
        let prepared = renumber(b"\x16KILL 1073741824", attributes);
        assert_eq!(prepared.as_deref(), Some("\x16KILL 7"));
    }
}
