//! Finds one record of CSV in a text. A field that begins with a quote ends with the next one, and
//! `""` within it is one quote. In any other field a quote is an ordinary character, as for Python,
//! pandas, DuckDB and LOAD DATA. (`csv-core` does not tell whether a field was quoted, which
//! decides whether it can be NULL.)

use windrow_core::Rows;

use super::style::Style;

/// The most columns of a record: the largest limit of all known databases.
pub(in crate::source) const MOST_COLUMNS: usize = 32_767;

/// A field's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) enum FieldPlace {
    /// A field without quotes: its range in the record.
    Bare(usize, usize),
    /// The text between a pair of quotes, without other quotes: its range in the record.
    Quoted(usize, usize),
    /// The decoded text of a quoted field with doubled quotes or escapes: its range in
    /// [`Record::scratch`].
    Patched(usize, usize),
    /// A field without quotes that has escapes: its number in [`Record::escaped`].
    Escaped(usize),
}

/// A field without quotes that has escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) struct EscapedField {
    /// The range of the field in the record.
    pub(in crate::source) raw: (usize, usize),
    /// The range of its decoded text in [`Record::scratch`].
    pub(in crate::source) taken: (usize, usize),
}

/// The end of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source) enum ScanEnd {
    /// The record is complete.
    Whole,
    /// The text ends before the record does.
    Cut,
    /// The text and the file end after a quote that is not closed, at this place.
    Open(usize),
}

/// The record that was found. It is reused so that its memory is.
#[derive(Debug, Default)]
pub(in crate::source) struct Record {
    /// The fields, up to the number that is asked for.
    pub(in crate::source) pieces: Vec<FieldPlace>,
    /// The number of fields.
    pub(in crate::source) count: usize,
    /// The text of [`FieldPlace::Patched`] and [`FieldPlace::Escaped`].
    pub(in crate::source) scratch: Vec<u8>,
    /// The fields of [`FieldPlace::Escaped`].
    pub(in crate::source) escaped: Vec<EscapedField>,
    /// The end of the record, without its line end.
    pub(in crate::source) end: usize,
    /// The beginning of the next record.
    pub(in crate::source) next: usize,
    /// The number of lines of the record.
    pub(in crate::source) lines: u64,
    /// True if there is a carriage return outside of quotes (or a line feed, if lines end with a
    /// carriage return).
    pub(in crate::source) stray: bool,
    /// The number, from 1, of the first field that continues after its closing quote.
    pub(in crate::source) beyond: Option<usize>,
}

/// The end of a field.
pub(in crate::source) enum FieldEnd {
    /// At a delimiter; the next field begins here.
    Field(usize),
    /// At the record's end.
    Record,
    Cut,
    Open(usize),
}

impl Record {
    /// Releases the memory of a very long record.
    pub(in crate::source) fn release(&mut self) {
        if self.scratch.capacity() > Rows::KEPT_BYTES {
            self.scratch = Vec::new();
        }
    }

    /// Finds the record at the beginning of the text, with its first `most` fields. `last` is true
    /// if nothing follows the text.
    pub(in crate::source) fn scan(
        &mut self,
        text: &[u8],
        style: Style,
        most: usize,
        last: bool,
    ) -> ScanEnd {
        self.pieces.clear();
        self.scratch.clear();
        self.escaped.clear();
        (self.count, self.lines, self.stray, self.beyond) = (0, 1, false, None);
        let (mut at, mut quoted) = (0, false);
        loop {
            let ended = match style.quote {
                Some(quote) if text.get(at) == Some(&quote) => {
                    self.quoted(text, at, (style, quote), last, most)
                }
                _ => self.bare(text, at, style, last, most),
            };
            quoted |=
                !matches!(self.pieces.last(), Some(FieldPlace::Bare(..))) || self.count > most;
            match ended {
                FieldEnd::Field(next) => at = next,
                FieldEnd::Record => break,
                FieldEnd::Cut => return ScanEnd::Cut,
                FieldEnd::Open(quote) => return ScanEnd::Open(quote),
            }
        }
        let record = text.get(..self.end).unwrap_or_default();
        if quoted && (style.quote.is_some() || style.escapes.is_some()) {
            // All line ends in it are quoted or escaped.
            self.lines += memchr::memchr_iter(style.line_end, record).count() as u64;
        }
        self.stray |= self.has_stray(record, style);
        ScanEnd::Whole
    }

    fn has_stray(&self, record: &[u8], style: Style) -> bool {
        let other = style.other_end();
        memchr::memchr(other, record).is_some()
            && self.pieces.iter().any(|piece| match *piece {
                FieldPlace::Bare(from, to) => {
                    let field = record.get(from..to).unwrap_or_default();
                    memchr::memchr(other, field).is_some()
                }
                FieldPlace::Quoted(..) | FieldPlace::Patched(..) | FieldPlace::Escaped(_) => false,
            })
    }

