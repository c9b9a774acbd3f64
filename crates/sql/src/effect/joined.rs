//! The effect on its session of a statement that could be joined, derived from its parts.

use windrow_calls::{Expression, ParsedStatement};
use windrow_core::Op;

use super::functions;
use crate::reading::{Effect, Reading};

impl Reading {
    /// Returns the effect of the statement on the session if it is relayed.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Join(parsed) => of_joined(parsed),
            Self::Apart(apart) => apart.effect.clone(),
        }
    }
}

/// Returns the effect on the session of a joinable statement that is relayed.
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
