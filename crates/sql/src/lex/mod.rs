//! Cuts a text into the same tokens as PostgreSQL's own scanner (`scan.l`).
//!
//! If versions of the server differ (`1a`, `0x1F`, `1_000`, `$1a`), the token is
//! [`TokenKind::Odd`], so that no meaning is guessed. The text must be in an encoding in which a
//! byte below 0x80 is always a character of its own.

mod class;

use memchr::{memchr, memchr2};

use class::{CONTINUES, SPACE, begins, is, is_operator};

use crate::word::MAX_NAME;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// An identifier without quotes, or a keyword.
    Word,
    /// An identifier in double quotes.
    Quoted,
    /// `'..'`
    Text,
    /// `E'..'`
    Escape,
    /// `$tag$..$tag$`
    Dollar,
    /// `B'..'` and `X'..'`
    Bits,
    /// `N'..'`, `U&'..'` and `U&".."`. For code that decodes literals, also `E'..'` whose value
    /// depends on an encoding.
    Special,
    /// Decimal digits only.
    Integer,
    /// With a point or an exponent.
    Decimal,
    /// `$1`
    Parameter,
    /// One operator, including `*` and `=`.
    Operator,
    /// `(`
    Open,
    /// `)`
    Close,
    /// `[`
    OpenBracket,
    /// `]`
    CloseBracket,
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// `.`
    Dot,
    /// `:`
    Colon,
    /// `::`
    Cast,
    /// A token that versions of the server read differently, or that none of them accepts.
    Odd,
    /// The end of the text.
    End,
}

impl TokenKind {
    /// Returns true for literals in quotes.
    pub fn is_string(self) -> bool {
        matches!(
            self,
            Self::Text | Self::Escape | Self::Dollar | Self::Bits | Self::Special
        )
    }
}

/// A token and its place, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The kind of the token.
    pub kind: TokenKind,
    /// The position of its first byte in the text.
    pub start: usize,
    /// The position at which the next token may begin.
    pub end: usize,
}

/// The reason why a text cannot be cut into tokens: a quote or a comment is not closed, or the text
/// contains a NUL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken;

/// The scanner.
pub struct Lexer<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The end of a run of signs that are an operator each.
    signs_end: usize,
    /// The server's `standard_conforming_strings`: a backslash in `'..'` is a character like any
    /// other.
    standard: bool,
    /// True if a plain string contained a backslash, so that the meaning of the text depends on
    /// `standard`.
    pub backslash: bool,
    /// True if the text contained a hint (`/*+ .. */`).
    pub hint: bool,
}

impl<'a> Lexer<'a> {
    /// Makes a scanner. A text that contains a NUL is [`Broken`], because the protocol cannot carry
    /// it.
    pub fn new(text: &'a str, standard: bool) -> Result<Self, Broken> {
        let bytes = text.as_bytes();
        if memchr(0, bytes).is_some() {
            return Err(Broken);
        }
        Ok(Self {
            bytes,
            at: 0,
            signs_end: 0,
            standard,
            backslash: false,
            hint: false,
        })
    }

