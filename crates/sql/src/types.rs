//! Names of types, and constants that begin with one.

use crate::lex::TokenKind;
use crate::parse::{Node, Parser, Refusal, SYNTAX};
use crate::word::{self, Use, listed};

impl Parser<'_> {
    /// `date '2020-01-01'`: a string right behind the name of a type.
    pub(crate) fn typed_constant(&mut self) -> Result<Option<Node>, Refusal> {
        let from = self.at;
        let string = |kind| {
            matches!(
                kind,
                TokenKind::Text | TokenKind::Escape | TokenKind::Dollar
            )
        };
        let word = self.slice(0);
        if self.is_word(0, "time") || self.is_word(0, "timestamp") {
            // Without a string behind it, it is a column that has the name of a type.
            self.at += 1;
            let zone = self.time_zone();
            if string(self.kind(0)) {
                self.at += 1;
            } else if zone {
                return Err(SYNTAX);
            } else {
                self.at = from;
                return Ok(None);
            }
        } else if string(self.kind(1)) {
            if self.kind(0) == TokenKind::Word && !is_type_word(word) {
                return Err(SYNTAX);
            }
            self.at += 2;
            if word.eq_ignore_ascii_case("interval") {
                self.interval_fields();
            }
        } else {
            return Ok(None);
        }
        Ok(Some(self.node(from, false)))
    }

    /// A name that may have a schema.
    pub(crate) fn any_name(&mut self) -> Result<(), Refusal> {
        self.column_name()?;
        if self.take(TokenKind::Dot) {
            self.label()?;
        }
        if self.kind(0) == TokenKind::Dot {
            Err(SYNTAX)
        } else {
            Ok(())
        }
    }

    /// The name of a type behind `::` or AS.
    pub(crate) fn type_name(&mut self) -> Result<(), Refusal> {
        let word = self.slice(0);
        if self.kind(0) == TokenKind::Word && !is_type_word(word) {
            return Err(SYNTAX);
        }
        let lower = word.to_ascii_lowercase();
        if self.kind(1) == TokenKind::Dot {
            self.name_at(0, &[Use::Any, Use::Function])?;
            self.at += 2;
            self.label()?;
            self.modifiers(2)?;
        } else {
            self.label()?;
            match lower.as_str() {
                "double" => self.expect_word("precision")?,
                "bit" | "character" | "char" | "nchar" => {
                    self.word("varying");
                    self.modifiers(1)?;
                }
                "time" | "timestamp" => {
                    self.modifiers(1)?;
                    self.time_zone();
                }
                "interval" if self.kind(0) == TokenKind::Open => self.modifiers(1)?,
                "interval" => self.interval_fields(),
                "int" | "integer" | "smallint" | "bigint" | "real" | "boolean" | "json" => {}
                "float" | "varchar" => self.modifiers(1)?,
                _ => self.modifiers(2)?,
            }
        }
        self.dimensions()
    }

    /// WITH TIME ZONE or WITHOUT TIME ZONE, if it is next.
    fn time_zone(&mut self) -> bool {
        self.words(&["with", "time", "zone"]) || self.words(&["without", "time", "zone"])
    }

    /// `(10, 2)`, at most so many numbers.
    fn modifiers(&mut self, most: usize) -> Result<(), Refusal> {
        if !self.take(TokenKind::Open) {
            return Ok(());
        }
        let all = self.list(|parser| {
            // A scale may be negative.
            if most > 1 {
                parser.operator("-");
            }
            parser.expect(TokenKind::Integer)
        })?;
        self.expect(TokenKind::Close)?;
        if all.len() > most {
            Err(SYNTAX)
        } else {
            Ok(())
        }
    }

    fn dimensions(&mut self) -> Result<(), Refusal> {
        if self.word("array") {
            if self.take(TokenKind::OpenBracket) {
                self.expect(TokenKind::Integer)?;
                self.expect(TokenKind::CloseBracket)?;
            }
            return Ok(());
        }
        while self.take(TokenKind::OpenBracket) {
            self.take(TokenKind::Integer);
            self.expect(TokenKind::CloseBracket)?;
        }
        if self.is_operator(0, "%") && self.is_word(1, "type") {
            return Err(SYNTAX);
        }
        Ok(())
    }

    /// The fields of an interval, as far as they are plain: `YEAR`, `DAY TO SECOND`.
    fn interval_fields(&mut self) {
        let pairs = [
            ("year", "month"),
            ("day", "hour"),
            ("day", "minute"),
            ("day", "second"),
            ("hour", "minute"),
            ("hour", "second"),
            ("minute", "second"),
        ];
        for (first, last) in pairs {
            if self.words(&[first, "to", last]) {
                return;
            }
        }
        let fields = ["year", "month", "day", "hour", "minute", "second"];
        let _single = fields.iter().any(|field| self.word(field));
    }
}

/// A word that may stand as a type, before a string or behind `::`.
fn is_type_word(word: &str) -> bool {
    const BUILT_IN: &[&str] = &[
        "bigint",
        "bit",
        "boolean",
        "char",
        "character",
        "dec",
        "decimal",
        "float",
        "int",
        "integer",
        "interval",
        "json",
        "nchar",
        "numeric",
        "real",
        "smallint",
        "time",
        "timestamp",
        "varchar",
    ];
    match word::usage(word) {
        Use::Any | Use::Function => true,
        Use::Column => listed(BUILT_IN, word),
        Use::Reserved => false,
    }
}
