//! Literals of simple-protocol texts become parameters, so that texts that differ in their values
//! are one statement.
//!
//! # What a parameter in a literal's place means
//! - A string literal has no type until its place gives it one, and so has a parameter that is
//!   declared without a type: operators and functions are chosen, and the value is read by the
//!   type's input function, in the same way. `'abc'::varchar(2)` and `$1::varchar(2)` both read a
//!   varchar and then cut it. The exception is `interval` with fields (`'1'::interval hour`), which
//!   reads the fields with the literal: a string that is cast to interval stays.
//! - A number has the type of its spelling, and its parameter is declared with that type: int4,
//!   int8, or numeric with a point, an exponent or too many digits. A minus sign where an
//!   expression begins makes one constant with the number behind it, in the grammar and here (so
//!   -2147483648 is int4), unless a cast follows, which binds tighter.
//! - NULL, TRUE and FALSE become parameters only where they are a whole value of VALUES or SET. (In
//!   a condition, `transform_null_equals` gives `= NULL` a meaning of its own.)
//! - A literal is lifted only between tokens where any expression could stand: never behind a word
//!   that may be a type (`date '..'`), never as a type's modifier, never where the grammar asks for
//!   a constant.
//! - Nothing is lifted out of RETURNING, whose columns' types and names would change, nor out of
//!   the target of ON CONFLICT, where the server compares the text of expressions.
//!
//! Where the server does not take the parameter after all, it refuses the template when it is
//! described, and the client's own text goes to it.

mod pass;
#[cfg(test)]
mod tests;
mod value;
mod word;

use pass::Pass;

/// The longest text that literals are lifted out of, in bytes.
const MAX_LIFTED: usize = 1 << 20;
/// The most literals of one row.
const MAX_LITERALS: usize = 1_000;
/// The most literals of several rows: each number of rows is a template of its own.
const MAX_OF_SEVERAL_ROWS: usize = 32;
/// The deepest nesting of parentheses and brackets.
const MAX_DEPTH: u32 = 60;

/// A text whose literals are lifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifted<'a> {
    /// The text with `$n` in the places of the literals, without what comments stand before and
    /// behind the statement (they often differ from text to text); hints (`/*+ .. */`) stay.
    pub template: &'a str,
    /// The type of each literal (an OID); 0: the server decides.
    pub types: &'a [u32],
    /// The literals as a Bind message holds them, as text: for each a length (big-endian i32, -1:
    /// NULL) and that many bytes.
    pub values: &'a [u8],
    /// Literals are left in the template, so it may never come again.
    pub leftover: bool,
}

impl Lifted<'_> {
    /// The number of literals.
    pub fn count(&self) -> usize {
        self.types.len()
    }
}

/// Lifts the literals out of texts, one after the other, in the same buffers.
#[derive(Debug, Default)]
pub struct Lifter {
    template: String,
    types: Vec<u32>,
    values: Vec<u8>,
    leftover: bool,
}

/// Whether the value of an `E'..'` string depends on no encoding. The server refuses some of those
/// whose value does.
pub(crate) fn is_plain_escape(literal: &str) -> bool {
    value::append_string(&mut Vec::new(), crate::lex::Kind::Escape, literal, true).is_some()
}

/// As [`Lifter::lift`], for a single text.
pub fn lift(text: &str, standard_conforming_strings: bool) -> Option<Lifter> {
    let mut lifter = Lifter::default();
    lifter.lift(text, standard_conforming_strings)?;
    Some(lifter)
}

impl Lifter {
    /// What was lifted last. Meaningless behind a `None` of [`Lifter::lift`].
    pub fn lifted(&self) -> Lifted<'_> {
        Lifted {
            template: &self.template,
            types: &self.types,
            values: &self.values,
            leftover: self.leftover,
        }
    }

    /// Lifts the literals out of a single INSERT, UPDATE or DELETE. `None` for anything else, for
    /// texts that cannot be cut into tokens without doubt, and for those with so many literals
    /// that their template would hardly come again.
    ///
    /// `standard_conforming_strings`: that setting of the client's session.
    pub fn lift(&mut self, text: &str, standard_conforming_strings: bool) -> Option<Lifted<'_>> {
        self.clear();
        if text.len() > MAX_LIFTED {
            return None;
        }
        Pass::new(text, standard_conforming_strings, self)?.run()?;
        Some(self.lifted())
    }

    /// Forgets what was lifted last. The buffers do not keep the size of the largest text: one that
    /// waits for its next use would hold memory which nobody counts.
    pub fn clear(&mut self) {
        self.template.clear();
        self.types.clear();
        self.values.clear();
        self.leftover = false;
        self.template.shrink_to(4 * crate::MAX_TEXT);
        self.values.shrink_to(4 * crate::MAX_TEXT);
    }
}
