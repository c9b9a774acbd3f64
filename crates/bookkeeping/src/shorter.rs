//! Other forms of a dead letter, for a table that does not take it as it is.
//!
//! A row may be longer than the database takes, or hold what its JSON may not; a name may have
//! characters that its encoding has no form of. Those who write dead letters try one form after the
//! other, so that a letter holds nothing up for ever.

use std::path::Path;

use windrow_core::{Fault, FaultClass, record};

use crate::dead_letter::DeadLetter;

/// Characters of a text that a short letter keeps.
const TEXT_CHARACTERS: usize = 1000;

/// Bytes of a letter's source that the table takes.
const SOURCE_BYTES: usize = 255;

/// Bytes of a row that a letter without an entry keeps at first, and then.
const ROW_BYTES: [usize; 2] = [64 * 1024, 1000];

/// The row of a letter that keeps none.
const NO_ROW: &str = "{}";

/// The end of the message of a letter whose row is not whole.
const CUT: &str = "; the database does not take the whole row, so it is cut";

/// Returns true if a letter was refused for its content: another form of it may be taken.
pub fn is_of_content(refusal: &Fault) -> bool {
    use FaultClass::{Check, TooLarge, Value};
    matches!(refusal.class, TooLarge | Value | Check)
}

impl DeadLetter {
    /// Returns the next shorter form of the letter: without its row, which its entry has as well,
    /// or with the beginning of its row. `None` if there is none.
    pub fn shorter(&self) -> Option<Self> {
        let row = match self.entry.is_some() || *self.row == *NO_ROW {
            true => NO_ROW.to_owned(),
            false => {
                let mut beginnings = ROW_BYTES.map(|most| record::beginning(&self.row, most));
                let shorter = beginnings.iter_mut().find(|row| **row != *self.row);
                shorter.map_or_else(|| NO_ROW.to_owned(), std::mem::take)
            }
        };
        let whole = self.message.strip_suffix(CUT);
        let mut message = plain(whole.unwrap_or(&self.message));
        if whole.is_some() || (self.entry.is_none() && *row != *self.row) {
            message.push_str(CUT);
        }
        let mut source = ascii(self.source.chars());
        source.truncate(SOURCE_BYTES);
        let shorter = Self {
            source: source.into(),
            destination: plain(&self.destination).into(),
            key: "[]".into(),
            row: row.into(),
            code: self.code.clone(),
            message: message.into(),
            constraint: self.constraint.as_deref().map(|name| plain(name).into()),
            entry: self.entry.clone(),
        };
        (shorter != *self).then_some(shorter)
    }

    /// Returns the letter without its entry, which is in a file: its message ends with the file's
    /// path.
    #[must_use]
    pub fn with_entry_in(&self, file: &Path) -> Self {
        let path = ascii(file.to_string_lossy().chars());
        Self {
            message: format!("{}; its entry is in the file {path}", self.message).into(),
            entry: None,
            ..self.clone()
        }
    }
}

/// Returns a text that every database takes, and not too long.
fn plain(text: &str) -> String {
    ascii(text.chars().take(TEXT_CHARACTERS))
}

/// Returns a text in which numbers stand for the characters outside of ASCII.
fn ascii(text: impl Iterator<Item = char>) -> String {
    let mut plain = String::new();
    for character in text {
        match character.is_ascii() {
            true => plain.push(character),
            false => plain.extend(character.escape_unicode()),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letter(row: &str, entry: Option<&[u8]>) -> DeadLetter {
        DeadLetter {
            source: "mqtt a".into(),
            destination: "größe 😀".into(),
            key: "[1]".into(),
            row: row.into(),
            code: "54000".into(),
            message: "too long".into(),
            constraint: Some("pk".into()),
            entry: entry.map(Into::into),
        }
    }

    #[test]
    fn a_letter_with_an_entry_needs_no_row() {
        let letter = letter("{\"a\":1}", Some(b"bytes"));
        let short = letter.shorter().unwrap();
        assert_eq!((&*short.key, &*short.row), ("[]", "{}"));
        assert_eq!(&*short.destination, r"gr\u{f6}\u{df}e \u{1f600}");
        assert_eq!((&short.entry, &*short.message), (&letter.entry, "too long"));
        assert_eq!(short.shorter(), None);
        let last = short.with_entry_in(Path::new("/ö/0-1.entry"));
        assert_eq!(last.entry, None);
        let message = r"too long; its entry is in the file /\u{f6}/0-1.entry";
        assert_eq!(&*last.message, message);
        assert_eq!(last.shorter(), None);
    }

    #[test]
    fn a_letter_without_an_entry_is_cut_until_nothing_is_left_of_its_row() {
        let row = format!("{{\"a\":\"{}\"}}", "ö".repeat(100_000));
        let mut form = DeadLetter {
            source: format!("mqtt {}", "ä".repeat(200)).into(),
            message: "x".repeat(1_001).into(),
            ..letter(&row, None)
        };
        let mut lengths = Vec::new();
        while let Some(shorter) = form.shorter() {
            form = shorter;
            lengths.push(form.row.len());
            assert!(form.row.is_ascii() && form.source.len() <= 255);
            assert!(form.message.ends_with(CUT) && form.message.len() < 1_100);
            assert!(lengths.len() < 10);
        }
        let [first, second, last] = lengths[..] else {
            unreachable!("{lengths:?}");
        };
        assert!((60_000..=64 * 1024).contains(&first), "{first}");
        assert!((900..=1_000).contains(&second), "{second}");
        assert_eq!((last, &*form.row), (2, "{}"));
    }
}
