//! The characters of a file that have a meaning.

/// The characters of a file that have a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) struct Style {
    /// The character between fields.
    pub(in crate::source) delimiter: u8,
    /// The character around fields; `None` if a quote is an ordinary character.
    pub(in crate::source) quote: Option<u8>,
    /// The end of a line: LF (with or without a CR before it), or CR in files that use it alone.
    pub(in crate::source) line_end: u8,
    /// The escapes; `None` if only a quote within quotes can be escaped.
    pub(in crate::source) escapes: Option<Escapes>,
}

/// The form of escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) enum Escapes {
    /// PostgreSQL's COPY in its text format: a backslash.
    Copy,
    /// LOAD DATA of MySQL and MariaDB: `ESCAPED BY` this character.
    LoadData(u8),
}

impl Escapes {
    /// Returns the character that begins an escape.
    pub(in crate::source) fn character(self) -> u8 {
        match self {
            Self::Copy => b'\\',
            Self::LoadData(character) => character,
        }
    }

    /// Appends the character that an escape stands for. `behind` begins after the escape character.
    /// Returns the number of bytes of `behind` that belong to the escape, 0 if there are none.
    pub(in crate::source) fn take(self, behind: &[u8], out: &mut Vec<u8>) -> usize {
        let Some(&letter) = behind.first() else {
            return 0;
        };
        match (self, letter) {
            (_, b'b') => out.push(8),
            (_, b'n') => out.push(b'\n'),
            (_, b'r') => out.push(b'\r'),
            (_, b't') => out.push(b'\t'),
            (Self::Copy, b'f') => out.push(12),
            (Self::Copy, b'v') => out.push(11),
            (Self::Copy, b'0'..=b'7') => return number(behind, 0, 3, 8, out),
            (Self::Copy, b'x') => return number(behind, 1, 2, 16, out),
            (Self::LoadData(_), b'0') => out.push(0),
            (Self::LoadData(_), b'Z') => out.push(26),
            (_, other) => out.push(other),
        }
        1
    }
}

/// Appends the character with this number, which begins after `skip` bytes and has at most `most`
/// digits. A letter without digits stands for itself.
fn number(behind: &[u8], skip: usize, most: usize, radix: u32, out: &mut Vec<u8>) -> usize {
    let (mut value, mut digits) = (0_u32, 0);
    let found = behind.iter().skip(skip).take(most);
    for digit in found.map_while(|byte| char::from(*byte).to_digit(radix)) {
        (value, digits) = (value * radix + digit, digits + 1);
    }
    if digits == 0 {
        out.extend(behind.first());
        return 1;
    }
    // As for COPY, only the lowest eight bits of three octal digits count.
    out.extend(u8::try_from(value & 0xff));
    skip + digits
}

impl Style {
    /// Returns that character of CR and LF which does not end lines in this file.
    pub(in crate::source) fn other_end(self) -> u8 {
        if self.line_end == b'\n' { b'\r' } else { b'\n' }
    }

    /// Returns the end of a field that ends before `to`, without a carriage return that belongs to
    /// the line end after it.
    pub(in crate::source) fn without_cr(self, text: &[u8], from: usize, to: usize) -> usize {
        match to.checked_sub(1) {
            Some(before)
                if before >= from && self.line_end == b'\n' && text.get(before) == Some(&b'\r') =>
            {
                before
            }
            _ => to,
        }
    }

    /// Returns the end of the file's lines, by the first line that ends outside of quotes; `None`
    /// if no line ends yet.
    pub(in crate::source) fn find_line_end(self, text: &[u8], last: bool) -> Option<u8> {
        let quote = self.quote.unwrap_or(b'\n');
        let escape = self.escapes.map(Escapes::character);
        let (mut at, mut within) = (0, false);
        while let Some(found) = next_sign(text, at, quote, escape) {
            at = found + 1;
            match text.get(found) {
                Some(b) if Some(*b) == escape => at += 1,
                Some(b) if Some(*b) == self.quote && !within => {
                    let before = found.checked_sub(1).and_then(|before| text.get(before));
                    within = before.is_none_or(|before| *before == self.delimiter);
                }
                Some(b) if Some(*b) == self.quote => match text.get(at) {
                    Some(next) if next == b => at += 1,
                    _ => within = false,
                },
                _ if within => {}
                Some(b'\n') => return Some(b'\n'),
                Some(b'\r') => match text.get(at) {
                    Some(b'\n') => return Some(b'\n'),
                    Some(_) => return Some(b'\r'),
                    None => return last.then_some(b'\n'),
                },
                _ => {}
            }
        }
        last.then_some(b'\n')
    }
}

/// Returns the next character that matters when searching for a line end.
fn next_sign(text: &[u8], from: usize, quote: u8, escape: Option<u8>) -> Option<usize> {
    let rest = text.get(from..)?;
    let sign = memchr::memchr3(b'\n', b'\r', quote, rest);
    let until = sign.unwrap_or(rest.len());
    let before = rest.get(..until).unwrap_or_default();
    let escaped = escape.and_then(|escape| memchr::memchr(escape, before));
    escaped.or(sign).map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style {
        delimiter: b',',
        quote: Some(b'"'),
        line_end: b'\n',
        escapes: None,
    };

    fn ends(text: &str, style: Style) -> Option<u8> {
        style.find_line_end(text.as_bytes(), true)
    }

    #[test]
    fn the_first_end_outside_of_quotes_counts() {
        for (text, end) in [
            ("a\r\nb\n", b'\n'),
            ("a\rb\r", b'\r'),
            ("\"\r\"\nb", b'\n'),
            ("x,\"\r\"\"\r\"\nb", b'\n'),
            ("5\" x\rb", b'\r'),
            ("a", b'\n'),
            ("a\r", b'\n'),
        ] {
            assert_eq!(ends(text, STYLE), Some(end), "{text:?}");
        }
        assert_eq!(STYLE.find_line_end(b"a\r", false), None);
        let none = Style {
            quote: None,
            ..STYLE
        };
        assert_eq!(ends("\"\rb\n\"", none), Some(b'\r'));
        let escaped = Style {
            escapes: Some(Escapes::LoadData(b'\\')),
            ..STYLE
        };
        assert_eq!(ends("\"\\\"\r\"\na", escaped), Some(b'\n'));
        assert_eq!(ends("a\\\rb\n", escaped), Some(b'\n'));
    }

    #[test]
    fn escapes_stand_for_what_the_databases_say() {
        let taken = |escapes: Escapes, behind: &str| {
            let mut out = Vec::new();
            let bytes = escapes.take(behind.as_bytes(), &mut out);
            (bytes, out)
        };
        for (behind, bytes, text) in [
            ("n", 1, "\n"),
            ("\\n", 1, "\\"),
            ("x41", 3, "A"),
            ("x4g", 2, "\u{4}"),
            ("xg", 1, "x"),
            ("1012", 3, "A"),
            ("58", 1, "\u{5}"),
            ("v", 1, "\u{b}"),
            ("Z", 1, "Z"),
            ("", 0, ""),
        ] {
            let expected = (bytes, text.as_bytes().to_vec());
            assert_eq!(taken(Escapes::Copy, behind), expected, "{behind:?}");
        }
        let load_data = Escapes::LoadData(b'\\');
        assert_eq!(taken(load_data, "Z"), (1, vec![26]));
        assert_eq!(taken(load_data, "x41"), (1, vec![b'x']));
        assert_eq!(taken(load_data, "012"), (1, vec![0]));
    }
}
