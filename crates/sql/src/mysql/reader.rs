//! A cursor over the tokens of one text, which parses names.

use windrow_core::{Expression, Name, Piece, TableName};

use super::modes::Modes;
use super::reserved::is_reserved;
use super::scanner::{Scanner, is_space};
use crate::lex::{Token, TokenKind};
use crate::parse::{NAME, Refusal, SYNTAX, UNCLEAR};
use crate::text::Text;

/// The longest name, in characters.
const MAX_NAME: usize = 64;

const TOO_LONG: Refusal = "a text longer than 1 MiB";
pub(super) const EXECUTABLE: Refusal = "a comment that the server executes";
const HINT: Refusal = "a hint";
const WIDE: Refusal = "a name outside of ASCII without quotes";
pub(super) const SEVERAL: Refusal = "several statements in one text";
/// The reason for a name without quotes that the server, or a version of it, reserves.
const RESERVED: Refusal = "a reserved word as a name";

/// The longest text that is read, in bytes.
const MAX_READ: usize = 1 << 20;

/// The tokens of one statement.
pub(super) struct Reader<'a> {
    pub(super) text: &'a str,
    pub(super) modes: Modes,
    tokens: Vec<Token>,
    /// The number of parameters before each token.
    parameters: Vec<usize>,
    /// The reason for a part of the text whose meaning depends on more than the text.
    doubt: Option<Refusal>,
    pub(super) at: usize,
    /// The functions that are called, in capitals.
    pub(super) functions: Vec<TableName>,
}

impl<'a> Reader<'a> {
    /// Cuts a text of one statement into tokens.
    pub(super) fn new(text: Text<'a>, modes: Modes) -> Result<Self, Refusal> {
        if text.len() > MAX_READ {
            return Err(TOO_LONG);
        }
        let mut scanner = Scanner::new(text, modes).map_err(|_| UNCLEAR)?;
        let mut tokens = Vec::with_capacity(text.len() / 4 + 4);
        let (mut parameters, mut count) = (Vec::with_capacity(tokens.capacity()), 0);
        loop {
            let token = scanner.token().map_err(|_| UNCLEAR)?;
            match token.kind {
                TokenKind::End => break,
                TokenKind::Odd => return Err(UNCLEAR),
                _ => tokens.push(token),
            }
            parameters.push(count);
            count += usize::from(token.kind == TokenKind::Parameter);
        }
        if scanner.has_executable {
            return Err(EXECUTABLE);
        }
        let hint = scanner.has_hint.then_some(HINT);
        let end = |token: &Token| token.kind == TokenKind::Semicolon;
        let last = tokens.pop_if(|last| end(last));
        // A comment behind the semicolon is a statement of its own, with an answer of its own.
        let is_second = last.is_some_and(|last| !is_space(&text, last.end));
        let wide = scanner.has_wide_name.then_some(WIDE);
        let doubt = hint.or(wide).or(is_second.then_some(SEVERAL));
        if tokens.iter().any(end) {
            return Err(SEVERAL);
        }
        Ok(Self {
            text: text.as_str(),
            modes,
            tokens,
            parameters,
            doubt,
            at: 0,
            functions: Vec::new(),
        })
    }

    /// Refuses hints, names that depend on the session's character set, and comments after the
    /// statement's semicolon.
    pub(super) fn without_doubt(self) -> Result<Self, Refusal> {
        match self.doubt {
            Some(reason) => Err(reason),
            None => Ok(self),
        }
    }

    pub(super) fn token(&self, at: usize) -> Option<Token> {
        self.tokens.get(at).copied()
    }

    pub(super) fn kind_at(&self, at: usize) -> TokenKind {
        self.token(at).map_or(TokenKind::End, |token| token.kind)
    }

