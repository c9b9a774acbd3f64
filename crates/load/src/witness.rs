//! Texts seen among numbers and times, which explain the types of created columns. Pure.

use windrow_core::value::is_number;
use windrow_core::{Field, Holds, Rows};

use super::blame::SHOWN_CHARS;

/// Words that mean NULL in many files, in lower case.
const NOTHING: [&str; 14] = [
    "na", "n/a", "#n/a", "nan", "null", "none", "nil", "\\n", "-", "--", "---", "?", ".", "(null)",
];

/// The values seen so far, by column.
#[derive(Debug, Default)]
pub(super) struct Witness {
    columns: Vec<ColumnWitness>,
}

/// The values seen in one column: if there were numbers and times, and the line of the first other
/// text with its beginning.
#[derive(Debug, Default)]
struct ColumnWitness {
    number: bool,
    time: bool,
    text: Option<(u64, Box<str>)>,
}

/// A text among numbers or times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OddText {
    /// The other values: `numbers`, `dates and times`.
    pub among: &'static str,
    /// The line (or record) of the text, from 1.
    pub line: u64,
    /// The text, or its beginning.
    pub text: Box<str>,
    /// True if the text means NULL in many files.
    pub is_nothing: bool,
}

impl Witness {
    /// Notes the values of a portion's rows.
    pub(super) fn see(&mut self, rows: &Rows) {
        self.columns
            .resize_with(rows.columns(), ColumnWitness::default);
        if self.columns.iter().all(ColumnWitness::is_full) {
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

    /// Returns the text among the numbers or times of a column, by its place in the rows.
    pub(super) fn odd(&self, column: usize) -> Option<OddText> {
        let seen = self.columns.get(column)?;
        let (line, text) = seen.text.as_ref()?;
        Some(OddText {
            among: match (seen.number, seen.time) {
                (true, _) => "numbers",
                (false, true) => "dates and times",
                (false, false) => return None,
            },
            line: *line,
            is_nothing: NOTHING.contains(&text.to_lowercase().as_str()),
            text: text.clone(),
        })
    }
}

impl ColumnWitness {
    fn is_full(&self) -> bool {
        self.number && self.text.is_some()
    }

    fn see(&mut self, line: u64, field: Field<'_>) {
        match field {
            Field::Number(_) => self.number = true,
            Field::Plain(text) if is_number(text.as_bytes()) => self.number = true,
            Field::Plain(text) | Field::Text(text) if Holds::time(text).is_some() => {
                self.time = true;
            }
            Field::Plain(text) | Field::Text(text) if self.text.is_none() => {
                self.text = Some((line, text.chars().take(SHOWN_CHARS).collect()));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_text_among_numbers_is_found() {
        let mut rows = Rows::new(3);
        rows.push(2, [Field::Plain("1"), Field::Plain("a"), Field::Null]);
        rows.push(
            3,
            [Field::Plain("NA"), Field::Text("5"), Field::Number("1")],
        );
        rows.push(9, [Field::Plain("b"), Field::Null, Field::Text("01")]);
        let mut days = Rows::new(3);
        days.push(10, [Field::Null, Field::Text("2024-01-05"), Field::Null]);
        let mut witness = Witness::default();
        witness.see(&rows);
        witness.see(&days);
        let odd = |column| {
            let odd = witness.odd(column)?;
            Some((odd.among, odd.line, odd.text.to_string(), odd.is_nothing))
        };
        assert_eq!(odd(0), Some(("numbers", 3, "NA".to_owned(), true)));
        assert_eq!(odd(1), Some(("dates and times", 2, "a".to_owned(), false)));
        assert_eq!(odd(2), Some(("numbers", 9, "01".to_owned(), false)));
        assert_eq!(odd(3), None);
    }
}