    /// Reads a field that begins with a quote, at `open`.
    fn quoted(
        &mut self,
        text: &[u8],
        open: usize,
        (style, quote): (Style, u8),
        last: bool,
        most: usize,
    ) -> FieldEnd {
        if style.escapes.is_none() {
            let inside = text.get(open + 1..).unwrap_or_default();
            let Some(length) = memchr::memchr(quote, inside) else {
                return if last {
                    FieldEnd::Open(open)
                } else {
                    FieldEnd::Cut
                };
            };
            let close = open + 1 + length;
            if let Some(ended) = self.behind(text, close + 1, style, last) {
                self.push(FieldPlace::Quoted(open + 1, close), most);
                return ended;
            }
        }
        self.patched(text, open, (style, quote), last, most)
    }

    /// Returns the end of the field if it follows a closing quote at this place.
    pub(in crate::source) fn behind(
        &mut self,
        text: &[u8],
        at: usize,
        style: Style,
        last: bool,
    ) -> Option<FieldEnd> {
        match text.get(at) {
            None if !last => Some(FieldEnd::Cut),
            None => {
                self.finish(at, at);
                Some(FieldEnd::Record)
            }
            Some(b) if *b == style.delimiter => Some(FieldEnd::Field(at + 1)),
            Some(b) if *b == style.line_end => {
                self.finish(at, at + 1);
                Some(FieldEnd::Record)
            }
            Some(b'\r') if style.line_end == b'\n' => match text.get(at + 1) {
                Some(b'\n') => {
                    self.finish(at, at + 2);
                    Some(FieldEnd::Record)
                }
                None if !last => Some(FieldEnd::Cut),
                None => {
                    self.finish(at, at + 1);
                    Some(FieldEnd::Record)
                }
                Some(_) => None,
            },
            Some(_) => None,
        }
    }

    /// Reads a field that begins without a quote.
    fn bare(
        &mut self,
        text: &[u8],
        from: usize,
        style: Style,
        last: bool,
        most: usize,
    ) -> FieldEnd {
        if let Some(escapes) = style.escapes {
            return self.escaped_bare(text, from, (style, escapes), last, most);
        }
        let rest = text.get(from..).unwrap_or_default();
        let Some(length) = memchr::memchr2(style.delimiter, style.line_end, rest) else {
            if !last {
                return FieldEnd::Cut;
            }
            let to = style.without_cr(text, from, text.len());
            self.push(FieldPlace::Bare(from, to), most);
            self.finish(to, text.len());
            return FieldEnd::Record;
        };
        let at = from + length;
        if text.get(at) == Some(&style.delimiter) {
            self.push(FieldPlace::Bare(from, at), most);
            return FieldEnd::Field(at + 1);
        }
        let to = style.without_cr(text, from, at);
        self.push(FieldPlace::Bare(from, to), most);
        self.finish(to, at + 1);
        FieldEnd::Record
    }

    /// Reads a field that begins with a quote, at `open`, and may hold quotes and escapes.
    fn patched(
        &mut self,
        text: &[u8],
        open: usize,
        (style, quote): (Style, u8),
        last: bool,
        most: usize,
    ) -> FieldEnd {
        let begin = self.scratch.len();
        let mut at = open + 1;
        loop {
            let inside = text.get(at..).unwrap_or_default();
            let found = match style.escapes {
                None => memchr::memchr(quote, inside),
                Some(escapes) => memchr::memchr2(quote, escapes.character(), inside),
            };
            let Some(length) = found else {
                return if last {
                    FieldEnd::Open(open)
                } else {
                    FieldEnd::Cut
                };
            };
            let (plain, behind) = inside.split_at(length);
            self.scratch.extend_from_slice(plain);
            let sign = at + length;
            if let Some(escapes) = style.escapes.filter(|_| behind.first() != Some(&quote)) {
                match self.take(text, sign, escapes, last) {
                    Some(next) => at = next,
                    None => return FieldEnd::Cut,
                }
            } else if behind.get(1) == Some(&quote) {
                self.scratch.push(quote);
                at = sign + 2;
            } else {
                let ended = match self.behind(text, sign + 1, style, last) {
                    Some(ended) => ended,
                    None => self.beyond(text, sign + 1, style, last),
                };
                if !matches!(ended, FieldEnd::Cut) {
                    self.push(FieldPlace::Patched(begin, self.scratch.len()), most);
                }
                return ended;
            }
        }
    }

    /// Finds the end of a field that continues after its closing quote. Such a record is invalid.
    /// It ends where it would end for Python's reader.
    pub(in crate::source) fn beyond(
        &mut self,
        text: &[u8],
        from: usize,
        style: Style,
        last: bool,
    ) -> FieldEnd {
        self.beyond.get_or_insert(self.count + 1);
        let rest = text.get(from..).unwrap_or_default();
        let Some(length) = memchr::memchr2(style.delimiter, style.line_end, rest) else {
            if !last {
                return FieldEnd::Cut;
            }
            self.finish(style.without_cr(text, from, text.len()), text.len());
            return FieldEnd::Record;
        };
        let at = from + length;
        if text.get(at) == Some(&style.delimiter) {
            return FieldEnd::Field(at + 1);
        }
        self.finish(style.without_cr(text, from, at), at + 1);
        FieldEnd::Record
    }