    pub(super) fn slice_at(&self, at: usize) -> &'a str {
        let token = self.token(at);
        token
            .and_then(|token| self.text.get(token.start..token.end))
            .unwrap_or_default()
    }

    pub(super) fn is_word_at(&self, at: usize, word: &str) -> bool {
        self.kind_at(at) == TokenKind::Word && self.slice_at(at).eq_ignore_ascii_case(word)
    }

    pub(super) fn is_any_at(&self, at: usize, words: &[&str]) -> bool {
        words.iter().any(|word| self.is_word_at(at, word))
    }

    pub(super) fn is_operator_at(&self, at: usize, operator: &str) -> bool {
        self.kind_at(at) == TokenKind::Operator && self.slice_at(at) == operator
    }

    pub(super) fn kind(&self) -> TokenKind {
        self.kind_at(self.at)
    }

    /// Consumes a keyword if it is next.
    pub(super) fn word(&mut self, word: &str) -> bool {
        let is = self.is_word_at(self.at, word);
        self.at += usize::from(is);
        is
    }

    /// Consumes keywords if all of them are next.
    pub(super) fn words(&mut self, words: &[&str]) -> bool {
        let mut each = words.iter().zip(self.at..);
        let are = each.all(|(word, at)| self.is_word_at(at, word));
        self.at += if are { words.len() } else { 0 };
        are
    }

    /// Consumes a token if it is next.
    pub(super) fn take(&mut self, kind: TokenKind) -> bool {
        let is = self.kind() == kind;
        self.at += usize::from(is);
        is
    }

    pub(super) fn expect(&mut self, kind: TokenKind) -> Result<(), Refusal> {
        match self.take(kind) {
            true => Ok(()),
            false => Err(SYNTAX),
        }
    }

    /// Returns true if nothing is between two consecutive tokens.
    pub(super) fn are_adjacent(&self, at: usize) -> bool {
        let (this, next) = (self.token(at), self.token(at + 1));
        this.zip(next)
            .is_some_and(|(this, next)| this.end == next.start)
    }

    /// Parses a list with commas, which must not be empty.
    pub(super) fn list<T>(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Result<T, Refusal>,
    ) -> Result<Vec<T>, Refusal> {
        let mut all = vec![one(self)?];
        while self.take(TokenKind::Comma) {
            all.push(one(self)?);
        }
        Ok(all)
    }

    /// Parses a name.
    pub(super) fn name(&mut self) -> Result<Name, Refusal> {
        let slice = self.slice_at(self.at);
        let name = match self.kind() {
            TokenKind::Word if is_reserved(slice, self.modes) => return Err(RESERVED),
            TokenKind::Word => slice.into(),
            TokenKind::Quoted => unquote(slice),
            _ => return Err(SYNTAX),
        };
        // The server refuses other names, and cuts none of them.
        let is_valid = !name.is_empty()
            && !name.ends_with(' ')
            && name.len() <= 4 * MAX_NAME
            && name.chars().count() <= MAX_NAME;
        self.at += 1;
        match is_valid {
            true => Ok(Name::from(name)),
            false => Err(NAME),
        }
    }

    /// Parses a name after a point, where a word is never a keyword.
    fn qualified_name(&mut self) -> Result<Name, Refusal> {
        if self.kind() == TokenKind::Word {
            self.at += 1;
            return Ok(self.slice_at(self.at - 1).into());
        }
        self.name()
    }

    /// Parses `table` or `schema.table`.
    pub(super) fn table_name(&mut self) -> Result<TableName, Refusal> {
        // The grammar reads this word as the keyword.
        if self.is_word_at(self.at, "value") {
            return Err(RESERVED);
        }
        let first = self.name()?;
        if !self.take(TokenKind::Dot) {
            return Ok(TableName::bare(first));
        }
        Ok(TableName {
            schema: Some(first),
            table: self.qualified_name()?,
        })
    }

    /// Parses a column, with or without its table.
    pub(super) fn column(&mut self) -> Result<Name, Refusal> {
        let mut name = self.name()?;
        for _ in 0..2 {
            if self.take(TokenKind::Dot) {
                name = self.qualified_name()?;
            }
        }
        Ok(name)
    }

    /// Returns the text from one token up to another.
    pub(super) fn text_of(&self, from: usize, to: usize) -> &'a str {
        let tokens = self.tokens.get(from..to).unwrap_or_default();
        let ends = tokens.first().zip(tokens.last());
        ends.and_then(|(first, last)| self.text.get(first.start..last.end))
            .unwrap_or_default()
    }

    /// Adds the text from one token up to another, cut at its parameters.
    pub(super) fn pieces(
        &self,
        from: usize,
        to: usize,
        pieces: &mut Vec<Piece>,
    ) -> Result<(), Refusal> {
        let tokens = self.tokens.get(from..to).unwrap_or_default();
        let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else {
            return Ok(());
        };
        let is_parameter = |token: &&Token| token.kind == TokenKind::Parameter;
        let before = self.parameters.get(from).copied().unwrap_or_default();
        let mut start = first.start;
        for (number, token) in (before..).zip(tokens.iter().filter(is_parameter)) {
            self.push_text(start, token.start, pieces);
            let number = u16::try_from(number).map_err(|_| "more than 65,536 parameters")?;
            pieces.push(Piece::Parameter(number));
            start = token.end;
        }
        self.push_text(start, last.end, pieces);
        Ok(())
    }

    fn push_text(&self, start: usize, end: usize, pieces: &mut Vec<Piece>) {
        if let Some(text) = self.text.get(start..end).filter(|text| !text.is_empty()) {
            pieces.push(Piece::Text(text.into()));
        }
    }

    /// Returns the tokens from one up to another as an expression.
    pub(super) fn expression_of(&self, from: usize, to: usize) -> Result<Expression, Refusal> {
        let mut pieces = Vec::new();
        self.pieces(from, to, &mut pieces)?;
        Ok(Expression::Sql(pieces.into()))
    }

    /// Notes a function that is called.
    pub(super) fn note_function(&mut self, name: &str) {
        let name = TableName::bare(name.to_ascii_uppercase());
        if !self.functions.contains(&name) {
            self.functions.push(name);
        }
    }
}

/// Returns the name in a quoted identifier.
pub(super) fn unquote(quoted: &str) -> String {
    let quote = quoted.get(..1).unwrap_or_default();
    let inside = quoted.get(1..quoted.len() - 1).unwrap_or_default();
    inside.replace(&quote.repeat(2), quote)
}
