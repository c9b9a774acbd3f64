//! Replaces literals by `?` and leaves comments out, so that texts that differ in their values are
//! one statement.
//!
//! The place of a literal in the client's text is kept, and the literal is sent as the client
//! spelled it. So this code must know where a literal begins and ends, but not its meaning.

use std::ops::Range;

use super::modes::Modes;
use super::scanner::{Scanner, is_space};
use crate::lex::{Token, TokenKind};
use crate::text::Text;

/// The longest text that literals are lifted out of, in bytes.
const MAX_LIFTED: usize = 1 << 20;
/// The most literals of one text.
const MAX_LITERALS: usize = 1_000;
/// The deepest nesting of parentheses.
const MAX_DEPTH: u32 = 60;

/// A text whose literals were replaced by `?`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiftedText {
    /// The text with `?` in the places of the literals, without comments and without a semicolon at
    /// its end. The space between two tokens is one blank.
    pub text: String,
    /// The places of the literals in the client's text.
    pub literals: Vec<Range<usize>>,
}

/// Lifts the literals out of a single INSERT, REPLACE, UPDATE or DELETE. `None` for anything else,
/// for several rows of VALUES, and for texts whose tokens are uncertain: [`read`](super::read)
/// tells why such a text is not joined.
///
/// Literals are strings with their introducers (`_utf8mb4'x'`, `N'x'`, `DATE'2026-01-01'`; adjacent
/// strings are one), numbers with a sign where an expression begins, hexadecimal and bit literals;
/// and NULL, TRUE and FALSE where they are a whole value of VALUES or SET. Nothing is lifted after
/// LIMIT and RETURNING.
pub fn lift(text: &str, modes: Modes) -> Option<LiftedText> {
    if text.len() > MAX_LIFTED {
        return None;
    }
    Text::read(text, |text| lifted(text, modes))
}

fn lifted(text: Text<'_>, modes: Modes) -> Option<LiftedText> {
    let mut scanner = Scanner::new(text, modes).ok()?;
    let first = scanner.token().ok()?;
    let verb = text.get(first.start..first.end)?;
    if !["insert", "update", "delete", "replace"]
        .iter()
        .any(|known| known.eq_ignore_ascii_case(verb))
    {
        return None;
    }
    let mut pass = Pass::new(&text, first);
    loop {
        let token = scanner.token().ok()?;
        if scanner.has_hint || scanner.has_executable || scanner.has_wide_name {
            return None;
        }
        pass.settle(token)?;
        if token.kind == TokenKind::End {
            return pass.finish();
        }
        pass.step(token)?;
    }
}

/// The section of a statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    /// Before VALUES or SET, and WHERE.
    Plain,
    /// After VALUES.
    Values,
    /// After SET and ON DUPLICATE KEY UPDATE.
    Set,
    /// After LIMIT or RETURNING: literals stay.
    Kept,
}

/// A token that may be the beginning of a literal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beginning {
    /// A sign before a number.
    Sign,
    /// A word before a string: `_utf8mb4`, DATE.
    Word,
}

/// A part of the text that is decided once the next token is known.
enum Waiting {
    Nothing,
    /// Perhaps the beginning of a literal.
    Beginning(Beginning, Token),
    /// A literal of one or several strings.
    Text(Range<usize>),
    /// NULL, TRUE or FALSE.
    Whole(Token),
}

/// The state of a pass.
struct Pass<'a> {
    text: &'a str,
    out: String,
    literals: Vec<Range<usize>>,
    waiting: Waiting,
    section: Section,
    depth: u32,
    /// True if a row of VALUES has ended.
    has_row: bool,
    /// True if a semicolon has ended the statement.
    has_ended: bool,
    /// True if two minus signs would begin a comment, because the comment after them was left out.
    has_comment: bool,
    last: Token,
    /// The end of the text that was written last.
    written: usize,
}

impl<'a> Pass<'a> {
    fn new(text: &'a str, first: Token) -> Self {
        let mut out = String::with_capacity(text.len().min(4096));
        out.push_str(text.get(first.start..first.end).unwrap_or_default());
        Self {
            text,
            out,
            literals: Vec::new(),
            waiting: Waiting::Nothing,
            section: Section::Plain,
            depth: 0,
            has_row: false,
            has_ended: false,
            has_comment: false,
            last: first,
            written: first.end,
        }
    }

    fn finish(self) -> Option<LiftedText> {
        // A comment after the semicolon is a statement of its own, with its own answer.
        let has_second = self.has_ended && !is_space(self.text, self.last.end);
        let is_plain = !self.has_comment && !self.out.ends_with("--") && !has_second;
        is_plain.then_some(LiftedText {
            text: self.out,
            literals: self.literals,
        })
    }

