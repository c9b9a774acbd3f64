//! Parses triggers that only set columns of the new row, or refuse it:
//!
//! ```text
//! body    = step [";"]
//! step    = "BEGIN" {step ";"} "END"
//!         | "SET" "NEW" "." column "=" expression {"," "NEW" "." column "=" expression}
//!         | "IF" expression "THEN" {step ";"} {"ELSEIF" expression "THEN" {step ";"}} ["ELSE" {step ";"}] "END" "IF"
//!         | "SIGNAL" "SQLSTATE" ["VALUE"] text ["SET" item "=" expression {"," item "=" expression}]
//! ```
//!
//! An expression consists of literals, columns of `NEW` and `OLD`, operators and functions of the
//! list.

use super::functions::{expresses, is_function};
use super::token::{Piece, Token, tokens};

/// Returns the columns that a trigger sets.
///
/// # Errors
/// The word of the body that the grammar does not allow.
pub(super) fn read(body: &str) -> Result<Vec<String>, String> {
    let tokens = tokens(body, false).ok_or_else(|| "a comment or a quote".to_owned())?;
    let mut reader = Reader {
        tokens: &tokens,
        at: 0,
        sets: Vec::new(),
    };
    reader.step()?;
    reader.take_sign(';');
    match reader.peek() {
        None => Ok(reader.sets),
        Some(_) => Err(reader.unproven()),
    }
}

struct Reader<'t> {
    tokens: &'t [Token<'t>],
    at: usize,
    sets: Vec<String>,
}

impl<'t> Reader<'t> {
    fn step(&mut self) -> Result<(), String> {
        if self.take("BEGIN") {
            self.steps(&["END"])?;
            return self.expect("END");
        }
        if self.take("SET") {
            return self.assignments(true);
        }
        if self.take("IF") {
            return self.condition();
        }
        if self.take("SIGNAL") {
            self.expect("SQLSTATE")?;
            self.take("VALUE");
            if self.next().map(|t| t.piece) != Some(Piece::Literal) {
                return Err("SIGNAL".to_owned());
            }
            return match self.take("SET") {
                true => self.assignments(false),
                false => Ok(()),
            };
        }
        Err(self.unproven())
    }

    /// Parses steps up to one of these words.
    fn steps(&mut self, ends: &[&str]) -> Result<(), String> {
        while !self
            .peek()
            .is_some_and(|t| ends.iter().any(|end| t.is(end)))
        {
            self.step()?;
            if !self.take_sign(';') {
                return Err(self.unproven());
            }
        }
        Ok(())
    }

    fn condition(&mut self) -> Result<(), String> {
        loop {
            self.expression()?;
            self.expect("THEN")?;
            self.steps(&["ELSEIF", "ELSE", "END"])?;
            if self.take("ELSEIF") {
                continue;
            }
            if self.take("ELSE") {
                self.steps(&["END"])?;
            }
            self.expect("END")?;
            return self.expect("IF");
        }
    }

    /// Parses assignments. If `columns` is set, they are to columns of the new row, else to parts
    /// of an error.
    fn assignments(&mut self, columns: bool) -> Result<(), String> {
        loop {
            if columns {
                self.expect("NEW")?;
                self.expect_sign('.')?;
            }
            let Some(name) = self.next().and_then(Token::name) else {
                return Err("SET".to_owned());
            };
            if columns {
                self.sets.push(name.to_owned());
            }
            self.expect_sign('=')?;
            self.expression()?;
            if !self.take_sign(',') {
                return Ok(());
            }
        }
    }

