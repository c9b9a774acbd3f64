//! One pass over a text: each literal is lifted once the token after it is known.

use super::lifter::Lifter;
use super::value::{self, UNKNOWN};
use super::word::{Word, word};
use crate::lex::{Lexer, Token, TokenKind};
use crate::text::Text;
use crate::word::{Use, usage};

/// The most literals of one row.
pub(super) const MAX_LITERALS: usize = 1_000;
/// The most literals of several rows: each number of rows is a different template.
const MAX_OF_SEVERAL_ROWS: usize = 32;
/// The deepest nesting of parentheses and brackets.
const MAX_DEPTH: u32 = 60;

/// The meaning of the preceding token for a literal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// An expression may begin.
    Open,
    /// A value of VALUES or SET begins.
    Whole,
    /// A sign begins here, and the number after it is negative.
    Sign(usize),
    /// A literal must stay.
    Other,
}

/// The section of the statement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Section {
    /// A section whose literals are lifted.
    Plain,
    /// Between ON CONFLICT and DO.
    Target,
    /// After RETURNING.
    Returning,
}

/// A literal that is decided once the next token is known.
#[derive(Clone, Copy)]
struct Literal {
    token: Token,
    /// The keyword, if the literal is NULL, TRUE or FALSE.
    word: Word,
    /// The start of the minus sign before it.
    sign: Option<usize>,
    /// True if `::` or AS follows, so that the type there decides.
    cast: bool,
}

/// The state of a pass.
pub(super) struct Pass<'a, 'b> {
    text: &'a str,
    standard: bool,
    lexer: Lexer<'a>,
    out: &'b mut Lifter,
    /// The position up to which the text has been copied.
    copied: usize,
    waiting: Option<Literal>,
    before: Before,
    /// A bit for each open parenthesis and bracket: set if literals in it may be lifted.
    levels: u64,
    depth: u32,
    section: Section,
    /// True within the name of a type.
    typing: bool,
    /// True after WHERE.
    conditions: bool,
    /// True after VALUES.
    values: bool,
    /// True if the text has more than one row.
    several: bool,
    /// True if the last parenthesis that was opened is that of `current_setting(`.
    of_setting: bool,
    /// The highest number of a parameter.
    highest: usize,
    last: Word,
    last_kind: TokenKind,
    /// The start of the last token.
    start: usize,
    /// The end of the last token.
    end: usize,
}

impl<'a, 'b> Pass<'a, 'b> {
    pub(super) fn new(text: Text<'a>, standard: bool, out: &'b mut Lifter) -> Option<Self> {
        let text = text.as_str();
        Some(Self {
            text,
            standard,
            lexer: Lexer::new(text, standard).ok()?,
            out,
            copied: 0,
            waiting: None,
            before: Before::Other,
            levels: 1,
            depth: 0,
            section: Section::Plain,
            typing: false,
            conditions: false,
            values: false,
            several: false,
            of_setting: false,
            highest: 0,
            last: Word::Other,
            last_kind: TokenKind::Word,
            start: 0,
            end: 0,
        })
    }

    /// Runs the pass. Returns the highest number of a parameter in the text.
    pub(super) fn run(&mut self) -> Option<usize> {
        let first = self.lexer.token().ok()?;
        let verb = self.slice(first);
        let writes = ["insert", "update", "delete"]
            .iter()
            .any(|known| known.eq_ignore_ascii_case(verb));
        if !writes {
            return None;
        }
        self.copied = if self.lexer.hint { 0 } else { first.start };
        (self.start, self.end) = (first.start, first.end);
        loop {
            let token = self.lexer.token().ok()?;
            let word = match token.kind {
                TokenKind::Word => word(self.slice(token).as_bytes()),
                TokenKind::Odd => return None,
                TokenKind::Text if self.last_kind.is_string() => return None,
                TokenKind::Semicolon | TokenKind::End => Word::Other,
                // A second statement.
                _ if self.last_kind == TokenKind::Semicolon => return None,
                _ => Word::Other,
            };
            if token.kind == TokenKind::Word && self.last_kind == TokenKind::Semicolon {
                return None;
            }
            self.settle(token, word)?;
            if token.kind == TokenKind::End {
                break;
            }
            self.leave_comments_out(token);
            self.step(token, word)?;
            (self.last, self.last_kind) = (word, token.kind);
            (self.start, self.end) = (token.start, token.end);
        }
        self.copy(self.end);
        Some(self.highest)
    }

