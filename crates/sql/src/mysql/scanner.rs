//! Cuts a text into the same tokens as the scanner of MySQL and MariaDB (`sql_lex.cc`).
//!
//! If versions of the server may differ, the token is [`TokenKind::Odd`], so that no meaning is
//! guessed. The text must be in an encoding in which a byte below 0x80 is always a character of its
//! own.

use memchr::{memchr, memchr2, memmem};

use super::modes::Modes;
use crate::lex::{Broken, Token, TokenKind};
use crate::text::Text;

/// The class of bytes that may begin a name without quotes.
const BEGINS: u8 = 1;
/// The class of bytes that may continue such a name.
const CONTINUES: u8 = 2;
/// The class of space between tokens.
const SPACE: u8 = 4;

/// The classes of each byte.
static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut all = classes.as_mut_slice();
    let mut byte = 0_u8;
    while let [class, rest @ ..] = all {
        *class = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' | 0x80.. => BEGINS | CONTINUES,
            b'0'..=b'9' | b'$' => CONTINUES,
            b'\t'..=b'\r' | b' ' => SPACE,
            _ => 0,
        };
        all = rest;
        byte = byte.wrapping_add(1);
    }
    classes
}

#[inline]
fn is(byte: u8, class: u8) -> bool {
    CLASSES
        .get(usize::from(byte))
        .is_some_and(|found| found & class != 0)
}

/// Returns true if a text contains only space from a position on.
pub(super) fn is_space(text: &str, from: usize) -> bool {
    let rest = text.as_bytes().get(from..).unwrap_or_default();
    rest.iter().all(|byte| is(*byte, SPACE))
}

/// Operators of more than one character, the longest first.
const OPERATORS: [&str; 12] = [
    "<=>", "->>", "->", "<=", ">=", "<>", "!=", "<<", ">>", "||", "&&", ":=",
];

/// The scanner.
pub(super) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    modes: Modes,
    /// The kind of the last token and where it ends.
    last: (TokenKind, usize),
    /// True if the text contained a hint (`/*+ .. */`).
    pub(super) has_hint: bool,
    /// True if the text contained a comment that the server executes (`/*! .. */`).
    pub(super) has_executable: bool,
    /// True if a name without quotes contains a character outside of ASCII.
    pub(super) has_wide_name: bool,
}

impl<'a> Scanner<'a> {
    /// A text with a NUL is [`Broken`] unless that stands in a string.
    pub(super) fn new(text: Text<'a>, modes: Modes) -> Result<Self, Broken> {
        let bytes = text.as_str().as_bytes();
        if memchr(0, bytes).is_some() {
            Self::begin(bytes, modes).check_nuls()?;
        }
        Ok(Self::begin(bytes, modes))
    }

    fn begin(bytes: &'a [u8], modes: Modes) -> Self {
        Self {
            bytes,
            at: 0,
            modes,
            last: (TokenKind::End, usize::MAX),
            has_hint: false,
            has_executable: false,
            has_wide_name: false,
        }
    }

