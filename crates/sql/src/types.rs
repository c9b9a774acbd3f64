//! Parses names of types, and constants that begin with one.

use crate::lex::TokenKind;
use crate::parse::{Node, Parser, Refusal, SYNTAX};
use crate::word::{self, Use, listed};

/// Parses a string right after the name of a type: `date '2020-01-01'`.
pub(crate) fn typed_constant(parser: &mut Parser<'_>) -> Result<Option<Node>, Refusal> {
    let from = parser.at;
    let string = |kind| {
        matches!(
            kind,
            TokenKind::Text | TokenKind::Escape | TokenKind::Dollar
        )
    };
    let word = parser.slice(0);
    if parser.is_word(0, "time") || parser.is_word(0, "timestamp") {
        // Without a string after it, it is a column with the name of a type.
        parser.at += 1;
        let zone = time_zone(parser);
        if string(parser.kind(0)) {
            parser.at += 1;
        } else if zone {
            return Err(SYNTAX);
        } else {
            parser.at = from;
            return Ok(None);
        }
    } else if string(parser.kind(1)) {
        if parser.kind(0) == TokenKind::Word && !is_type_word(word) {
            return Err(SYNTAX);
        }
        parser.at += 2;
        if word.eq_ignore_ascii_case("interval") {
            interval_fields(parser);
        }
    } else {
        return Ok(None);
    }
    Ok(Some(parser.node(from, false)))
}

/// Parses a name that may have a schema.
pub(crate) fn any_name(parser: &mut Parser<'_>) -> Result<(), Refusal> {
    parser.column_name()?;
    if parser.take(TokenKind::Dot) {
        parser.label()?;
    }
    if parser.kind(0) == TokenKind::Dot {
        Err(SYNTAX)
    } else {
        Ok(())
    }
}

/// Parses the name of a type after `::` or AS.
pub(crate) fn type_name(parser: &mut Parser<'_>) -> Result<(), Refusal> {
    let word = parser.slice(0);
    if parser.kind(0) == TokenKind::Word && !is_type_word(word) {
        return Err(SYNTAX);
    }
    let lower = word.to_ascii_lowercase();
    if parser.kind(1) == TokenKind::Dot {
        parser.name_at(0, &[Use::Any, Use::Function])?;
        parser.at += 2;
        parser.label()?;
        modifiers(parser, 2)?;
    } else {
        parser.label()?;
        match lower.as_str() {
            "double" => parser.expect_word("precision")?,
            "bit" | "character" | "char" | "nchar" => {
                parser.word("varying");
                modifiers(parser, 1)?;
            }
            "time" | "timestamp" => {
                modifiers(parser, 1)?;
                time_zone(parser);
            }
            "interval" if parser.kind(0) == TokenKind::Open => modifiers(parser, 1)?,
            "interval" => interval_fields(parser),
            "int" | "integer" | "smallint" | "bigint" | "real" | "boolean" | "json" => {}
            "float" | "varchar" => modifiers(parser, 1)?,
            _ => modifiers(parser, 2)?,
        }
    }
    dimensions(parser)
}

/// Parses WITH TIME ZONE or WITHOUT TIME ZONE, if it is next.
fn time_zone(parser: &mut Parser<'_>) -> bool {
    parser.words(&["with", "time", "zone"]) || parser.words(&["without", "time", "zone"])
}

/// Parses numbers such as `(10, 2)`, at most `most` of them.
fn modifiers(parser: &mut Parser<'_>, most: usize) -> Result<(), Refusal> {
    if !parser.take(TokenKind::Open) {
        return Ok(());
    }
    let all = parser.list(|parser| {
        // A scale may be negative.
        if most > 1 {
            parser.operator("-");
        }
        parser.expect(TokenKind::Integer)
    })?;
    parser.expect(TokenKind::Close)?;
    if all.len() > most {
        Err(SYNTAX)
    } else {
        Ok(())
    }
}

fn dimensions(parser: &mut Parser<'_>) -> Result<(), Refusal> {
    if parser.word("array") {
        if parser.take(TokenKind::OpenBracket) {
            parser.expect(TokenKind::Integer)?;
            parser.expect(TokenKind::CloseBracket)?;
        }
        return Ok(());
    }
    while parser.take(TokenKind::OpenBracket) {
        parser.take(TokenKind::Integer);
        parser.expect(TokenKind::CloseBracket)?;
    }
    if parser.is_operator(0, "%") && parser.is_word(1, "type") {
        return Err(SYNTAX);
    }
    Ok(())
}

/// Parses the fields of an interval in their plain forms: `YEAR`, `DAY TO SECOND`.
fn interval_fields(parser: &mut Parser<'_>) {
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
        if parser.words(&[first, "to", last]) {
            return;
        }
    }
    let fields = ["year", "month", "day", "hour", "minute", "second"];
    let _single = fields.iter().any(|field| parser.word(field));
}

/// Returns true for a word that may be a type, before a string or after `::`.
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
