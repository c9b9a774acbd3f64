//! The names of prepared statements that were replaced in a text, and their restoration in the
//! server's answers.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use bytes::{BufMut, BytesMut};

use crate::codec::answer;

/// The replaced names of a text.
#[derive(Clone, Debug, Default)]
pub(super) struct Renames {
    /// True if the text removes one of the session's statements.
    pub(super) removes: bool,
    /// Names at the server, and those of the session.
    names: BTreeMap<String, Box<str>>,
    /// The session's statements that the text removes.
    gone: BTreeSet<Box<str>>,
    /// Statements of the text that are answered otherwise, by their place in the text.
    pub(super) others: VecDeque<(usize, Completion)>,
    /// The number of complete statements of the text.
    complete: usize,
    pub(super) edits: Vec<Edit>,
}

/// The meaning of the completion of a statement that differs from the session's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Completion {
    /// Statement in place of DEALLOCATE of this statement of the session.
    Deallocates(Box<str>),
    /// Statement that is not in the session's text.
    Inserted,
}

/// A replaced part of a text, in characters of the session's own text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edit {
    pub(super) at: usize,
    pub(super) before: usize,
    pub(super) after: usize,
}

impl Renames {
    /// Returns the renames of a message that names one statement.
    pub(super) fn of(here: String, name: &[u8]) -> Self {
        let mut renames = Self::default();
        renames.note_name(here, &String::from_utf8_lossy(name));
        renames
    }

    /// Notes the name that a statement of the session has at the server.
    pub(super) fn note_name(&mut self, here: String, name: &str) {
        self.names.entry(here).or_insert_with(|| name.into());
    }

    /// Notes that a statement of the text removes this statement of the session.
    pub(super) fn note_removal(&mut self, nth: usize, name: &str) {
        self.removes = true;
        self.gone.insert(name.into());
        let removes = Completion::Deallocates(name.into());
        self.others.push_back((nth, removes));
    }

    /// Notes that a statement of the text is complete. Returns the meaning of that, if it is not
    /// the statement's own.
    pub(super) fn completed(&mut self) -> Option<Completion> {
        let nth = self.complete;
        self.complete += 1;
        let is_other = self.others.front().is_some_and(|(place, _)| *place == nth);
        let other = is_other.then(|| self.others.pop_front()).flatten();
        other.map(|(_, completion)| completion)
    }

    /// Returns true if the text has removed this statement of the session before.
    pub(super) fn is_gone(&self, name: &str) -> bool {
        self.gone.contains(name)
    }

    /// Writes the server's error with the session's names, and with the position in the session's
    /// text.
    pub(super) fn translate(&self, body: &[u8], out: &mut BytesMut) {
        answer::message(out, b'E', |out| {
            for field in body.split(|byte| *byte == 0) {
                let Some((code, value)) = field.split_first() else {
                    break;
                };
                out.put_u8(*code);
                let value = String::from_utf8_lossy(value);
                let value = match (code, value.parse()) {
                    (b'P', Ok(place)) => self.place(place).to_string(),
                    _ => self.names.iter().fold(value.into_owned(), |value, name| {
                        value.replace(&format!("\"{}\"", name.0), &format!("\"{}\"", name.1))
                    }),
                };
                answer::text(out, value.as_bytes());
            }
            out.put_u8(0);
        });
    }

    /// Returns the position in the session's own text, where characters count from 1.
    fn place(&self, place: usize) -> usize {
        let at = place.saturating_sub(1);
        let (mut added, mut removed) = (0, 0);
        for edit in &self.edits {
            let start = (edit.at + added).saturating_sub(removed);
            if at < start {
                break;
            }
            if at < start + edit.after {
                return edit.at + 1;
            }
            added += edit.after;
            removed += edit.before;
        }
        (at + removed).saturating_sub(added) + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_behind_a_replaced_name_are_those_of_the_own_text() {
        let edit = |at, before, after| Edit { at, before, after };
        let renames = Renames {
            // execute a (x); deallocate b; select y
            edits: vec![edit(8, 1, 11), edit(15, 12, 18)],
            ..Renames::default()
        };
        for (place, expected) in [
            (1, 1),
            (9, 9),
            (12, 9),
            (20, 10),
            (22, 12),
            (26, 16),
            (44, 28),
        ] {
            assert_eq!(renames.place(place), expected, "{place}");
        }
        let shorter = Renames {
            edits: vec![edit(8, 20, 5)],
            ..Renames::default()
        };
        assert_eq!(shorter.place(14), 29);
    }
}
