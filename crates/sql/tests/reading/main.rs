//! What is read from texts: drafts, reasons and effects.

#![expect(clippy::panic, reason = "helpers of tests may panic")]

mod drafts;
mod effects;

use std::sync::Arc;

use windrow_core::Draft;
use windrow_core::statement::{Expression, Piece};
use windrow_sql::{Apart, Reading, read};

#[track_caller]
fn draft(text: &str) -> Arc<Draft> {
    match read(text, &[]) {
        Reading::Join(draft) => draft,
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
