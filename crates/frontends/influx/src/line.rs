//! Reads line protocol: `measurement,tag=value field=1i,other="text" 1465839830100400200`.
//!
//! `Lines` reads one line after the other. A line that makes no sense is reported with its number,
//! and reading goes on behind it. Nothing here knows tables or columns.

use std::borrow::Cow;
use std::str;

use windrow_core::Value;
use windrow_core::value::is_number;

/// One line of a body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line<'b> {
    pub(crate) measurement: Cow<'b, str>,
    pub(crate) tags: Vec<(Cow<'b, str>, Cow<'b, str>)>,
    pub(crate) fields: Vec<(Cow<'b, str>, Value)>,
    /// The timestamp in the request's precision, if the line has one.
    pub(crate) timestamp: Option<i64>,
}

/// The lines of a body that hold a point, with their numbers.
#[derive(Debug)]
pub(crate) struct Lines<'b> {
    rest: &'b [u8],
    number: u64,
}

/// A line, or the reason why it cannot be read.
type ReadLine<'b> = Result<Line<'b>, String>;

impl<'b> Lines<'b> {
    pub(crate) fn new(body: &'b [u8]) -> Self {
        Self {
            // No line ends in a blank that means something.
            rest: body.trim_ascii_end(),
            number: 0,
        }
    }

    /// Returns the number of bytes that are not read yet.
    pub(crate) fn left(&self) -> usize {
        self.rest.len()
    }
}

impl<'b> Iterator for Lines<'b> {
    type Item = (u64, ReadLine<'b>);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let line_end = position(self.rest, |b| b == b'\n');
            let (line, _) = self.rest.split_at(line_end);
            let first = line.trim_ascii_start().first();
            if self.rest.is_empty() {
                return None;
            }
            self.number += 1;
            if first.is_none_or(|b| *b == b'#') {
                self.rest = self.rest.get(line_end + 1..).unwrap_or_default();
                continue;
            }
            let mut cursor = Cursor { rest: self.rest };
            let number = self.number;
            let read = cursor.line();
            // A text may hold line feeds, so only a whole line says where the next one begins.
            let used = match read {
                Ok(_) => self.rest.len() - cursor.rest.len(),
                Err(_) => line_end,
            };
            let (line, rest) = self.rest.split_at(used);
            self.number += line.iter().filter(|b| **b == b'\n').count() as u64;
            self.rest = rest.get(1..).unwrap_or_default();
            let read = read.map_err(|why| unable(line, why));
            return Some((number, read));
        }
    }
}

/// Characters of a line that an error shows.
const SHOWN_CHARS: usize = 60;

fn unable(line: &[u8], why: &str) -> String {
    let text = String::from_utf8_lossy(line);
    let shown: String = text.trim_end().chars().take(SHOWN_CHARS).collect();
    format!("unable to parse '{shown}': {why}")
}

/// Returns the place of the first such byte, or the length if there is none.
fn position(bytes: &[u8], is_wanted: impl Fn(u8) -> bool) -> usize {
    let found = bytes.iter().position(|b| is_wanted(*b));
    found.unwrap_or(bytes.len())
}

/// The bytes behind what was read of a line.
struct Cursor<'b> {
    rest: &'b [u8],
}

type Part<T> = Result<T, &'static str>;

