//! What a statement that could be joined leaves behind, read off its parts.

use windrow_calls::{Expression, ParsedStatement};
use windrow_core::Op;

use super::functions;
use crate::reading::{Effect, Reading};

impl Reading {
    /// What the statement does to the session when it goes to the server by itself.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Join(parsed) => of_joined(parsed),
            Self::Apart(apart) => apart.effect.clone(),
        }
    }
}

/// What a statement that could be joined does when it goes to the server by itself.
pub(crate) fn of_joined(parsed: &ParsedStatement) -> Effect {
    let generates = parsed.op == Op::Insert
        || parsed
            .assignments
            .iter()
            .any(|(_, value)| *value == Expression::Default);
    let mut effect = if generates {
        Effect::Generates
    } else {
        Effect::Nothing
    };
    for function in &parsed.functions {
        let built_in = function
            .schema
            .as_deref()
            .is_none_or(|schema| schema == "pg_catalog");
        match functions::effect(&function.table) {
            _ if !built_in => return Effect::Unknown,
            Effect::Nothing => {}
            Effect::Generates => effect = Effect::Generates,
            other => return other,
        }
    }
    effect
}
