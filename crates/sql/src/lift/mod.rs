//! Replaces literals by parameters and leaves comments out, so that texts that differ in their
//! values are one statement. This applies to texts of the simple protocol, and to texts that a
//! client prepares. The parameters of the latter keep their numbers, and those of their literals
//! have the numbers after them.
//!
//! # What a parameter in a literal's place means
//! - A string literal has no type until its place gives it one, and so has a parameter that is
//!   declared without a type: operators and functions are chosen, and the value is read by the
//!   type's input function, in the same way. `'abc'::varchar(2)` and `$1::varchar(2)` both read a
//!   varchar and then cut it. The exception is `interval` with fields (`'1'::interval hour`), which
//!   reads the fields with the literal: a string that is cast to interval stays.
//! - A number has the type of its spelling, and its parameter is declared with that type: int4,
//!   int8, or numeric with a point, an exponent or too many digits. A minus sign where an
//!   expression begins makes one constant with the number after it, in the grammar and here (so
//!   -2147483648 is int4), unless a cast follows, which binds tighter.
//! - NULL, TRUE and FALSE become parameters only where they are a whole value of VALUES or SET. (In
//!   a condition, `transform_null_equals` gives `= NULL` a meaning of its own.)
//! - A literal is lifted only between tokens where any expression is possible: never after a word
//!   that may be a type (`date '..'`), never as a type's modifier, never where the grammar requires
//!   a constant.
//! - The name in `current_setting('..')` stays: which setting is read decides whether the statement
//!   can be joined.
//! - Nothing is lifted out of RETURNING, whose columns' types and names would change, nor out of
//!   the target of ON CONFLICT, where the server compares the text of expressions.
//!
//! If the server does not accept the parameter in a place, it refuses the template when it is
//! described. Then the client's own text is sent to it.

mod lifter;
mod pass;
#[cfg(test)]
mod tests;
mod value;
mod word;

pub use lifter::{Lifted, Lifter};
use pass::Pass;

use crate::lex::{Lexer, TokenKind};
use crate::text::Text;

/// The longest text that literals are lifted out of, in bytes.
const MAX_LIFTED: usize = 1 << 20;

/// The most parameters of one statement.
const MAX_PARAMETERS: usize = u16::MAX as usize;

/// Returns the highest number after a dollar sign, anywhere in the text.
fn highest_number(text: &str) -> usize {
    let numbers = memchr::memchr_iter(b'$', text.as_bytes()).filter_map(|at| {
        let rest = text.get(at + 1..)?;
        let end = rest.find(|c: char| !c.is_ascii_digit());
        rest.get(..end.unwrap_or(rest.len()))?.parse().ok()
    });
    numbers
        .filter(|n| *n <= MAX_PARAMETERS)
        .max()
        .unwrap_or_default()
}

/// Returns the highest number of a parameter in a text, 0 if it has none; `None` if it cannot be
/// read.
pub fn highest_parameter(text: &str, standard_conforming_strings: bool) -> Option<usize> {
    Text::read(text, |text| highest(text, standard_conforming_strings))
}

fn highest(text: Text<'_>, standard: bool) -> Option<usize> {
    let mut lexer = Lexer::new(&text, standard).ok()?;
    let mut highest = 0;
    loop {
        let token = lexer.token().ok()?;
        match token.kind {
            TokenKind::End => return Some(highest),
            TokenKind::Odd => return None,
            TokenKind::Parameter => {
                let number = text.get(token.start + 1..token.end)?.parse().ok()?;
                highest = highest.max(number);
            }
            _ => {}
        }
    }
}

/// Does what [`Lifter::lift`] does, for a single text.
pub fn lift(text: &str, standard_conforming_strings: bool) -> Option<Lifter> {
    let mut lifter = Lifter::default();
    lifter.lift(text, standard_conforming_strings)?;
    Some(lifter)
}

impl Lifter {
    /// Lifts the literals out of a single INSERT, UPDATE or DELETE. `None` for anything else, for
    /// texts whose tokens are uncertain, and for those with so many literals that their template
    /// would hardly occur again.
    ///
    /// `standard_conforming_strings` is that setting of the client's session.
    pub fn lift(&mut self, text: &str, standard_conforming_strings: bool) -> Option<Lifted<'_>> {
        let highest = Text::read(text, |text| self.pass(text, standard_conforming_strings, 0))?;
        (highest == 0).then(|| self.lifted())
    }

    /// Lifts as [`Lifter::lift`] does, out of a text that a client prepares, which may have
    /// parameters of its own. `named` is the number of parameter types that the client names.
    pub fn lift_prepared(
        &mut self,
        text: &str,
        named: usize,
        standard_conforming_strings: bool,
    ) -> Option<Lifted<'_>> {
        let own = Text::read(text, |text| {
            self.pass_prepared(text, named, standard_conforming_strings)
        })?;
        (own + self.types.len() <= MAX_PARAMETERS).then(|| self.lifted())
    }

    /// Lifts literals behind the client's own parameters. Returns the number of those.
    fn pass_prepared(&mut self, text: Text<'_>, named: usize, standard: bool) -> Option<usize> {
        let guess = named.max(highest_number(&text));
        let own = named.max(self.pass(text, standard, guess)?);
        // What looks like a parameter may stand in a string.
        let is_own = own == guess || own == named.max(self.pass(text, standard, own)?);
        is_own.then_some(own)
    }

    /// Lifts literals behind the first `own` parameters. Returns the highest number of a parameter
    /// in the text.
    fn pass(&mut self, text: Text<'_>, standard: bool, own: usize) -> Option<usize> {
        self.clear();
        if text.len() > MAX_LIFTED || own > MAX_PARAMETERS {
            return None;
        }
        self.own = own;
        Pass::new(text, standard, self)?.run()
    }
}