impl<'b> Cursor<'b> {
    /// Reads a line up to its line feed.
    fn line(&mut self) -> Part<Line<'b>> {
        self.skip_blanks();
        let measurement = self.name(b", ", "missing measurement")?;
        let mut tags = Vec::new();
        while self.take(b',') {
            let key = self.name(b"=, ", "missing tag key")?;
            if !self.take(b'=') {
                return Err("missing tag value");
            }
            tags.push((key, self.name(b", =", "missing tag value")?));
        }
        self.skip_blanks();
        let mut fields = Vec::new();
        loop {
            let key = self.name(b"=, ", "missing fields")?;
            if !self.take(b'=') {
                return Err("missing field value");
            }
            fields.push((key, self.value()?));
            if !self.take(b',') {
                break;
            }
        }
        Ok(Line {
            measurement,
            tags,
            fields,
            timestamp: self.timestamp()?,
        })
    }

    fn skip_blanks(&mut self) {
        let end = position(self.rest, |b| b != b' ' && b != b'\t');
        self.rest = self.rest.get(end..).unwrap_or_default();
    }

    /// Reads one byte if it is this one.
    fn take(&mut self, wanted: u8) -> bool {
        match self.rest.split_first() {
            Some((first, rest)) if *first == wanted => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    fn split(&mut self, at: usize) -> &'b [u8] {
        let (part, rest) = self.rest.split_at(at.min(self.rest.len()));
        self.rest = rest;
        part
    }

    /// Reads a name, or a tag's value, up to one of these bytes or the end of the line. A backslash
    /// takes the meaning from a comma, an equals sign and a blank, and otherwise means itself.
    fn name(&mut self, ends: &[u8], missing: &'static str) -> Part<Cow<'b, str>> {
        let (mut at, mut has_escapes) = (0, false);
        while let Some(byte) = self.rest.get(at) {
            let next = self.rest.get(at + 1).copied();
            if *byte == b'\\' && next.is_some_and(is_escaped) {
                has_escapes = true;
                at += 2;
                continue;
            }
            if *byte == b'\n' || ends.contains(byte) {
                break;
            }
            at += 1;
        }
        let text = utf8(self.split(at))?;
        match (text, has_escapes) {
            ("", _) => Err(missing),
            (text, false) => Ok(text.into()),
            (text, true) => Ok(unescaped(text, is_escaped).into()),
        }
    }

    fn value(&mut self) -> Part<Value> {
        if self.take(b'"') {
            return self.text();
        }
        let end = position(self.rest, |b| {
            matches!(b, b',' | b' ' | b'\t' | b'\r' | b'\n')
        });
        let word = utf8(self.split(end))?;
        match word {
            "" => Err("missing field value"),
            "t" | "T" | "true" | "True" | "TRUE" => Ok(true.into()),
            "f" | "F" | "false" | "False" | "FALSE" => Ok(false.into()),
            _ => number(word).ok_or("invalid number"),
        }
    }

    /// Reads a text behind its opening quotation mark. A backslash takes the meaning from a
    /// quotation mark and a backslash.
    fn text(&mut self) -> Part<Value> {
        let (mut at, mut has_escapes) = (0, false);
        loop {
            match (self.rest.get(at), self.rest.get(at + 1)) {
                (None, _) => return Err("unbalanced quotes"),
                (Some(b'"'), _) => break,
                (Some(b'\\'), Some(b'"' | b'\\')) => {
                    has_escapes = true;
                    at += 2;
                }
                _ => at += 1,
            }
        }
        let text = utf8(self.split(at))?;
        self.take(b'"');
        let is_escaped = |byte| matches!(byte, b'"' | b'\\');
        Ok(match has_escapes {
            true => Value::text(unescaped(text, is_escaped)),
            false => Value::text(text),
        })
    }

    /// Reads what is left of the line: a timestamp, or nothing.
    fn timestamp(&mut self) -> Part<Option<i64>> {
        let end = position(self.rest, |b| b == b'\n');
        let rest = self.split(end);
        if rest.first().is_some_and(|b| !b.is_ascii_whitespace()) {
            return Err("invalid field format");
        }
        match utf8(rest.trim_ascii())? {
            "" => Ok(None),
            digits if digits.starts_with('+') => Err("bad timestamp"),
            digits => digits.parse().map(Some).map_err(|_| "bad timestamp"),
        }
    }
}

/// Returns true for the bytes of names that a backslash takes the meaning from.
fn is_escaped(byte: u8) -> bool {
    matches!(byte, b',' | b'=' | b' ')
}

fn unescaped(text: &str, is_escaped: impl Fn(u8) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        let next = chars.peek().and_then(|next| u8::try_from(*next).ok());
        match next {
            Some(byte) if char == '\\' && is_escaped(byte) => out.extend(chars.next()),
            _ => out.push(char),
        }
    }
    out
}

fn utf8(bytes: &[u8]) -> Part<&str> {
    str::from_utf8(bytes).map_err(|_| "invalid UTF-8")
}

/// Returns a whole number, or a floating-point number with its digits if JSON writes numbers in the
/// same way.
fn number(word: &str) -> Option<Value> {
    if let Some(digits) = word.strip_suffix('i') {
        let number = digits.parse().ok().map(Value::Int);
        return number.filter(|_| !digits.starts_with('+'));
    }
    if let Some(digits) = word.strip_suffix('u') {
        let number = digits
            .parse()
            .ok()
            .map(|n: u64| Value::number(&n.to_string()));
        return number.filter(|_| !digits.starts_with('+'));
    }
    if is_number(word.as_bytes()) {
        return Some(Value::number(word));
    }
    let is_digit = |b: u8| matches!(b, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E');
    let number: f64 = word.bytes().all(is_digit).then(|| word.parse().ok())??;
    number
        .is_finite()
        .then(|| Value::number(&number.to_string()))
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;