    fn slice(&self, token: Token) -> &'a str {
        self.text.get(token.start..token.end).unwrap_or_default()
    }

    fn is(&self, token: Token, word: &str) -> bool {
        token.kind == TokenKind::Word && self.slice(token).eq_ignore_ascii_case(word)
    }

    fn is_any(&self, token: Token, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(token, word))
    }

    /// Writes a part of the text, with a blank before it if there was any space.
    fn write(&mut self, from: usize, to: usize, as_text: Option<&str>) {
        let text = as_text.or_else(|| self.text.get(from..to));
        let text = text.unwrap_or_default();
        // A name directly after `?` would make one token with it.
        let begins_name = text
            .bytes()
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$'));
        if from > self.written || (begins_name && self.out.ends_with('?')) {
            self.has_comment |= self.out.ends_with("--");
            self.out.push(' ');
        }
        self.out.push_str(text);
        self.written = to;
    }

    fn write_token(&mut self, token: Token) {
        self.write(token.start, token.end, None);
    }

    fn lift(&mut self, place: Range<usize>) -> Option<()> {
        if self.section == Section::Kept {
            self.write(place.start, place.end, None);
            return Some(());
        }
        if self.literals.len() >= MAX_LITERALS {
            return None;
        }
        self.write(place.start, place.end, Some("?"));
        self.literals.push(place);
        Some(())
    }

    /// Decides about the waiting part, once the token after it is known. Consumes that token if
    /// both are one literal.
    fn settle(&mut self, next: Token) -> Option<()> {
        match std::mem::replace(&mut self.waiting, Waiting::Nothing) {
            Waiting::Nothing => Some(()),
            Waiting::Text(place) if next.kind == TokenKind::Text => {
                self.waiting = Waiting::Text(place.start..next.end);
                Some(())
            }
            Waiting::Text(place) => self.lift(place),
            Waiting::Whole(token) if self.ends_value(next) => self.lift(token.start..token.end),
            Waiting::Whole(token) => {
                self.write_token(token);
                Some(())
            }
            Waiting::Beginning(beginning, token) => self.begin(beginning, token, next),
        }
    }

    fn begin(&mut self, beginning: Beginning, token: Token, next: Token) -> Option<()> {
        let place = token.start..next.end;
        match (beginning, next.kind) {
            (Beginning::Word, TokenKind::Text) => self.waiting = Waiting::Text(place),
            (Beginning::Word, TokenKind::Bits) => {
                self.lift(place)?;
            }
            (Beginning::Sign, TokenKind::Integer | TokenKind::Decimal) => self.lift(place)?,
            _ => self.write_token(token),
        }
        Some(())
    }

    /// Returns true if a value of VALUES or SET ends before a token.
    fn ends_value(&self, next: Token) -> bool {
        match next.kind {
            TokenKind::Comma | TokenKind::Close | TokenKind::End | TokenKind::Semicolon => true,
            _ => self.is_any(next, &["where", "on", "returning", "limit", "order", "as"]),
        }
    }

    /// Takes a token that is not a part of the literal before it.
    fn step(&mut self, token: Token) -> Option<()> {
        if self.has_ended {
            return None;
        }
        let is_taken = self.written >= token.end
            || matches!(&self.waiting, Waiting::Text(place) if place.end == token.end);
        if !is_taken {
            self.take(token)?;
        }
        self.last = token;
        Some(())
    }

    fn take(&mut self, token: Token) -> Option<()> {
        match token.kind {
            TokenKind::Odd | TokenKind::Parameter => return None,
            TokenKind::Operator => return self.operator(token),
            TokenKind::Word => return self.word(token),
            TokenKind::Text | TokenKind::Special => {
                self.waiting = Waiting::Text(token.start..token.end);
                return Some(());
            }
            TokenKind::Integer | TokenKind::Decimal | TokenKind::Bits => {
                return self.lift(token.start..token.end);
            }
            TokenKind::Semicolon => {
                self.has_ended = true;
                return (self.depth == 0).then_some(());
            }
            TokenKind::Open => self.depth += 1,
            TokenKind::Close => {
                self.depth = self.depth.checked_sub(1)?;
                self.has_row |= self.depth == 0 && self.section == Section::Values;
            }
            // The next row of VALUES.
            TokenKind::Comma if self.depth == 0 && self.section == Section::Values => return None,
            _ => {}
        }
        self.write_token(token);
        (self.depth <= MAX_DEPTH).then_some(())
    }

    fn operator(&mut self, token: Token) -> Option<()> {
        let slice = self.slice(token);
        if matches!(slice, "@" | "@@" | ":=" | "{" | "}") {
            return None;
        }
        let begins = match self.last.kind {
            TokenKind::Open | TokenKind::Comma => true,
            TokenKind::Operator => self.slice(self.last) == "=",
            _ => false,
        };
        if matches!(slice, "-" | "+") && begins {
            self.waiting = Waiting::Beginning(Beginning::Sign, token);
        } else {
            self.write_token(token);
        }
        Some(())
    }

    fn word(&mut self, token: Token) -> Option<()> {
        if self.last.kind == TokenKind::Dot {
            self.write_token(token);
            return Some(());
        }
        if self.is(token, "select") {
            return None;
        }
        let is_whole_place = match self.section {
            Section::Values => {
                self.depth == 1 && matches!(self.last.kind, TokenKind::Open | TokenKind::Comma)
            }
            Section::Set => self.depth == 0 && self.slice(self.last) == "=",
            Section::Plain | Section::Kept => false,
        };
        if is_whole_place && self.is_any(token, &["null", "true", "false"]) {
            self.waiting = Waiting::Whole(token);
            return Some(());
        }
        let is_introducer = self.slice(token).starts_with('_');
        if is_introducer || self.is_any(token, &["date", "time", "timestamp"]) {
            self.waiting = Waiting::Beginning(Beginning::Word, token);
            return Some(());
        }
        if self.depth == 0 {
            self.enter(token);
        }
        self.write_token(token);
        Some(())
    }

    /// Notes the section that a keyword begins.
    fn enter(&mut self, token: Token) {
        if self.is_any(token, &["limit", "returning"]) {
            self.section = Section::Kept;
        } else if self.section == Section::Kept {
        } else if self.is_any(token, &["values", "value"]) && !self.has_row {
            self.section = Section::Values;
        } else if self.is_any(token, &["set", "update"]) {
            self.section = Section::Set;
        } else if self.is_any(token, &["where", "on", "as"]) {
            self.section = Section::Plain;
        }
    }
}

#[cfg(test)]
mod tests;
