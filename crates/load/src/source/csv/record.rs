//! One record of CSV in a piece of text, as PostgreSQL's COPY reads it: a quote may stand anywhere
//! in a field and switches quoting on and off, `""` within quotes is one quote. (`csv-core` does
//! not tell whether a field was quoted, which decides whether it can be NULL.)

use windrow_core::Rows;

/// The most columns of a record; the most that a database of those known can have.
pub(in crate::source) const MOST_COLUMNS: usize = 32_767;

/// The characters that mean something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Style {
    /// Between fields.
    pub(super) delimiter: u8,
    /// Around fields; none: a quote is a character as any other.
    pub(super) quote: Option<u8>,
    /// What ends a line: LF (behind a CR or not), or CR in files where it stands alone.
    pub(super) line_end: u8,
}

/// A field's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// Without quotes: from and to, in the record.
    Bare(usize, usize),
    /// What stands between a pair of quotes, which holds no other quote: from and to, in the
    /// record.
    Quoted(usize, usize),
    /// With its quotes taken out: from and to, in [`Record::scratch`].
    Patched(usize, usize),
}

/// How a scan ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scan {
    /// The record is whole.
    Whole,
    /// The text ends before the record does.
    Cut,
    /// The text ends, and with it the file, behind a quote that is not closed: its place.
    Open(usize),
}

/// What was found. Kept between records for its memory.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// The fields, as far as they are wanted.
    pub(super) pieces: Vec<Piece>,
    /// How many fields there are.
    pub(super) count: usize,
    /// The text of [`Piece::Patched`].
    pub(super) scratch: Vec<u8>,
    /// Where the record ends, without its line end.
    pub(super) end: usize,
    /// Where the next one begins.
    pub(super) next: usize,
    /// Lines that it takes.
    pub(super) lines: u64,
    /// A carriage return (or line feed, where lines end by the other) stands outside of quotes.
    pub(super) stray: bool,
}

/// Where a field ended.
enum Ended {
    /// At a delimiter; the next field begins here.
    Field(usize),
    /// At the record's end.
    Record,
    Cut,
    Open(usize),
}

impl Record {
    /// Gives back the memory of a record of great length.
    pub(super) fn release(&mut self) {
        if self.scratch.capacity() > Rows::KEPT_BYTES {
            self.scratch = Vec::new();
        }
    }

    /// Finds the record that begins the text, and its first `most` fields. `last`: nothing follows
    /// the text.
    pub(super) fn scan(&mut self, text: &[u8], style: Style, most: usize, last: bool) -> Scan {
        self.pieces.clear();
        self.scratch.clear();
        (self.count, self.lines, self.stray) = (0, 1, false);
        let (mut at, mut quoted) = (0, false);
        loop {
            let scratch = self.scratch.len();
            let ended = self.field(text, at, style, last, most);
            quoted |= self.scratch.len() > scratch
                || matches!(
                    self.pieces.last(),
                    Some(Piece::Quoted(..) | Piece::Patched(..))
                )
                || self.count > most;
            match ended {
                Ended::Field(next) => at = next,
                Ended::Record => break,
                Ended::Cut => return Scan::Cut,
                Ended::Open(quote) => return Scan::Open(quote),
            }
        }
        let record = text.get(..self.end).unwrap_or_default();
        if quoted && style.quote.is_some() {
            // Whatever line ends are in it stand between quotes.
            self.lines += memchr::memchr_iter(style.line_end, record).count() as u64;
        }
        self.stray |= self.has_stray(record, style);
        Scan::Whole
    }

    fn has_stray(&self, record: &[u8], style: Style) -> bool {
        let other = other_end(style.line_end);
        memchr::memchr(other, record).is_some()
            && self.pieces.iter().any(|piece| match *piece {
                Piece::Bare(from, to) => {
                    let field = record.get(from..to).unwrap_or_default();
                    memchr::memchr(other, field).is_some()
                }
                Piece::Quoted(..) | Piece::Patched(..) => false,
            })
    }

