//! What was seen in columns that are made from their values: why one of them holds text. Pure.

use windrow_core::value::is_number;
use windrow_core::{Field, Rows};

/// Characters of a value that are told.
const TOLD: usize = 40;

/// Words that mean "no value" in many files, in lower case.
const NOTHING: [&str; 14] = [
    "na", "n/a", "#n/a", "nan", "null", "none", "nil", "\\n", "-", "--", "---", "?", ".", "(null)",
];

/// What was seen so far.
#[derive(Debug, Default)]
pub(super) struct Witness {
    columns: Vec<Seen>,
}

/// What was seen in one column: the lines of the first number, and of the first text with its beginning.
#[derive(Debug, Default)]
struct Seen {
    number: Option<u64>,
    text: Option<(u64, Box<str>)>,
}

/// A text that stands among numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Odd {
    /// The line (or record) that it stands on, from 1.
    pub line: u64,
    /// It, or its beginning.
    pub text: Box<str>,
    /// It is a word for "no value" in many files.
    pub is_nothing: bool,
}

impl Witness {
    /// Looks at a portion's rows.
    pub(super) fn see(&mut self, rows: &Rows) {
        self.columns.resize_with(rows.columns(), Seen::default);
        if self.columns.iter().all(Seen::is_full) {
            return;
        }
        let mut fields = rows.fields();
        for line in rows.lines() {
            for seen in &mut self.columns {
                if let Some(field) = fields.next() {
                    seen.see(*line, field);
                }
            }
        }
    }

    /// The text among the numbers of a column, by its place in the rows.
    pub(super) fn odd(&self, column: usize) -> Option<Odd> {
        let seen = self.columns.get(column)?;
        let (line, text) = seen.text.as_ref().filter(|_| seen.number.is_some())?;
        Some(Odd {
            line: *line,
            is_nothing: NOTHING.contains(&text.to_lowercase().as_str()),
            text: text.clone(),
        })
    }
}

impl Seen {
    fn is_full(&self) -> bool {
        self.number.is_some() && self.text.is_some()
    }

    fn see(&mut self, line: u64, field: Field<'_>) {
        match field {
            Field::Number(_) => _ = self.number.get_or_insert(line),
            Field::Plain(text) if is_number(text.as_bytes()) => {
                self.number.get_or_insert(line);
            }
            Field::Plain(text) | Field::Text(text) if self.text.is_none() => {
                self.text = Some((line, text.chars().take(TOLD).collect()));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_text_among_numbers_is_told() {
        let mut rows = Rows::new(3);
        rows.push(2, [Field::Plain("1"), Field::Plain("a"), Field::Null]);
        rows.push(
            3,
            [Field::Plain("NA"), Field::Text("5"), Field::Number("1")],
        );
        rows.push(9, [Field::Plain("b"), Field::Null, Field::Text("01")]);
        let mut witness = Witness::default();
        witness.see(&rows);
        let odd = |column| {
            let odd = witness.odd(column)?;
            Some((odd.line, odd.text.to_string(), odd.is_nothing))
        };
        assert_eq!(odd(0), Some((3, "NA".to_owned(), true)));
        assert_eq!(odd(1), None);
        assert_eq!(odd(2), Some((9, "01".to_owned(), false)));
        assert_eq!(odd(3), None);
    }
}