    /// Parses an expression up to a comma, a semicolon, the end, or the THEN of a condition.
    fn expression(&mut self) -> Result<(), String> {
        let (start, mut depth, mut cases) = (self.at, 0_usize, 0_usize);
        while let Some(token) = self.peek() {
            match token.piece {
                Piece::Sign(';') => break,
                Piece::Sign(',') if depth == 0 => break,
                Piece::Word(_) if token.is("THEN") && cases == 0 => break,
                Piece::Sign('(') => depth += 1,
                Piece::Sign(')') if depth == 0 => return Err(")".to_owned()),
                Piece::Sign(')') => depth -= 1,
                Piece::Sign(sign) if "+-*/%=<>!&|^~,.".contains(sign) => {}
                Piece::Literal => {}
                Piece::Word(word) => {
                    cases += usize::from(token.is("CASE"));
                    if token.is("END") {
                        cases = cases.checked_sub(1).ok_or("END")?;
                    }
                    self.word(word)?;
                }
                Piece::Sign(_) | Piece::Name(_) => return Err(self.unproven()),
            }
            self.at += 1;
        }
        match self.at > start && depth == 0 && cases == 0 {
            true => Ok(()),
            false => Err(self.unproven()),
        }
    }

    /// Parses a word of an expression, up to the last piece that belongs to it.
    fn word(&mut self, word: &str) -> Result<(), String> {
        let behind = |n: usize| self.tokens.get(self.at + n);
        let opens = |n: usize| behind(n).is_some_and(|t| t.is_sign('('));
        let known = |at: usize| Ok(at);
        let last = if word.eq_ignore_ascii_case("NEW") || word.eq_ignore_ascii_case("OLD") {
            let dot = behind(1).is_some_and(|t| t.is_sign('.'));
            match dot && behind(2).and_then(Token::name).is_some() && !opens(3) {
                true => known(2),
                false => Err(word),
            }
        } else if word.eq_ignore_ascii_case("COLLATE") || word.eq_ignore_ascii_case("USING") {
            match behind(1).and_then(Token::name).is_some() && !opens(2) {
                true => known(1),
                false => Err(word),
            }
        } else if opens(1) && is_function(word) {
            // With a space between them, this may be a user's function.
            let glued = behind(1).is_some_and(|t| t.glued);
            // A sequence of RAND with a seed continues from row to row.
            let seeded =
                word.eq_ignore_ascii_case("RAND") && !behind(2).is_some_and(|t| t.is_sign(')'));
            match glued && !seeded || expresses(word) {
                true => known(0),
                false => Err(word),
            }
        } else if expresses(word)
            || word.starts_with('_') && is_literal(behind(1))
            || is_prefix(word, behind(1))
        {
            known(0)
        } else {
            Err(word)
        };
        self.at += last.map_err(str::to_owned)?;
        Ok(())
    }

    fn peek(&self) -> Option<&'t Token<'t>> {
        self.tokens.get(self.at)
    }

    fn next(&mut self) -> Option<&'t Token<'t>> {
        let next = self.peek();
        self.at += 1;
        next
    }

    fn take(&mut self, word: &str) -> bool {
        let there = self.peek().is_some_and(|t| t.is(word));
        self.at += usize::from(there);
        there
    }

    fn take_sign(&mut self, sign: char) -> bool {
        let there = self.peek().is_some_and(|t| t.is_sign(sign));
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        match self.take(word) {
            true => Ok(()),
            false => Err(self.unproven()),
        }
    }

    fn expect_sign(&mut self, sign: char) -> Result<(), String> {
        match self.take_sign(sign) {
            true => Ok(()),
            false => Err(self.unproven()),
        }
    }

    /// Returns the word at this place, as the reason.
    fn unproven(&self) -> String {
        match self.peek().map(|t| t.piece) {
            Some(Piece::Word(name) | Piece::Name(name)) => name.to_owned(),
            Some(Piece::Sign(sign)) => sign.to_string(),
            Some(Piece::Literal) => "a literal".to_owned(),
            None => "its end".to_owned(),
        }
    }
}

fn is_literal(token: Option<&Token<'_>>) -> bool {
    token.is_some_and(|t| t.piece == Piece::Literal)
}

/// Returns true for the prefix of `X'00'`, `B'01'` or `N'text'`.
fn is_prefix(word: &str, behind: Option<&Token<'_>>) -> bool {
    let one = matches!(word, "x" | "X" | "b" | "B" | "n" | "N");
    one && behind.is_some_and(|t| t.glued && t.piece == Piece::Literal)
}