    /// Leaves out the comments between the last token and this one.
    fn leave_comments_out(&mut self, token: Token) {
        let between = self.text.get(self.end..token.start).unwrap_or_default();
        let is_comment = between.contains("--") || between.contains("/*");
        // The text that is not copied yet may have to be lifted with a literal.
        let is_settled = self.waiting.is_none() && !matches!(self.before, Before::Sign(_));
        if is_comment && is_settled && !between.contains("/*+") {
            self.copy(self.end);
            self.out.template.push(' ');
            self.copied = token.start;
        }
    }

    fn slice(&self, token: Token) -> &'a str {
        self.text.get(token.start..token.end).unwrap_or_default()
    }

    fn copy(&mut self, to: usize) {
        if let Some(text) = self.text.get(self.copied..to) {
            self.out.template.push_str(text);
            self.copied = to;
        }
    }

    fn allowed(&self) -> bool {
        self.levels & 1 == 1
    }

    fn open(&mut self, allowed: bool) -> Option<()> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        self.depth += 1;
        self.levels = self.levels << 1 | u64::from(allowed && self.allowed());
        Some(())
    }

    /// Decides about the waiting literal, now that the token after it is known.
    fn settle(&mut self, behind: Token, word: Word) -> Option<()> {
        let Some(literal) = self.waiting.take() else {
            return Some(());
        };
        if literal.cast {
            let stays = literal.token.kind.is_string() && word == Word::Interval;
            return self.finish(literal, !stays);
        }
        let name = literal.token.kind == TokenKind::Word;
        let ends = matches!(
            behind.kind,
            TokenKind::End | TokenKind::Semicolon | TokenKind::Comma | TokenKind::Close
        ) || matches!(word, Word::Where | Word::Returning | Word::On);
        let goes_on = match behind.kind {
            TokenKind::CloseBracket => true,
            TokenKind::Operator => is_plain(self.slice(behind)),
            _ => matches!(
                word,
                Word::And | Word::Or | Word::When | Word::Then | Word::Else | Word::End
            ),
        };
        let cast = behind.kind == TokenKind::Cast || (word == Word::As && self.depth > 0);
        if cast && !name {
            // A cast has a higher precedence than a sign, so the sign stays.
            self.waiting = Some(Literal {
                cast: true,
                sign: None,
                ..literal
            });
            return Some(());
        }
        self.finish(literal, ends || (goes_on && !name))
    }

    /// Lifts a literal or leaves it where it is.
    fn finish(&mut self, literal: Literal, lifted: bool) -> Option<()> {
        let kind = if lifted { self.append(literal) } else { None };
        let Some(kind) = kind else {
            // NULL, TRUE and FALSE have few values, so those that stay cause few templates.
            self.out.leftover |= literal.token.kind != TokenKind::Word;
            return Some(());
        };
        self.out.types.push(kind);
        let most = if self.several {
            MAX_OF_SEVERAL_ROWS
        } else {
            MAX_LITERALS
        };
        if self.out.types.len() > most {
            return None;
        }
        self.copy(literal.sign.unwrap_or(literal.token.start));
        let joins = |byte: Option<&u8>| {
            byte.is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80)
        };
        // `THEN'x'AND` is three tokens, `THEN$1AND` is one.
        if joins(self.out.template.as_bytes().last()) {
            self.out.template.push(' ');
        }
        self.out.template.push('$');
        value::write_number(&mut self.out.template, self.out.own + self.out.types.len());
        if joins(self.text.as_bytes().get(literal.token.end)) {
            self.out.template.push(' ');
        }
        self.copied = literal.token.end;
        Some(())
    }

    /// Appends the value of a literal, and returns its type.
    fn append(&mut self, literal: Literal) -> Option<u32> {
        let (kind, slice) = (literal.token.kind, self.slice(literal.token));
        let values = &mut self.out.values;
        match kind {
            TokenKind::Word => value::append_word(values, literal.word),
            TokenKind::Integer | TokenKind::Decimal => {
                value::append_number(values, kind, slice, literal.sign.is_some())
            }
            _ => {
                value::append_string(values, kind, slice, self.standard)?;
                Some(UNKNOWN)
            }
        }
    }

    /// Updates the state for a token.
    fn step(&mut self, token: Token, word: Word) -> Option<()> {
        let before = std::mem::replace(&mut self.before, Before::Other);
        match token.kind {
            TokenKind::Text
            | TokenKind::Escape
            | TokenKind::Dollar
            | TokenKind::Integer
            | TokenKind::Decimal => {
                self.literal(token, word, before);
            }
            TokenKind::Parameter => self.parameter(token)?,
            TokenKind::Bits | TokenKind::Special => {
                self.out.leftover |= self.section == Section::Plain;
            }
            TokenKind::Word => self.word(token, word, before),
            TokenKind::Open => self.open_parenthesis()?,
            TokenKind::OpenBracket => {
                let array = self.last == Word::Array || self.last_kind == TokenKind::OpenBracket;
                self.open(array)?;
                self.before = Before::Open;
            }
            TokenKind::Close | TokenKind::CloseBracket => {
                self.depth = self.depth.checked_sub(1)?;
                self.levels >>= 1;
            }
            TokenKind::Comma => self.before = self.item(),
            TokenKind::Operator => self.operator(token, before),
            _ => {}
        }
        // The name of a type continues with words and points.
        self.typing = match token.kind {
            TokenKind::Cast => true,
            TokenKind::Dot | TokenKind::Quoted => self.typing,
            TokenKind::Word => {
                word == Word::As
                    || (self.typing
                        && matches!(word, Word::Other | Word::TypePart | Word::Interval))
            }
            _ => false,
        };
        Some(())
    }

    fn parameter(&mut self, token: Token) -> Option<()> {
        let number = self.slice(token).get(1..)?.parse().ok()?;
        self.highest = self.highest.max(number).max(1);
        Some(())
    }

    fn open_parenthesis(&mut self) -> Option<()> {
        if self.values && self.depth == 0 && self.last_kind == TokenKind::Comma {
            self.several = true;
            if self.out.types.len() > MAX_OF_SEVERAL_ROWS {
                return None;
            }
        }
        self.open(!self.typing)?;
        self.before = self.item();
        let behind = self.text.get(self.start..self.end).unwrap_or_default();
        self.of_setting = behind.eq_ignore_ascii_case("current_setting");
        Some(())
    }

    /// Returns the meaning of a comma or an opening parenthesis for the literal after it.
    fn item(&self) -> Before {
        if self.values && self.depth == 1 && !self.conditions {
            Before::Whole
        } else {
            Before::Open
        }
    }

    fn operator(&mut self, token: Token, before: Before) {
        self.before = match (self.slice(token), before) {
            ("=", _) if self.depth == 0 && !self.conditions => Before::Whole,
            // Where an expression may begin, the grammar makes one constant of the sign and the
            // number after it.
            ("-", Before::Open | Before::Whole) => Before::Sign(token.start),
            ("-", Before::Other) if self.behind_an_operand() => Before::Open,
            ("-", _) | ("+", Before::Sign(_)) => Before::Other,
            (plain, _) if is_plain(plain) => Before::Open,
            _ => Before::Other,
        };
    }

    /// Returns true if the next sign is certainly between two operands.
    fn behind_an_operand(&self) -> bool {
        match self.last_kind {
            TokenKind::Integer
            | TokenKind::Decimal
            | TokenKind::Parameter
            | TokenKind::Quoted
            | TokenKind::Close
            | TokenKind::CloseBracket => true,
            TokenKind::Word => {
                let word = self.text.get(self.start..self.end).unwrap_or_default();
                usage(word) != Use::Reserved
            }
            kind => kind.is_string(),
        }
    }

    fn word(&mut self, token: Token, word: Word, before: Before) {
        match word {
            Word::Before | Word::And | Word::Or | Word::When | Word::Then | Word::Else => {
                self.before = Before::Open;
            }
            Word::Where => {
                self.conditions = true;
                self.before = Before::Open;
            }
            Word::Values => self.values = true,
            Word::Returning => self.section = Section::Returning,
            Word::Conflict if self.last == Word::On => self.section = Section::Target,
            Word::Do if self.section == Section::Target => self.section = Section::Plain,
            Word::Null | Word::True | Word::False if before == Before::Whole => {
                self.literal(token, word, before);
            }
            _ => {}
        }
    }

    fn literal(&mut self, token: Token, word: Word, before: Before) {
        // The meaning of the statement depends on which setting is read.
        let names_setting = self.of_setting && self.last_kind == TokenKind::Open;
        if self.section != Section::Plain || !self.allowed() || names_setting {
            return;
        }
        let sign = match before {
            Before::Sign(start) => Some(start),
            _ => None,
        };
        if before == Before::Other || (sign.is_some() && token.kind.is_string()) {
            self.out.leftover = true;
            return;
        }
        self.waiting = Some(Literal {
            token,
            word,
            sign,
            cast: false,
        });
    }
}

/// Returns true for operators whose operands may be any expression, and whose constants often
/// differ from text to text.
fn is_plain(operator: &str) -> bool {
    matches!(
        operator,
        "=" | "<" | ">" | "<=" | ">=" | "<>" | "!=" | "+" | "-" | "*" | "/" | "%" | "||"
    )
}
