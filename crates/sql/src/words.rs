//! The tokens of one statement, with the questions that all modules ask about them.

use crate::lex::{Token, TokenKind};
use crate::word;

/// The tokens of one statement.
#[derive(Clone, Copy)]
pub(crate) struct Words<'a> {
    pub(crate) text: &'a str,
    pub(crate) tokens: &'a [Token],
}

impl<'a> Words<'a> {
    pub(crate) fn new(text: &'a str, tokens: &'a [Token]) -> Self {
        Self { text, tokens }
    }

    pub(crate) fn len(self) -> usize {
        self.tokens.len()
    }

    pub(crate) fn kind(self, at: usize) -> TokenKind {
        self.tokens.get(at).map_or(TokenKind::End, |t| t.kind)
    }

    pub(crate) fn slice(self, at: usize) -> &'a str {
        self.tokens
            .get(at)
            .and_then(|t| self.text.get(t.start..t.end))
            .unwrap_or_default()
    }

    /// Returns true if the token is this keyword.
    pub(crate) fn is(self, at: usize, word: &str) -> bool {
        self.kind(at) == TokenKind::Word && self.slice(at).eq_ignore_ascii_case(word)
    }

    pub(crate) fn any(self, at: usize, words: &[&str]) -> bool {
        words.iter().any(|word| self.is(at, word))
    }

    /// Returns the place after the first word (BEGIN, COMMIT, END, ROLLBACK or ABORT) and an
    /// optional WORK or TRANSACTION.
    pub(crate) fn after_work(self) -> usize {
        1 + usize::from(self.any(1, &["work", "transaction"]))
    }

    /// Returns true if the text has the keyword.
    pub(crate) fn has(self, word: &str) -> bool {
        (0..self.len()).any(|at| self.is(at, word))
    }

    /// Returns the place of the last of these keywords.
    pub(crate) fn last(self, word: &str) -> Option<usize> {
        (0..self.len()).rfind(|at| self.is(*at, word))
    }

    /// Returns true if the text has INSERT, UPDATE or DELETE.
    pub(crate) fn writes(self) -> bool {
        self.any(0, &["insert", "update", "delete"])
    }

    /// Returns true for `CREATE FUNCTION .. BEGIN ATOMIC .. END`, whose semicolons do not end
    /// statements of the text.
    pub(crate) fn creates_with_a_body(self) -> bool {
        self.is(0, "create") && self.has("atomic")
    }

    pub(crate) fn from(self, at: usize) -> Self {
        Self {
            tokens: self.tokens.get(at..).unwrap_or_default(),
            ..self
        }
    }

    /// Returns the tokens before the first semicolon.
    pub(crate) fn first_statement(self) -> Self {
        let end = (0..self.len()).find(|at| self.kind(*at) == TokenKind::Semicolon);
        self.between(0, end.unwrap_or(self.len()))
    }

    /// The tokens before the first semicolon at the end.
    pub(crate) fn without_end(self) -> Self {
        let last = (0..self.len()).rfind(|at| self.kind(*at) != TokenKind::Semicolon);
        self.between(0, last.map_or(0, |last| last + 1))
    }

    pub(crate) fn between(self, from: usize, to: usize) -> Self {
        Self {
            tokens: self.tokens.get(from..to).unwrap_or_default(),
            ..self
        }
    }

    /// Returns the call, if the text is only `SELECT function(arguments)`. The function is built
    /// in: it has that schema, or none.
    pub(crate) fn only_call(self) -> Option<Call<'a>> {
        let qualified =
            self.identifier(1).as_deref() == Some("pg_catalog") && self.kind(2) == TokenKind::Dot;
        let at = if qualified { 3 } else { 1 };
        let function = self.identifier(at)?;
        let last = self.len().checked_sub(1).filter(|last| *last > at + 1)?;
        let is_call = self.is(0, "select")
            && self.kind(at + 1) == TokenKind::Open
            && self.kind(last) == TokenKind::Close;
        is_call.then(|| Call {
            function,
            arguments: self.between(at + 2, last),
        })
    }

    /// Returns the value of a plain text literal.
    pub(crate) fn text(self, at: usize) -> Option<String> {
        let inside = self.slice(at).strip_prefix('\'')?.strip_suffix('\'')?;
        let is_text = self.kind(at) == TokenKind::Text && !inside.contains('\\');
        is_text.then(|| inside.replace("''", "'"))
    }

    /// Returns the identifier at this place, folded, if it is one.
    pub(crate) fn identifier(self, at: usize) -> Option<String> {
        match self.kind(at) {
            TokenKind::Word => word::fold(self.slice(at)),
            TokenKind::Quoted => word::unquote(self.slice(at)),
            _ => None,
        }
    }
}

/// The call of a text that consists of one call.
pub(crate) struct Call<'a> {
    pub(crate) function: String,
    pub(crate) arguments: Words<'a>,
}