    #[inline]
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or_default()
    }

    #[inline]
    fn rest(&self, from: usize) -> &'a [u8] {
        self.bytes.get(from..).unwrap_or_default()
    }

    /// Returns the next token, and [`TokenKind::End`] after the last one, repeatedly.
    #[inline]
    pub fn token(&mut self) -> Result<Token, Broken> {
        self.skip_space()?;
        let start = self.at;
        let kind = if start >= self.bytes.len() {
            TokenKind::End
        } else {
            self.kind()?
        };
        Ok(Token {
            kind,
            start,
            end: self.at,
        })
    }

    fn skip_space(&mut self) -> Result<(), Broken> {
        loop {
            match self.peek(0) {
                byte if is(byte, SPACE) => self.at += 1,
                b'-' if self.peek(1) == b'-' => {
                    self.at = memchr2(b'\n', b'\r', self.rest(self.at))
                        .map_or(self.bytes.len(), |n| self.at + n);
                }
                b'/' if self.peek(1) == b'*' => {
                    self.hint |= self.peek(2) == b'+';
                    self.skip_comment()?;
                }
                _ => return Ok(()),
            }
        }
    }

    /// Skips a comment. Comments may be nested.
    fn skip_comment(&mut self) -> Result<(), Broken> {
        let mut depth = 0_u32;
        loop {
            let found = memchr2(b'*', b'/', self.rest(self.at)).ok_or(Broken)?;
            self.at += found;
            match (self.peek(0), self.peek(1)) {
                (b'/', b'*') => {
                    depth += 1;
                    self.at += 2;
                }
                (b'*', b'/') => {
                    depth -= 1;
                    self.at += 2;
                    if depth == 0 {
                        return Ok(());
                    }
                }
                _ => self.at += 1,
            }
        }
    }

    fn kind(&mut self) -> Result<TokenKind, Broken> {
        let first = self.peek(0);
        Ok(match first {
            b'\'' => return self.string(1, TokenKind::Text),
            b'"' => return self.quoted(),
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_ascii_digit() => self.number(),
            b'$' => return self.dollar(),
            b'(' => self.one(TokenKind::Open),
            b')' => self.one(TokenKind::Close),
            b',' => self.one(TokenKind::Comma),
            b';' => self.one(TokenKind::Semicolon),
            b'[' => self.one(TokenKind::OpenBracket),
            b']' => self.one(TokenKind::CloseBracket),
            b'.' if self.peek(1) == b'.' => self.odd(2),
            b'.' => self.one(TokenKind::Dot),
            b':' => self.colon(),
            _ if begins(first) => return self.word(),
            _ if is_operator(first) => self.operator(),
            _ => self.odd(1),
        })
    }

    fn one(&mut self, kind: TokenKind) -> TokenKind {
        self.at += 1;
        kind
    }

    fn odd(&mut self, bytes: usize) -> TokenKind {
        self.at += bytes;
        TokenKind::Odd
    }

    fn colon(&mut self) -> TokenKind {
        match self.peek(1) {
            b':' => {
                self.at += 2;
                TokenKind::Cast
            }
            b'=' => self.odd(2),
            _ => self.one(TokenKind::Colon),
        }
    }

    fn word(&mut self) -> Result<TokenKind, Broken> {
        let (first, second) = (self.peek(0) | 0x20, self.peek(1));
        match (first, second) {
            (b'e', b'\'') => return self.string(2, TokenKind::Escape),
            (b'b' | b'x', b'\'') => return self.string(2, TokenKind::Bits),
            (b'n', b'\'') => {
                // The server's scanner reads a keyword and then a plain string.
                self.at += 1;
                self.string(1, TokenKind::Text)?;
                return Ok(TokenKind::Special);
            }
            (b'u', b'&') if self.peek(2) == b'\'' => return self.string(3, TokenKind::Special),
            (b'u', b'&') if self.peek(2) == b'"' => {
                self.at += 2;
                self.quoted()?;
                return Ok(TokenKind::Special);
            }
            _ => {}
        }
        self.skip_word();
        Ok(TokenKind::Word)
    }

    #[inline]
    fn skip_word(&mut self) {
        self.at += self
            .rest(self.at)
            .iter()
            .take_while(|b| is(**b, CONTINUES))
            .count();
    }

    /// Scans a string in single quotes whose first quote is the last of the next `opening` bytes.
    fn string(&mut self, opening: usize, kind: TokenKind) -> Result<TokenKind, Broken> {
        let plain = kind == TokenKind::Text;
        // In B, X and U& strings a backslash does not matter to the scanner, and in B and X strings
        // a doubled quote does not either.
        let escapes = kind == TokenKind::Escape || (!self.standard && plain);
        self.at += opening;
        loop {
            let found = if escapes || plain {
                memchr2(b'\'', b'\\', self.rest(self.at))
            } else {
                memchr(b'\'', self.rest(self.at))
            };
            self.at += found.ok_or(Broken)?;
            if self.peek(0) == b'\\' {
                self.backslash |= plain;
                self.at += if escapes { 2 } else { 1 };
            } else if self.peek(1) == b'\'' && kind != TokenKind::Bits {
                self.at += 2;
            } else {
                self.at += 1;
                return Ok(kind);
            }
        }
    }

    fn quoted(&mut self) -> Result<TokenKind, Broken> {
        self.at += 1;
        loop {
            self.at += memchr(b'"', self.rest(self.at)).ok_or(Broken)? + 1;
            if self.peek(0) != b'"' {
                return Ok(TokenKind::Quoted);
            }
            self.at += 1;
        }
    }

    fn dollar(&mut self) -> Result<TokenKind, Broken> {
        if self.peek(1).is_ascii_digit() {
            self.at += 1;
            self.digits();
            return Ok(self.unless_junk(TokenKind::Parameter));
        }
        let tag = self
            .rest(self.at + 1)
            .iter()
            .take_while(|b| begins(**b) || b.is_ascii_digit())
            .count();
        if self.peek(tag + 1) != b'$' {
            return Ok(self.odd(1));
        }
        let opening = self.at;
        let inside = opening + tag + 2;
        let quote = self.bytes.get(opening..inside).ok_or(Broken)?;
        let found = memchr::memmem::find(self.rest(inside), quote).ok_or(Broken)?;
        self.at = inside + found + quote.len();
        Ok(TokenKind::Dollar)
    }

    fn digits(&mut self) {
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
    }

    fn number(&mut self) -> TokenKind {
        let mut kind = TokenKind::Integer;
        self.digits();
        if self.peek(0) == b'.' && self.peek(1) != b'.' {
            kind = TokenKind::Decimal;
            self.at += 1;
            self.digits();
        }
        if self.peek(0) | 0x20 == b'e' {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if self.peek(1 + sign).is_ascii_digit() {
                kind = TokenKind::Decimal;
                self.at += 1 + sign;
                self.digits();
            }
        }
        self.unless_junk(kind)
    }

    /// Handles letters directly after a number: older servers begin a new token there, newer ones
    /// refuse them.
    fn unless_junk(&mut self, kind: TokenKind) -> TokenKind {
        if begins(self.peek(0)) {
            self.skip_word();
            return TokenKind::Odd;
        }
        kind
    }

    /// Scans an operator, which ends before a comment. One of several characters ends in `+` or `-`
    /// only if it contains a character that no operator of the SQL standard has.
    fn operator(&mut self) -> TokenKind {
        if self.at < self.signs_end {
            return self.one(TokenKind::Operator);
        }
        let run = self.rest(self.at);
        let mut length = run.iter().take_while(|b| is_operator(**b)).count();
        if let Some(comment) = run
            .get(..length)
            .unwrap_or_default()
            .windows(2)
            .position(|pair| pair == b"--" || pair == b"/*")
        {
            length = comment;
        }
        let own = run.get(..length).unwrap_or_default();
        let special = own.iter().any(|b| {
            matches!(
                b,
                b'~' | b'!' | b'@' | b'#' | b'^' | b'&' | b'|' | b'`' | b'?' | b'%'
            )
        });
        if !special {
            // Each of the signs that are left over begins the same run without those before it.
            self.signs_end = self.at + length;
            while length > 1 && matches!(run.get(length - 1), Some(b'+' | b'-')) {
                length -= 1;
            }
        }
        self.at += length;
        // The server refuses longer ones.
        if length > MAX_NAME {
            return TokenKind::Odd;
        }
        TokenKind::Operator
    }
}

#[cfg(test)]
mod tests;
