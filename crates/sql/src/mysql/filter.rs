//! Splits WHERE into keys and all other conditions.

use windrow_core::{Expression, Name, Piece};

use super::expression::{EndingWords, expression};
use super::reader::Reader;
use crate::clause::MAX_KEYS;
use crate::lex::TokenKind;
use crate::parse::{DEPTH, Refusal};

const NO_KEY: Refusal = "no condition column = value";

/// The deepest nesting of parentheses around conditions that all must hold.
const MAX_DEPTH: u8 = 16;

/// The keys and the other conditions of a WHERE.
pub(super) type Filter = (Box<[(Name, Expression)]>, Option<Expression>);

/// The conditions of a WHERE that all must hold.
#[derive(Default)]
struct Conditions {
    keys: Vec<(Name, Expression)>,
    others: Vec<Piece>,
}

/// Reads WHERE, which must have a condition `column = value`.
pub(super) fn filter(reader: &mut Reader<'_>) -> Result<Filter, Refusal> {
    if !reader.word("where") {
        return Err(NO_KEY);
    }
    let part = expression(reader, EndingWords::End)?;
    let mut conditions = Conditions::default();
    conditions.add(reader, part.from, part.to, 0)?;
    if conditions.keys.is_empty() {
        return Err(NO_KEY);
    }
    let others = conditions.others;
    let others = (!others.is_empty()).then(|| Expression::Sql(others.into()));
    Ok((conditions.keys.into(), others))
}

impl Conditions {
    /// Adds the conditions between two tokens.
    fn add(
        &mut self,
        reader: &mut Reader<'_>,
        from: usize,
        to: usize,
        depth: u8,
    ) -> Result<(), Refusal> {
        if depth > MAX_DEPTH {
            return Err(DEPTH);
        }
        let Some(parts) = conjuncts(reader, from, to) else {
            return self.other(reader, from, to);
        };
        for (from, to) in parts {
            if let Some((name, value)) = key(reader, from, to)? {
                // A second condition on the same column is a condition like any other.
                let is_second = || self.keys.iter().any(|(known, _)| *known == name);
                match self.keys.len() == MAX_KEYS || is_second() {
                    true => self.other(reader, from, to)?,
                    false => self.keys.push((name, value)),
                }
            } else if is_enclosed(reader, from, to) {
                self.add(reader, from + 1, to - 1, depth + 1)?;
            } else {
                self.other(reader, from, to)?;
            }
        }
        Ok(())
    }

    /// Adds a condition that is not a key.
    fn other(&mut self, reader: &Reader<'_>, from: usize, to: usize) -> Result<(), Refusal> {
        if !self.others.is_empty() {
            self.others.push(Piece::Text(" AND ".into()));
        }
        self.others.push(Piece::Text("(".into()));
        reader.pieces(from, to, &mut self.others)?;
        self.others.push(Piece::Text(")".into()));
        Ok(())
    }
}

/// Returns the conditions that AND joins outside of parentheses. `None` if there is an operator of
/// lower precedence than AND.
fn conjuncts(reader: &Reader<'_>, from: usize, to: usize) -> Option<Vec<(usize, usize)>> {
    let (mut parts, mut start) = (Vec::new(), from);
    // An AND that belongs to BETWEEN joins no conditions, and neither does one in CASE.
    let (mut depth, mut betweens, mut cases) = (0_u32, 0_u32, 0_u32);
    for at in from..to {
        let is_keyword = at == 0 || reader.kind_at(at - 1) != TokenKind::Dot;
        match reader.kind_at(at) {
            TokenKind::Open => depth += 1,
            TokenKind::Close => depth = depth.saturating_sub(1),
            TokenKind::Word if depth == 0 && is_keyword => {
                if reader.is_any_at(at, &["or", "xor"]) && cases == 0 {
                    return None;
                }
                betweens += u32::from(reader.is_word_at(at, "between"));
                cases += u32::from(reader.is_word_at(at, "case"));
                cases -= u32::from(cases > 0 && reader.is_word_at(at, "end"));
            }
            TokenKind::Operator if depth == 0 && reader.slice_at(at) == "||" => return None,
            _ => {}
        }
        let is_and = reader.is_word_at(at, "and") || reader.is_operator_at(at, "&&");
        if depth == 0 && cases == 0 && is_keyword && is_and {
            if betweens > 0 {
                betweens -= 1;
            } else {
                parts.push((start, at));
                start = at + 1;
            }
        }
    }
    parts.push((start, to));
    Some(parts)
}

/// Returns true if one pair of parentheses encloses all of it.
fn is_enclosed(reader: &Reader<'_>, from: usize, to: usize) -> bool {
    if reader.kind_at(from) != TokenKind::Open {
        return false;
    }
    let mut depth = 0_u32;
    for at in from..to {
        match reader.kind_at(at) {
            TokenKind::Open => depth += 1,
            TokenKind::Close => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1 == to;
        }
    }
    false
}

/// Reads a condition of the form `column = value` or `column IN (value)`, where the value is a
/// literal or a parameter.
fn key(
    reader: &mut Reader<'_>,
    from: usize,
    to: usize,
) -> Result<Option<(Name, Expression)>, Refusal> {
    let after = reader.at;
    reader.at = from;
    let column = reader.column();
    let equals = reader.at;
    reader.at = after;
    let Ok(column) = column else {
        return Ok(None);
    };
    let is_list = reader.is_word_at(equals, "in") && is_enclosed(reader, equals + 1, to);
    let (from, to) = match is_list {
        true => (equals + 2, to - 1),
        false => (equals + 1, to),
    };
    if !(is_list || reader.is_operator_at(equals, "=")) || !is_value(reader, from, to) {
        return Ok(None);
    }
    Ok(Some((column, reader.expression_of(from, to)?)))
}

/// Returns true if the tokens are one literal or parameter.
fn is_value(reader: &Reader<'_>, from: usize, to: usize) -> bool {
    let is_signed = reader.is_operator_at(from, "-") || reader.is_operator_at(from, "+");
    let kind = reader.kind_at(from + usize::from(is_signed));
    match to.checked_sub(from) {
        Some(1) => matches!(
            kind,
            TokenKind::Parameter
                | TokenKind::Text
                | TokenKind::Special
                | TokenKind::Bits
                | TokenKind::Integer
                | TokenKind::Decimal
        ),
        Some(2) => is_signed && matches!(kind, TokenKind::Integer | TokenKind::Decimal),
        _ => false,
    }
}
