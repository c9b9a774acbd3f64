//! Reads fields without quotes in a file with escapes.

use super::record::{EscapedField, FieldEnd, FieldPlace, Record};
use super::style::{Escapes, Style};

impl Record {
    /// Reads a field without quotes that may hold escapes.
    pub(super) fn escaped_bare(
        &mut self,
        text: &[u8],
        from: usize,
        (style, escapes): (Style, Escapes),
        last: bool,
        most: usize,
    ) -> FieldEnd {
        let begin = self.scratch.len();
        // The place after the last escape.
        let mut at = from;
        loop {
            let rest = text.get(at..).unwrap_or_default();
            let (delimiter, end) = (style.delimiter, style.line_end);
            let found = memchr::memchr3(delimiter, end, escapes.character(), rest);
            if found.is_none() && !last {
                return FieldEnd::Cut;
            }
            let sign = at + found.unwrap_or(rest.len());
            match text.get(sign) {
                Some(b) if *b == delimiter => {
                    self.push_bare(text, (from, sign), (begin, at), style, most);
                    return FieldEnd::Field(sign + 1);
                }
                Some(b) if *b != end => {
                    let plain = text.get(at..sign).unwrap_or_default();
                    self.stray |= memchr::memchr(style.other_end(), plain).is_some();
                    self.scratch.extend_from_slice(plain);
                    match self.take(text, sign, escapes, last) {
                        Some(next) => at = next,
                        None => return FieldEnd::Cut,
                    }
                }
                end => {
                    let next = sign + usize::from(end.is_some());
                    let to = style.without_cr(text, at, sign);
                    self.push_bare(text, (from, to), (begin, at), style, most);
                    self.finish(to, next);
                    return FieldEnd::Record;
                }
            }
        }
    }

    /// Decodes the escape at this place. Returns where the text continues; `None` if the text ends
    /// within the escape.
    pub(super) fn take(
        &mut self,
        text: &[u8],
        sign: usize,
        escapes: Escapes,
        last: bool,
    ) -> Option<usize> {
        /// The length of a backslash and the longest number after it.
        const LONGEST: usize = 4;
        let behind = text.get(sign + 1..).unwrap_or_default();
        if !last && behind.len() < LONGEST {
            return None;
        }
        Some(sign + 1 + escapes.take(behind, &mut self.scratch))
    }

    /// Adds a field without quotes. The scratch holds its text before `at`, from `begin` on.
    fn push_bare(
        &mut self,
        text: &[u8],
        raw: (usize, usize),
        (begin, at): (usize, usize),
        style: Style,
        most: usize,
    ) {
        let rest = text.get(at..raw.1).unwrap_or_default();
        self.stray |= memchr::memchr(style.other_end(), rest).is_some();
        if at == raw.0 {
            self.push(FieldPlace::Bare(raw.0, raw.1), most);
            return;
        }
        self.scratch.extend_from_slice(rest);
        self.escaped.push(EscapedField {
            raw,
            taken: (begin, self.scratch.len()),
        });
        self.push(FieldPlace::Escaped(self.escaped.len() - 1), most);
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::ScanEnd;
    use super::*;

    const COPY: Style = Style {
        delimiter: b'\t',
        quote: None,
        line_end: b'\n',
        escapes: Some(Escapes::Copy),
    };

    const LOAD_DATA: Style = Style {
        delimiter: b',',
        quote: Some(b'"'),
        line_end: b'\n',
        escapes: Some(Escapes::LoadData(b'\\')),
    };

    fn scanned(text: &str, style: Style) -> (Vec<String>, Record) {
        let mut record = Record::default();
        assert_eq!(
            record.scan(text.as_bytes(), style, 99, true),
            ScanEnd::Whole
        );
        let fields = record.pieces.iter().map(|piece| {
            let (from, to) = match *piece {
                FieldPlace::Bare(from, to) | FieldPlace::Quoted(from, to) => {
                    return text[from..to].to_owned();
                }
                FieldPlace::Patched(from, to) => (from, to),
                FieldPlace::Escaped(field) => record.escaped[field].taken,
            };
            String::from_utf8(record.scratch[from..to].to_vec()).unwrap()
        });
        (fields.collect(), record)
    }

    #[test]
    fn copys_text_format_is_read() {
        let (found, record) = scanned("a\\tb\t\\\\N\tc\\\nd\\\te\t\"x\\N\\x41\\101\r\nnext", COPY);
        assert_eq!(found, ["a\tb", "\\N", "c\nd\te", "\"xNAA"]);
        assert_eq!((record.lines, record.stray), (2, false));
        assert_eq!(record.escaped[1].raw, (5, 8));
        // An escaped carriage return before the line end is one of the value.
        assert_eq!(scanned("a\t\\\r\n", COPY).0, ["a", "\r"]);
        assert!(scanned("a\\tb\rc\td\n", COPY).1.stray);
    }

    #[test]
    fn load_datas_fields_are_read() {
        let text = "\"a \\\"b\\\", c\",x\\,y,\"d\"\"e\\\\\",\\N,5\" z\n";
        let (found, record) = scanned(text, LOAD_DATA);
        assert_eq!(found, ["a \"b\", c", "x,y", "d\"e\\", "N", "5\" z"]);
        assert_eq!(record.beyond, None);
        assert_eq!(scanned("\"a\"b,c\n", LOAD_DATA).1.beyond, Some(1));
    }

    #[test]
    fn every_cut_asks_for_more() {
        for (text, style) in [
            ("a\\tb\\\n\tc\\x41\\101\td\r\n", COPY),
            ("\"a \\\"b\",x\\,y,\"d\"\"e\"\r\n", LOAD_DATA),
        ] {
            let mut record = Record::default();
            for cut in 0..text.len() {
                let cut = &text.as_bytes()[..cut];
                assert_eq!(record.scan(cut, style, 9, false), ScanEnd::Cut, "{cut:?}");
            }
        }
    }
}