    fn check_nuls(mut self) -> Result<(), Broken> {
        loop {
            let from = self.at;
            let token = self.token()?;
            let until = match token.kind {
                TokenKind::Text => token.start,
                _ => token.end,
            };
            match memchr(0, self.bytes.get(from..until).unwrap_or_default()) {
                Some(_) => return Err(Broken),
                None if token.kind == TokenKind::End => return Ok(()),
                None => {}
            }
        }
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
    pub(super) fn token(&mut self) -> Result<Token, Broken> {
        self.skip_space()?;
        let start = self.at;
        let kind = match start >= self.bytes.len() {
            true => TokenKind::End,
            false => self.kind()?,
        };
        self.last = (kind, self.at);
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
                b'#' => self.skip_line(),
                // Two minus signs begin a comment only before a space, a control character or the
                // end of the text.
                b'-' if self.peek(1) == b'-' && matches!(self.peek(2), 0..=b' ' | 0x7f) => {
                    self.skip_line();
                }
                b'/' if self.peek(1) == b'*' => {
                    self.has_hint |= self.peek(2) == b'+';
                    let is_for_mariadb = self.peek(2) == b'M' && self.peek(3) == b'!';
                    self.has_executable |= self.peek(2) == b'!' || is_for_mariadb;
                    let end = memmem::find(self.rest(self.at + 2), b"*/").ok_or(Broken)?;
                    self.at += end + 4;
                }
                _ => return Ok(()),
            }
        }
    }

    fn skip_line(&mut self) {
        let end = memchr(b'\n', self.rest(self.at));
        self.at = end.map_or(self.bytes.len(), |end| self.at + end);
    }

    fn kind(&mut self) -> Result<TokenKind, Broken> {
        Ok(match self.peek(0) {
            quote @ b'\'' => return self.string(quote, TokenKind::Text),
            quote @ b'"' if !self.modes.ansi_quotes => return self.string(quote, TokenKind::Text),
            quote @ (b'"' | b'`') => return self.quoted(quote),
            b'0'..=b'9' => self.number(),
            b'.' if self.peek(1).is_ascii_digit() => self.fraction(),
            b'(' => self.one(TokenKind::Open),
            b')' => self.one(TokenKind::Close),
            b',' => self.one(TokenKind::Comma),
            b';' => self.one(TokenKind::Semicolon),
            b'.' => self.one(TokenKind::Dot),
            b'?' if is(self.peek(1), CONTINUES) => self.odd(),
            b'?' => self.one(TokenKind::Parameter),
            byte if is(byte, BEGINS) => return self.word(),
            _ => self.operator(),
        })
    }

    fn one(&mut self, kind: TokenKind) -> TokenKind {
        self.at += 1;
        kind
    }

    /// Scans a character, and all that may belong to a name after it, as a token of unknown
    /// meaning.
    fn odd(&mut self) -> TokenKind {
        self.at += 1;
        self.skip_word();
        TokenKind::Odd
    }

    fn skip_word(&mut self) {
        let run = self.rest(self.at).iter();
        self.at += run.take_while(|byte| is(**byte, CONTINUES)).count();
    }

    fn word(&mut self) -> Result<TokenKind, Broken> {
        if self.peek(1) == b'\'' {
            match self.peek(0) | 0x20 {
                b'x' => return self.digits_in_quotes(u8::is_ascii_hexdigit, 2),
                b'b' => return self.digits_in_quotes(|byte| matches!(byte, b'0' | b'1'), 1),
                b'n' => {
                    self.at += 1;
                    return self.string(b'\'', TokenKind::Special);
                }
                _ => {}
            }
        }
        let start = self.at;
        self.skip_word();
        let word = self.bytes.get(start..self.at).unwrap_or_default();
        self.has_wide_name |= !word.is_ascii();
        Ok(TokenKind::Word)
    }

    /// Scans `x'..'` and `b'..'`, which contain only digits in whole groups.
    fn digits_in_quotes(
        &mut self,
        is_digit: impl Fn(&u8) -> bool,
        group: usize,
    ) -> Result<TokenKind, Broken> {
        let length = memchr(b'\'', self.rest(self.at + 2)).ok_or(Broken)?;
        let inside = self.rest(self.at + 2).get(..length).ok_or(Broken)?;
        let is_plain = inside.iter().all(is_digit) && length.is_multiple_of(group);
        self.at += length + 3;
        Ok(match is_plain {
            true => TokenKind::Bits,
            false => TokenKind::Odd,
        })
    }

    fn string(&mut self, quote: u8, kind: TokenKind) -> Result<TokenKind, Broken> {
        self.at += 1;
        loop {
            let found = match self.modes.no_backslash_escapes {
                true => memchr(quote, self.rest(self.at)),
                false => memchr2(quote, b'\\', self.rest(self.at)),
            };
            self.at += found.ok_or(Broken)?;
            if self.peek(0) == b'\\' || self.peek(1) == quote {
                self.at += 2;
            } else {
                self.at += 1;
                return Ok(kind);
            }
        }
    }

    fn quoted(&mut self, quote: u8) -> Result<TokenKind, Broken> {
        self.at += 1;
        loop {
            self.at += memchr(quote, self.rest(self.at)).ok_or(Broken)? + 1;
            if self.peek(0) != quote {
                return Ok(TokenKind::Quoted);
            }
            self.at += 1;
        }
    }

    fn skip_digits(&mut self) {
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
    }

    fn number(&mut self) -> TokenKind {
        // After a point, digits begin a name.
        if self.last.0 == TokenKind::Dot {
            return self.odd();
        }
        if self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'b') {
            return self.prefixed();
        }
        let mut kind = TokenKind::Integer;
        self.skip_digits();
        if self.peek(0) == b'.' {
            kind = TokenKind::Decimal;
            self.at += 1;
            self.skip_digits();
        }
        self.end_of_number(kind)
    }

    /// Scans `0x..` and `0b..`.
    fn prefixed(&mut self) -> TokenKind {
        let is_hex = self.peek(1) == b'x';
        self.at += 2;
        let start = self.at;
        self.skip_word();
        let digits = self.bytes.get(start..self.at).unwrap_or_default();
        let mut each = digits.iter();
        let are_plain = match is_hex {
            true => each.all(u8::is_ascii_hexdigit),
            false => each.all(|digit| matches!(digit, b'0' | b'1')),
        };
        match are_plain && !digits.is_empty() && self.peek(0) != b'.' {
            true => TokenKind::Bits,
            false => TokenKind::Odd,
        }
    }

    /// Scans a number that begins with a point. Directly after a name, the point belongs to the
    /// name.
    fn fraction(&mut self) -> TokenKind {
        let is_free = matches!(
            self.last.0,
            TokenKind::Open | TokenKind::Comma | TokenKind::Operator
        );
        if self.last.1 == self.at && !is_free {
            return self.odd();
        }
        self.at += 1;
        self.skip_digits();
        self.end_of_number(TokenKind::Decimal)
    }

    /// Scans the exponent. Other characters directly after a number make it a name, or the servers
    /// differ.
    fn end_of_number(&mut self, mut kind: TokenKind) -> TokenKind {
        if self.peek(0) | 0x20 == b'e' {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if self.peek(1 + sign).is_ascii_digit() {
                kind = TokenKind::Decimal;
                self.at += 1 + sign;
                self.skip_digits();
            }
        }
        if is(self.peek(0), CONTINUES) || self.peek(0) == b'.' {
            return self.odd();
        }
        kind
    }

    fn operator(&mut self) -> TokenKind {
        let rest = self.rest(self.at);
        if let Some(long) = OPERATORS
            .iter()
            .find(|known| rest.starts_with(known.as_bytes()))
        {
            self.at += long.len();
        } else if rest.starts_with(b"@@") {
            self.at += 2;
            return TokenKind::Operator;
        } else {
            match self.peek(0) {
                b'*' if self.peek(1) == b'/' => return self.odd(),
                b'+' | b'-' | b'*' | b'/' | b'%' | b'^' | b'~' | b'!' | b'<' | b'>' | b'='
                | b'&' | b'|' | b'@' | b'{' | b'}' => self.at += 1,
                _ => return self.odd(),
            }
        }
        // The server's scanner reads a pair of these as one token, even if there is no such
        // operator.
        let compares = |byte| matches!(byte, b'<' | b'>' | b'=' | b'!');
        let last = self.bytes.get(self.at - 1).copied().unwrap_or_default();
        match compares(last) && compares(self.peek(0)) {
            true => self.odd(),
            false => TokenKind::Operator,
        }
    }
}
