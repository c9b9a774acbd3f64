//! What is read from texts: parsed statements, reasons and effects.

#![expect(clippy::panic, reason = "helpers of tests may panic")]

mod corpus;
mod effects;
mod hostile;
mod parsed;

use std::sync::Arc;

use windrow_core::{Expression, ParsedStatement, Piece};
use windrow_sql::{Apart, Reading, read};

#[test]
fn what_should_be_joined_is_joined() {
    for text in corpus::JOINED {
        if let Reading::Apart(apart) = read(text, &[]) {
            // A backslash may spell anything: in one of two ways of reading, or a time such as now.
            let is_doubtful = matches!(
                apart.reason,
                "a backslash in a plain string"
                    | "a literal that means the moment at which it is read"
            );
            assert!(
                is_doubtful && text.contains('\\'),
                "{text}: {}",
                apart.reason
            );
        }
    }
    for text in corpus::APART {
        assert!(matches!(read(text, &[]), Reading::Apart(_)), "{text}");
    }
}

#[track_caller]
fn parsed(text: &str) -> Arc<ParsedStatement> {
    match read(text, &[]) {
        Reading::Join(parsed) => parsed,
        Reading::Apart(apart) => panic!("{text}: {}", apart.reason),
    }
}

#[track_caller]
fn apart(text: &str) -> Apart {
    match read(text, &[]) {
        Reading::Apart(apart) => apart,
        Reading::Join(_) => panic!("joined: {text}"),
    }
}

/// An expression with its parameters in angles.
fn show(expression: &Expression) -> String {
    match expression {
        Expression::Default => "DEFAULT".into(),
        Expression::Sql(pieces) => pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => text.to_string(),
                Piece::Parameter(at) => format!("<{at}>"),
            })
            .collect(),
    }
}

fn pairs(pairs: &[(windrow_core::Name, Expression)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| (name.to_string(), show(value)))
        .collect()
}

fn named(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}
