//! The tokens of a body.

use windrow_sql::lex::{Lexer, Token, TokenKind};

/// The reason why a body is not proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Why(pub(crate) String);

/// A body, cut into its tokens.
#[derive(Clone)]
pub(crate) struct Tokens<'a> {
    text: &'a str,
    tokens: std::rc::Rc<[Token]>,
    at: usize,
}

impl<'a> Tokens<'a> {
    /// Cuts a body into tokens.
    ///
    /// # Errors
    /// It cannot be cut into tokens, or the meaning of a token depends on a setting.
    pub(crate) fn of(text: &'a str) -> Result<Self, Why> {
        let broken = || Why("its body cannot be read".to_owned());
        let mut lexer = Lexer::new(text, true).map_err(|_| broken())?;
        let mut tokens = Vec::new();
        loop {
            let token = lexer.token().map_err(|_| broken())?;
            tokens.push(token);
            if token.kind == TokenKind::End {
                break;
            }
        }
        if lexer.backslash {
            return Err(Why(
                "a text with a backslash means different things by a setting".to_owned(),
            ));
        }
        Ok(Self {
            text,
            tokens: tokens.into(),
            at: 0,
        })
    }

    fn token(&self, ahead: usize) -> Token {
        let end = Token {
            kind: TokenKind::End,
            start: self.text.len(),
            end: self.text.len(),
        };
        self.tokens.get(self.at + ahead).copied().unwrap_or(end)
    }

    pub(crate) fn kind(&self, ahead: usize) -> TokenKind {
        self.token(ahead).kind
    }

    pub(crate) fn text(&self, ahead: usize) -> &'a str {
        let token = self.token(ahead);
        self.text.get(token.start..token.end).unwrap_or_default()
    }

    /// Returns true if the next token is this keyword.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.is_at(0, word)
    }

    pub(crate) fn is_at(&self, ahead: usize, word: &str) -> bool {
        self.kind(ahead) == TokenKind::Word && self.text(ahead).eq_ignore_ascii_case(word)
    }

    pub(crate) fn step(&mut self) {
        self.at += 1;
    }

    pub(crate) fn skip(&mut self, word: &str) -> bool {
        let found = self.is(word);
        self.at += usize::from(found);
        found
    }

    pub(crate) fn skip_kind(&mut self, kind: TokenKind) -> bool {
        let found = self.kind(0) == kind;
        self.at += usize::from(found);
        found
    }

    pub(crate) fn skip_comma(&mut self) -> bool {
        self.skip_kind(TokenKind::Comma)
    }

    pub(crate) fn skip_semicolon(&mut self) -> bool {
        self.skip_kind(TokenKind::Semicolon)
    }

    /// Skips `:=` or `=`. Returns false if there is neither.
    pub(crate) fn skip_assignment(&mut self) -> bool {
        let found = match self.kind(0) {
            TokenKind::Odd => self.text(0) == ":=",
            TokenKind::Operator => self.text(0) == "=",
            _ => false,
        };
        self.at += usize::from(found);
        found
    }

    pub(crate) fn skip_literal(&mut self) -> bool {
        self.skip_kind(TokenKind::Text)
    }

    pub(crate) fn expect(&mut self, word: &str) -> Result<(), Why> {
        match self.skip(word) {
            true => Ok(()),
            false => Err(self.why()),
        }
    }

    pub(crate) fn expect_kind(&mut self, kind: TokenKind) -> Result<(), Why> {
        match self.skip_kind(kind) {
            true => Ok(()),
            false => Err(self.why()),
        }
    }

    pub(crate) fn semicolon(&mut self) -> Result<(), Why> {
        self.expect_kind(TokenKind::Semicolon)
    }

    pub(crate) fn dot(&mut self) -> Result<(), Why> {
        self.expect_kind(TokenKind::Dot)
    }

    pub(crate) fn literal(&mut self) -> Result<(), Why> {
        self.expect_kind(TokenKind::Text)
    }

    /// Parses a name without quotes, and returns it in lower case. Letters outside of ASCII are
    /// refused, because their folding depends on the server's encoding.
    pub(crate) fn name(&mut self) -> Result<Box<str>, Why> {
        if self.kind(0) != TokenKind::Word || !self.text(0).is_ascii() {
            return Err(self.why());
        }
        let name = self.text(0).to_ascii_lowercase();
        self.at += 1;
        Ok(name.into())
    }

    /// Parses a column's name, with or without quotes.
    pub(crate) fn any_name(&mut self) -> Result<Box<str>, Why> {
        if self.kind(0) != TokenKind::Quoted {
            return self.name();
        }
        let quoted = self.text(0);
        let inner = quoted.get(1..quoted.len() - 1).unwrap_or_default();
        self.at += 1;
        Ok(inner.replace("\"\"", "\"").into())
    }

    /// Checks that no token follows.
    pub(crate) fn end(&self) -> Result<(), Why> {
        match self.kind(0) {
            TokenKind::End => Ok(()),
            _ => Err(self.why()),
        }
    }

    /// Returns the reason that names the token which could not be parsed.
    pub(crate) fn why(&self) -> Why {
        match self.kind(0) {
            TokenKind::End => Why("its body ends too soon".to_owned()),
            _ => Why(format!("{} is not known to be harmless", self.text(0))),
        }
    }

    /// Returns the reason that names the token before.
    pub(crate) fn why_behind(&self) -> Why {
        let mut before = self.clone();
        before.at = before.at.saturating_sub(1);
        before.why()
    }
}
