//! Backslashes that look like escapes in a file for which no option says what they are.

use crate::source::csv_text::record::{FieldPlace, Record, ScanEnd};
use crate::source::csv_text::splitter::Splitter;
use crate::source::csv_text::style::{Escapes, Style};

/// Refuses a record that is valid with backslashes as plain characters, but would be another record
/// with backslashes as escapes. Few records contain a backslash at all.
///
/// # Errors
/// The reason, with the option that decides.
pub(super) fn check(found: &Record, raw: &[u8], splitter: &Splitter) -> Result<(), String> {
    if memchr::memchr(b'\\', raw).is_none() {
        return Ok(());
    }
    if has_null(found, raw) && !splitter.nulls.iter().any(|null| **null == *"\\N") {
        return Err(
            "has the field \\N, which COPY's text format (--format text) and files of MySQL (--escape '\\') have for no value; \
             if the rest of the file has no escapes, say --null '\\N', and --escape none if these are two letters"
                .into(),
        );
    }
    if is_another(raw, splitter) {
        return Err(
            "can be read in two ways: a backslash before a quote makes it a part of the field in a file with escapes \
             (--escape '\\'), and is a character of its own in one without (--escape none)"
                .into(),
        );
    }
    Ok(())
}

/// Returns true if a field without quotes is `\N`.
fn has_null(found: &Record, raw: &[u8]) -> bool {
    memchr::memmem::find(raw, b"\\N").is_some()
        && found.pieces.iter().any(|piece| match *piece {
            FieldPlace::Bare(from, to) => raw.get(from..to) == Some(b"\\N"),
            FieldPlace::Quoted(..) | FieldPlace::Patched(..) | FieldPlace::Escaped(_) => false,
        })
}

/// Returns true if the record is valid with escapes too.
fn is_another(raw: &[u8], splitter: &Splitter) -> bool {
    let style = Style {
        escapes: Some(Escapes::LoadData(b'\\')),
        ..splitter.style
    };
    if !has_escaped_quote(raw, style.quote) {
        return false;
    }
    let mut other = Record::default();
    let most = splitter.columns.unwrap_or_default();
    let ended = other.scan(raw, style, most, true);
    ended == ScanEnd::Whole && other.beyond.is_none() && splitter.columns == Some(other.count)
}

fn has_escaped_quote(raw: &[u8], quote: Option<u8>) -> bool {
    quote.is_some_and(|quote| memchr::memmem::find(raw, &[b'\\', quote]).is_some())
}

/// Returns advice for a record that cannot be read and contains a possible escape.
pub(super) fn hint(raw: &[u8], style: Style) -> &'static str {
    let escaped = |b: u8| memchr::memmem::find(raw, &[b'\\', b]).is_some();
    let is_escaped = style.quote.is_some_and(escaped) || escaped(style.delimiter);
    match is_escaped || raw.ends_with(b"\\") {
        true => {
            "; if a backslash takes the meaning from the character behind it, say --escape '\\'"
        }
        false => "",
    }
}

/// Backslashes in the fields of a tab-separated file.
#[derive(Debug, Default)]
pub(super) struct Backslashes {
    /// The line of the first record with a backslash that COPY's text format would contain.
    escaped: Option<u64>,
    /// True if a record has a backslash that COPY's text format would not contain.
    others: bool,
}

impl Backslashes {
    /// Notes the backslashes of a record that was read without escapes.
    pub(super) fn see(&mut self, raw: &[u8], line: u64) {
        for at in memchr::memchr_iter(b'\\', raw) {
            match raw.get(at + 1) {
                Some(b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'\\') => {
                    self.escaped.get_or_insert(line);
                }
                _ => self.others = true,
            }
        }
    }

    /// Returns the line of the first record, if the file seems to be in COPY's text format.
    pub(super) fn line(&self) -> Option<u64> {
        self.escaped.filter(|_| !self.others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str, columns: usize) -> Result<(), String> {
        let splitter = Splitter::sample(columns);
        let mut found = Record::default();
        let ended = found.scan(text.as_bytes(), splitter.style, columns, true);
        assert_eq!((ended, found.count), (ScanEnd::Whole, columns), "{text}");
        check(&found, &text.as_bytes()[..found.end], &splitter)
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        for (text, columns) in [
            ("1,\\N", 2),
            ("\\N,x", 2),
            ("\"x\\\"\",5\n7,\",9\n", 2),
            ("5\\\" x,y", 2),
        ] {
            assert!(judged(text, columns).is_err(), "{text}");
        }
    }

    #[test]
    fn what_can_be_read_in_one_way_is_taken() {
        for (text, columns) in [
            ("C:\\New\\table,1", 2),
            ("\"C:\\dir\\\",5", 2),
            ("1,\"\\N\"", 2),
            ("a\\N,x", 2),
            ("\"{\"\"a\"\":\"\"he \\\"\"hi\\\"\"\"\"}\",1", 2),
        ] {
            assert_eq!(judged(text, columns), Ok(()), "{text}");
        }
    }

    #[test]
    fn a_file_of_windows_paths_is_none_of_copy() {
        let mut seen = Backslashes::default();
        seen.see(b"a\tb\\tc", 3);
        assert_eq!(seen.line(), Some(3));
        seen.see(b"C:\\temp\\Users", 4);
        assert_eq!(seen.line(), None);
    }
}
