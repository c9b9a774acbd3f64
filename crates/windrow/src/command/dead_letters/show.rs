//! Dead letters as text and as JSON.

use std::fmt::Write;

use serde_json::json;
use terminal_size::terminal_size;
use windrow_bookkeeping::KeptLetter;
use windrow_spool::codec::decode_unit;

/// Lines of a list.
pub(super) struct Listing {
    /// The length at which a line is cut: the width of the terminal.
    width: Option<usize>,
    /// True once the names of the columns were written.
    begun: bool,
}

/// The widths of the columns, except for the last.
const WIDTHS: [usize; 4] = [6, 24, 20, 5];

impl Listing {
    /// Makes a list whose lines are cut to the width of a terminal, if it is shown there.
    pub(super) fn new(on_terminal: bool) -> Self {
        let width = || terminal_size().map(|(width, _)| usize::from(width.0));
        Self {
            width: on_terminal.then(width).flatten(),
            begun: false,
        }
    }

    pub(super) fn lines(&mut self, letters: &[KeptLetter]) -> String {
        let mut text = String::new();
        if !std::mem::replace(&mut self.begun, true) {
            self.line(&mut text, ["ID", "WHEN", "DESTINATION", "CODE", "MESSAGE"]);
        }
        for kept in letters {
            let (id, letter) = (kept.id.to_string(), &kept.letter);
            let cells = [
                &*id,
                &*kept.rejected_at,
                &*letter.destination,
                &*letter.code,
                &*letter.message,
            ];
            self.line(&mut text, cells);
        }
        text
    }

    fn line(&self, text: &mut String, [id, when, destination, code, message]: [&str; 5]) {
        let [a, b, c, d] = WIDTHS;
        let line = format!("{id:>a$}  {when:<b$}  {destination:<c$}  {code:<d$}  {message}");
        // A message of several lines, or with control characters, must stay one line.
        let plain = line.chars().map(|c| if c.is_control() { ' ' } else { c });
        match self.width {
            Some(width) => text.extend(plain.take(width)),
            None => text.extend(plain),
        }
        text.push('\n');
    }
}

/// Returns everything that is kept of a letter, one line each.
pub(super) fn all(kept: &KeptLetter) -> String {
    let letter = &kept.letter;
    let id = kept.id.to_string();
    let entry = letter.entry.as_deref().map(entry);
    let fields = [
        ("id", Some(&*id)),
        ("rejected_at", Some(&*kept.rejected_at)),
        ("source", Some(&*letter.source)),
        ("destination", Some(&*letter.destination)),
        ("key", Some(&*letter.key)),
        ("row", Some(&*letter.row)),
        ("code", Some(&*letter.code)),
        ("message", Some(&*letter.message)),
        ("constraint", letter.constraint.as_deref()),
        ("entry", entry.as_deref()),
    ];
    let mut text = String::new();
    for (name, value) in fields {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            writeln!(text, "{name:<12} {value}").ok();
        }
    }
    text
}

/// Describes the bytes of an entry.
fn entry(bytes: &[u8]) -> String {
    match decode_unit(bytes) {
        Ok(writes) => format!("{} bytes, {} writes", bytes.len(), writes.len()),
        Err(unreadable) => format!("{} bytes: {unreadable}", bytes.len()),
    }
}

/// Returns a letter as a JSON object, in a line.
pub(super) fn json(kept: &KeptLetter) -> String {
    let letter = &kept.letter;
    let nested = |text: &str| {
        let read = serde_json::from_str::<&serde_json::value::RawValue>(text);
        read.map_or_else(|_| json!(text).to_string(), |raw| raw.get().to_owned())
    };
    let text = |text: &str| json!(text).to_string();
    let maybe = |part: Option<&str>| part.map_or_else(|| "null".to_owned(), text);
    let entry = letter.entry.as_deref().map(entry);
    format!(
        r#"{{"id":{},"rejected_at":{},"source":{},"destination":{},"key":{},"row":{},"code":{},"message":{},"constraint":{},"entry":{}}}"#,
        kept.id,
        text(&kept.rejected_at),
        text(&letter.source),
        text(&letter.destination),
        nested(&letter.key),
        nested(&letter.row),
        text(&letter.code),
        text(&letter.message),
        maybe(letter.constraint.as_deref()),
        maybe(entry.as_deref()),
    ) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use windrow_bookkeeping::DeadLetter;

    fn kept() -> KeptLetter {
        KeptLetter {
            id: 7,
            rejected_at: "2026-01-02T03:04:05Z".into(),
            letter: DeadLetter {
                source: "pending".into(),
                destination: "final".into(),
                key: "[1]".into(),
                row: r#"{"id": 1, "n": 1.50}"#.into(),
                code: "23514".into(),
                message: "first line\nsecond line".into(),
                constraint: Some("positive".into()),
                entry: None,
            },
        }
    }

    #[test]
    fn a_list_has_a_line_for_each() {
        let mut listing = Listing {
            width: Some(75),
            begun: false,
        };
        let text = listing.lines(&[kept()]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].contains("DESTINATION") && lines[1].ends_with("  first line s"));
        assert!(listing.lines(&[kept()]).lines().count() == 1, "one heading");
    }

    #[test]
    fn json_keeps_the_digits_of_the_row() {
        let text = json(&kept());
        assert!(text.contains(r#""row":{"id": 1, "n": 1.50}"#), "{text}");
        assert!(serde_json::from_str::<serde_json::Value>(&text).is_ok());
    }

    #[test]
    fn all_that_is_kept_is_shown() {
        let text = all(&kept());
        assert!(text.contains("constraint   positive") && !text.contains("entry"));
    }
}