    pub(in crate::source) fn push(&mut self, piece: FieldPlace, most: usize) {
        self.count += 1;
        if self.pieces.len() < most {
            self.pieces.push(piece);
        }
    }

    pub(in crate::source) fn finish(&mut self, end: usize, next: usize) {
        (self.end, self.next) = (end, next);
    }
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

    fn fields(text: &str, style: Style) -> (Vec<(char, String)>, Record) {
        let mut record = Record::default();
        assert_eq!(
            record.scan(text.as_bytes(), style, 99, true),
            ScanEnd::Whole
        );
        let fields = record.pieces.iter().map(|piece| match *piece {
            FieldPlace::Bare(from, to) => ('b', text[from..to].to_owned()),
            FieldPlace::Quoted(from, to) => ('q', text[from..to].to_owned()),
            FieldPlace::Patched(from, to) => {
                let bytes = record.scratch[from..to].to_vec();
                ('p', String::from_utf8(bytes).unwrap())
            }
            FieldPlace::Escaped(field) => {
                let (from, to) = record.escaped[field].taken;
                let bytes = record.scratch[from..to].to_vec();
                ('e', String::from_utf8(bytes).unwrap())
            }
        });
        (fields.collect(), record)
    }

    fn all(pairs: &[(char, &str)]) -> Vec<(char, String)> {
        pairs.iter().map(|(k, t)| (*k, (*t).to_owned())).collect()
    }

    #[test]
    fn quoted_and_bare_fields_are_told_apart() {
        let (found, record) = fields("a,\"b,\n\",,\"\",\"c\"\"d\"\r\nnext", STYLE);
        let expected = [
            ('b', "a"),
            ('q', "b,\n"),
            ('b', ""),
            ('q', ""),
            ('p', "c\"d"),
        ];
        assert_eq!(found, all(&expected));
        assert_eq!((record.lines, record.stray), (2, false));
        assert_eq!((record.end, record.next), (18, 20));
    }

    #[test]
    fn a_quote_that_begins_no_field_is_a_character() {
        let (found, record) = fields("12\" by 3\", \"x\",a\"b\"\r\n", STYLE);
        assert_eq!(
            found,
            all(&[('b', "12\" by 3\""), ('b', " \"x\""), ('b', "a\"b\"")])
        );
        assert_eq!((record.beyond, record.stray), (None, false));
        let none = Style {
            quote: None,
            ..STYLE
        };
        assert_eq!(
            fields("5\" x,\"\n", none).0,
            all(&[('b', "5\" x"), ('b', "\"")])
        );
    }

    #[test]
    fn text_behind_a_closing_quote_is_a_fault_of_its_record_alone() {
        for (text, beyond) in [
            ("\"a\"b,c\nnext", 1),
            ("1,\"a\" \"b\"\nnext", 2),
            ("1,\"a\"\"b\" c\r\nnext", 2),
            ("\"a\"\rb\nnext", 1),
        ] {
            let (_, record) = fields(text, STYLE);
            assert_eq!(record.beyond, Some(beyond), "{text:?}");
            assert_eq!(&text[record.next..], "next", "{text:?}");
        }
    }

    #[test]
    fn a_carriage_return_by_itself_is_no_line_end_unless_all_are() {
        let (found, record) = fields("a\rb,c\r\r\nx", STYLE);
        assert_eq!(
            (found, record.stray),
            (all(&[('b', "a\rb"), ('b', "c\r")]), true)
        );
        let cr = Style {
            line_end: b'\r',
            ..STYLE
        };
        let (found, record) = fields("a,\"b\rc\nd\"\rx", cr);
        assert_eq!(found, all(&[('b', "a"), ('q', "b\rc\nd")]));
        assert_eq!((record.lines, record.stray, record.next), (2, false, 10));
        assert!(fields("a\nb\r", cr).1.stray);
        assert!(fields("a\"b\"\rc\n", STYLE).1.stray);
        assert!(!fields("\"a\"\"\rb\"\n", STYLE).1.stray);
        assert!(!fields("\"a\rb\"\n", STYLE).1.stray);
    }

    #[test]
    fn every_cut_of_a_record_asks_for_more_or_names_the_open_quote() {
        let text = "ab,\"c\"\"\nd\",\"e\",f\r\n";
        let mut record = Record::default();
        for cut in 0..text.len() {
            let cut = &text.as_bytes()[..cut];
            assert_eq!(record.scan(cut, STYLE, 9, false), ScanEnd::Cut, "{cut:?}");
        }
        for cut in [4, 5, 9] {
            let cut = &text.as_bytes()[..cut];
            assert_eq!(
                record.scan(cut, STYLE, 9, true),
                ScanEnd::Open(3),
                "{cut:?}"
            );
        }
    }

    #[test]
    fn fields_past_the_most_are_only_counted() {
        let mut record = Record::default();
        record.scan(b"a,b,\"\n\",d\n", STYLE, 2, true);
        assert_eq!((record.count, record.pieces.len(), record.lines), (4, 2, 2));
    }
}