    /// Reads the field that begins at `at`.
    fn field(&mut self, text: &[u8], at: usize, style: Style, last: bool, most: usize) -> Ended {
        match style.quote {
            Some(quote) if text.get(at) == Some(&quote) => {
                let inside = text.get(at + 1..).unwrap_or_default();
                let Some(length) = memchr::memchr(quote, inside) else {
                    return if last { Ended::Open(at) } else { Ended::Cut };
                };
                let close = at + 1 + length;
                match self.behind(text, close + 1, style, last) {
                    Some(ended) => {
                        self.push(Piece::Quoted(at + 1, close), most);
                        ended
                    }
                    None => self.mixed(text, at, at, style, last, most),
                }
            }
            _ => self.bare(text, at, style, last, most),
        }
    }

    /// What stands behind a quote that closes, if it ends the field.
    fn behind(&mut self, text: &[u8], at: usize, style: Style, last: bool) -> Option<Ended> {
        match text.get(at) {
            None if !last => Some(Ended::Cut),
            None => {
                self.finish(at, at);
                Some(Ended::Record)
            }
            Some(b) if *b == style.delimiter => Some(Ended::Field(at + 1)),
            Some(b) if *b == style.line_end => {
                self.finish(at, at + 1);
                Some(Ended::Record)
            }
            Some(b'\r') if style.line_end == b'\n' => match text.get(at + 1) {
                Some(b'\n') => {
                    self.finish(at, at + 2);
                    Some(Ended::Record)
                }
                None if !last => Some(Ended::Cut),
                None => {
                    self.finish(at, at + 1);
                    Some(Ended::Record)
                }
                Some(_) => None,
            },
            Some(_) => None,
        }
    }

    /// A field that begins without a quote.
    fn bare(&mut self, text: &[u8], from: usize, style: Style, last: bool, most: usize) -> Ended {
        let quote = style.quote.unwrap_or(style.line_end);
        let rest = text.get(from..).unwrap_or_default();
        let Some(length) = memchr::memchr3(style.delimiter, style.line_end, quote, rest) else {
            if !last {
                return Ended::Cut;
            }
            let to = without_cr(text, from, text.len(), style);
            self.push(Piece::Bare(from, to), most);
            self.finish(to, text.len());
            return Ended::Record;
        };
        let at = from + length;
        match text.get(at) {
            Some(b) if *b == style.delimiter => {
                self.push(Piece::Bare(from, at), most);
                Ended::Field(at + 1)
            }
            Some(b) if *b == style.line_end => {
                let to = without_cr(text, from, at, style);
                self.push(Piece::Bare(from, to), most);
                self.finish(to, at + 1);
                Ended::Record
            }
            _ => self.mixed(text, from, at, style, last, most),
        }
    }

    /// A field with more in it than one quoted text: character by character. `at` is its first
    /// quote.
    fn mixed(
        &mut self,
        text: &[u8],
        from: usize,
        at: usize,
        style: Style,
        last: bool,
        most: usize,
    ) -> Ended {
        let begin = self.scratch.len();
        self.scratch
            .extend_from_slice(text.get(from..at).unwrap_or_default());
        let (mut at, mut opened) = (at, None);
        loop {
            let Some(&b) = text.get(at) else {
                match (last, opened) {
                    (false, _) => return Ended::Cut,
                    (true, Some(quote)) => return Ended::Open(quote),
                    (true, None) => {}
                }
                self.finish(at, at);
                break self.patched(begin, most, Ended::Record);
            };
            if Some(b) == style.quote {
                if opened.is_none() {
                    opened = Some(at);
                } else if at + 1 == text.len() && !last {
                    return Ended::Cut;
                } else if text.get(at + 1) == Some(&b) {
                    self.scratch.push(b);
                    at += 1;
                } else {
                    opened = None;
                }
                at += 1;
                continue;
            }
            if opened.is_none()
                && (b == style.delimiter || b == style.line_end || b == other_end(style.line_end))
            {
                match self.behind(text, at, style, last) {
                    Some(Ended::Cut) => return Ended::Cut,
                    Some(ended) => break self.patched(begin, most, ended),
                    None => self.stray = true,
                }
            }
            self.scratch.push(b);
            at += 1;
        }
    }

