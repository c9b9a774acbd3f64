//! Finds records that can be passed on without being split.

use crate::source::csv_text::style::Style;
use crate::source::portion::PortionLimits;

/// Consecutive records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stretch<'a> {
    pub(super) text: &'a str,
    pub(super) records: usize,
    pub(super) lines: u64,
    /// True if the next record cannot be passed on as it is.
    pub(super) blocked: bool,
}

/// Returns the whole records at the beginning of a text. None of them is an empty line, and none
/// contains what [`windrow_core::CsvText`] may not hold.
pub(super) fn stretch(text: &[u8], style: Style, quote: u8, most: PortionLimits) -> Stretch<'_> {
    let mut found = Stretch::default();
    let (mut within, mut begin, mut lines) = (false, 0, 0);
    // The place after the last quote.
    let mut behind = usize::MAX;
    for at in memchr::memchr2_iter(style.line_end, quote, text) {
        if text.get(at) == Some(&quote) {
            let is_usual = match within {
                true => closes(text, at + 1, style, quote),
                false => at == begin || at == behind || opens(text, at, style),
            };
            if !is_usual {
                found.blocked = true;
                break;
            }
            (within, behind) = (!within, at + 1);
            continue;
        }
        lines += 1;
        if within {
            continue;
        }
        let record = text.get(begin..at).unwrap_or_default();
        if record.is_empty() || record == b"\r" {
            found.blocked = true;
            break;
        }
        begin = at + 1;
        (found.records, found.lines) = (found.records + 1, lines);
        if found.records >= most.records || begin >= most.bytes {
            break;
        }
    }
    let all = text.get(..begin).unwrap_or_default();
    match std::str::from_utf8(all) {
        Ok(text) if is_harmless(all, style, quote) => Stretch { text, ..found },
        _ => Stretch {
            blocked: true,
            ..Stretch::default()
        },
    }
}

/// Returns true if a quote at this place begins a field.
fn opens(text: &[u8], at: usize, style: Style) -> bool {
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    before == Some(&style.delimiter)
}

/// Returns true if a field ends here after a quote, or the quote is one of two. If the text ends
/// here, more of the field may follow.
fn closes(text: &[u8], behind: usize, style: Style, quote: u8) -> bool {
    match text.get(behind) {
        None => true,
        Some(b'\r') => text.get(behind + 1).is_none_or(|b| *b == style.line_end),
        Some(b) => [style.delimiter, style.line_end, quote].contains(b),
    }
}

/// Returns true if nothing in the text could be read in another way. A backslash and a dot at the
/// beginning of a line end all rows, in earlier releases of PostgreSQL even within quotes. Other
/// backslashes may be intended as escapes.
fn is_harmless(text: &[u8], style: Style, quote: u8) -> bool {
    let escapes = |at: usize| match text.get(at + 1) {
        Some(b'.' | b'N') | None => true,
        Some(b) => *b == quote || style.delimiter == b'\t',
    };
    memchr::memchr(0, text).is_none() && !memchr::memchr_iter(b'\\', text).any(escapes)
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

    fn found(text: &[u8]) -> (&str, usize, u64, bool) {
        let most = PortionLimits {
            records: 3,
            bytes: 1000,
        };
        let found = stretch(text, STYLE, b'"', most);
        (found.text, found.records, found.lines, found.blocked)
    }

    #[test]
    fn whole_records_are_found() {
        assert_eq!(
            found(b"a,b\r\nc,\"d\n\"\ne"),
            ("a,b\r\nc,\"d\n\"\n", 2, 3, false)
        );
        assert_eq!(found(b"a\nb\nc\nd\n"), ("a\nb\nc\n", 3, 3, false));
        assert_eq!(found(b"a,\"b\nc\n"), ("", 0, 0, false));
        assert_eq!(found(b""), ("", 0, 0, false));
        let few = PortionLimits {
            records: 9,
            bytes: 3,
        };
        assert_eq!(stretch(b"a\nb\nc\n", STYLE, b'"', few).text, "a\nb\n");
    }

    #[test]
    fn what_needs_care_blocks_the_way() {
        assert_eq!(found(b"a\n\nb\n"), ("a\n", 1, 1, true));
        assert_eq!(found(b"a\n\r\nb\n"), ("a\n", 1, 1, true));
        for bad in [
            &b"a\nb\0\n"[..],
            b"a\n\xff\n",
            b"a\n\"\n\\.\n\"\n",
            b"\\.\n",
        ] {
            assert_eq!(found(bad), ("", 0, 0, true), "{bad:?}");
        }
        // COPY would read these in another way.
        for bad in [
            &b"a\n5\" x\n"[..],
            b"a\n\"b\"c\n",
            b"a\n\"b\" \n",
            b"a\n\"b\"\rc\n",
        ] {
            assert_eq!(found(bad), ("a\n", 1, 1, true), "{bad:?}");
        }
        for good in [
            &b"\"a\"\"b\",\"\"\n"[..],
            b"\"\"\"\",\"\"\"\"\"\"\r\n",
            b"a\\b,\"c\\\\d\"\n",
        ] {
            let text = std::str::from_utf8(good).unwrap();
            assert_eq!(found(good), (text, 1, 1, false), "{text:?}");
        }
        for doubtful in [&b"a\n\\N\n"[..], b"a\n\"b\\\"\"\"\n"] {
            assert_eq!(found(doubtful), ("", 0, 0, true), "{doubtful:?}");
        }
        // What is behind the last whole record is not looked at.
        assert_eq!(found(b"a\nb\0"), ("a\n", 1, 1, false));
    }
}
