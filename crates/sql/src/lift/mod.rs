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
//! - The name in `current_setting('..')` stays: which setting is read decides whether the statement
//!   can be joined.
//! - Nothing is lifted out of RETURNING, whose columns' types and names would change, nor out of
//!   the target of ON CONFLICT, where the server compares the text of expressions.
//!
//! Where the server does not take the parameter after all, it refuses the template when it is
//! described, and the client's own text goes to it.

mod lifter;
mod pass;
#[cfg(test)]
mod tests;
mod value;
mod word;

pub use lifter::{Lifted, Lifter};
use pass::Pass;

/// The longest text that literals are lifted out of, in bytes.
const MAX_LIFTED: usize = 1 << 20;

/// As [`Lifter::lift`], for a single text.
pub fn lift(text: &str, standard_conforming_strings: bool) -> Option<Lifter> {
    let mut lifter = Lifter::default();
    lifter.lift(text, standard_conforming_strings)?;
    Some(lifter)
}

impl Lifter {
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
}