    fn patched(&mut self, begin: usize, most: usize, ended: Ended) -> Ended {
        self.push(Piece::Patched(begin, self.scratch.len()), most);
        ended
    }

    fn push(&mut self, piece: Piece, most: usize) {
        self.count += 1;
        if self.pieces.len() < most {
            self.pieces.push(piece);
        }
    }

    fn finish(&mut self, end: usize, next: usize) {
        (self.end, self.next) = (end, next);
    }
}

fn other_end(line_end: u8) -> u8 {
    if line_end == b'\n' { b'\r' } else { b'\n' }
}

/// Before a line feed, or at the file's end, a carriage return belongs to the line end.
fn without_cr(text: &[u8], from: usize, to: usize, style: Style) -> usize {
    match to.checked_sub(1) {
        Some(before)
            if before >= from && style.line_end == b'\n' && text.get(before) == Some(&b'\r') =>
        {
            before
        }
        _ => to,
    }
}

/// What ends the lines of a file, by the first that ends outside of quotes; `None`: none is there
/// yet.
pub(super) fn line_end(text: &[u8], quote: Option<u8>, last: bool) -> Option<u8> {
    let mut within = false;
    for at in memchr::memchr3_iter(b'\n', b'\r', quote.unwrap_or(b'\n'), text) {
        match text.get(at) {
            Some(b) if Some(*b) == quote => within = !within,
            _ if within => {}
            Some(b'\n') => return Some(b'\n'),
            _ => match text.get(at + 1) {
                Some(b'\n') => return Some(b'\n'),
                Some(_) => return Some(b'\r'),
                None => return last.then_some(b'\n'),
            },
        }
    }
    last.then_some(b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: Style = Style {
        delimiter: b',',
        quote: Some(b'"'),
        line_end: b'\n',
    };

    fn fields(text: &str, style: Style) -> (Vec<(char, String)>, Record) {
        let mut record = Record::default();
        assert_eq!(record.scan(text.as_bytes(), style, 99, true), Scan::Whole);
        let fields = record.pieces.iter().map(|piece| match *piece {
            Piece::Bare(from, to) => ('b', text[from..to].to_owned()),
            Piece::Quoted(from, to) => ('q', text[from..to].to_owned()),
            Piece::Patched(from, to) => {
                let bytes = record.scratch[from..to].to_vec();
                ('p', String::from_utf8(bytes).unwrap())
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
    fn a_quote_may_stand_anywhere_as_with_copy() {
        let (found, _) = fields("a\"b,c\"d,\"e\"f,\"g\"\"h\"\"\"\n", STYLE);
        assert_eq!(found, all(&[('p', "ab,cd"), ('p', "ef"), ('p', "g\"h\"")]));
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
        assert!(!fields("\"a\rb\"\n", STYLE).1.stray);
        for (text, end) in [
            ("a\r\nb\n", b'\n'),
            ("a\rb\r", b'\r'),
            ("\"\r\"\nb", b'\n'),
            ("a", b'\n'),
            ("a\r", b'\n'),
        ] {
            assert_eq!(
                line_end(text.as_bytes(), Some(b'"'), true),
                Some(end),
                "{text:?}"
            );
        }
        assert_eq!(line_end(b"a\r", Some(b'"'), false), None);
    }

    #[test]
    fn every_cut_of_a_record_asks_for_more_or_names_the_open_quote() {
        let text = "ab,\"c\"\"\nd\"x,\"e\",f\r\n";
        let mut record = Record::default();
        for cut in 0..text.len() {
            let cut = &text.as_bytes()[..cut];
            assert_eq!(record.scan(cut, STYLE, 9, false), Scan::Cut, "{cut:?}");
        }
        for cut in [4, 5, 9] {
            let cut = &text.as_bytes()[..cut];
            assert_eq!(record.scan(cut, STYLE, 9, true), Scan::Open(3), "{cut:?}");
        }
    }

    #[test]
    fn fields_past_the_most_are_only_counted() {
        let mut record = Record::default();
        record.scan(b"a,b,\"\n\",d\n", STYLE, 2, true);
        assert_eq!((record.count, record.pieces.len(), record.lines), (4, 2, 2));
    }
}
