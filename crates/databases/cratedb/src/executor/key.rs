//! Identifies the row of a write by the values of its primary key.
//!
//! Two spellings of one value (`7` and `"007"`, a time in two zones) give the same text. If
//! equality cannot be decided, there is no key, and the caller keeps the order.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use windrow_core::{Op, Shape, Value};

use crate::catalog::table::Facts;
use crate::values::column::Kind;
use crate::values::{decode, encode, moment};

/// The primary key of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RowKey {
    /// The row, by the texts of its key's parts.
    Row(String),
    /// A part is NULL: no row has it.
    NoRow,
    /// The key cannot be derived from the write.
    Unknown,
}

impl RowKey {
    /// Returns a hash for the row, different for different tables.
    pub(crate) fn hash(&self, facts: &Facts) -> Option<u64> {
        match self {
            Self::Row(text) => Some(FixedState::default().hash_one((&facts.name, text))),
            Self::NoRow | Self::Unknown => None,
        }
    }
}

/// Returns the places of the primary key's parts in a row of the shape, in the key's order; empty
/// if the row does not name all of them.
pub(crate) fn places(shape: &Shape, facts: &Facts) -> Vec<usize> {
    let names = facts.key_names(&shape.key);
    let place = |name| match shape.op {
        Op::Insert => shape.columns.iter().position(|column| column == name),
        _ => {
            let place = names.iter().position(|column| column == name)?;
            Some(shape.columns.len() + place)
        }
    };
    if shape.op != Op::Insert && !facts.is_primary(&names) {
        return Vec::new();
    }
    let places: Option<Vec<usize>> = facts.key().map(|column| place(&column.name)).collect();
    places.unwrap_or_default()
}

/// Returns the row that a write touches.
pub(crate) fn find(facts: &Facts, places: &[usize], row: &[Value]) -> RowKey {
    if places.is_empty() {
        return RowKey::Unknown;
    }
    let mut whole = String::new();
    for (column, place) in facts.key().zip(places) {
        match row.get(*place) {
            None => return RowKey::Unknown,
            Some(Value::Null) => return RowKey::NoRow,
            Some(value) => match part(column.kind, value) {
                Some(text) => push(&mut whole, &text),
                None => return RowKey::Unknown,
            },
        }
    }
    RowKey::Row(whole)
}

/// Returns the row whose key the server returned as these JSON texts.
pub(crate) fn of_answer<'r>(facts: &Facts, raw: impl Iterator<Item = &'r str>) -> Option<String> {
    let mut whole = String::new();
    for (column, raw) in facts.key().zip(raw) {
        let text = match column.kind {
            Kind::Text => decode::text(raw),
            _ => raw.to_owned(),
        };
        push(&mut whole, &text);
    }
    Some(whole).filter(|whole| !whole.is_empty())
}

/// Appends a part such that different parts never give the same text.
fn push(whole: &mut String, part: &str) {
    whole.push_str(&part.len().to_string());
    whole.push(':');
    whole.push_str(part);
}

fn part(kind: Kind, value: &Value) -> Option<String> {
    match (kind, value) {
        (Kind::Int(most), _) => {
            let n = encode::int(value).filter(|n| (-most - 1..=most).contains(n))?;
            Some(n.to_string())
        }
        (Kind::Text, Value::Text(text) | Value::Number(text)) => Some(text.to_string()),
        (Kind::Text, Value::Int(n)) => Some(n.to_string()),
        (Kind::Bool, Value::Bool(b)) => Some(b.to_string()),
        (Kind::Bool, Value::Text(text)) if matches!(&**text, "true" | "false") => {
            Some(text.to_string())
        }
        (Kind::Timestamp { .. }, Value::Int(n)) => Some(n.to_string()),
        (Kind::Timestamp { zoned }, Value::Text(text)) => {
            moment::millis(text, zoned).map(|millis| millis.to_string())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use windrow_core::{Name, TableName};

    use super::*;
    use crate::values::column::Column;

    fn facts(kinds: &[Kind]) -> Facts {
        let columns = kinds.iter().enumerate().map(|(i, kind)| Column {
            name: Name::from(format!("k{i}")),
            kind: *kind,
            not_null: true,
        });
        Facts {
            name: TableName::bare("t"),
            columns: columns.collect(),
            primary: (0..kinds.len()).collect(),
        }
    }

    fn found(kind: Kind, value: impl Into<Value>) -> RowKey {
        find(&facts(&[kind]), &[0], &[value.into()])
    }

    #[test]
    fn spellings_of_one_value_are_one_row() {
        let long = Kind::Int(i64::MAX);
        let zoned = Kind::Timestamp { zoned: true };
        assert_eq!(found(long, 7), found(long, "007"));
        assert_eq!(found(Kind::Text, 7), found(Kind::Text, "7"));
        assert_ne!(found(Kind::Text, "a"), found(Kind::Text, "a "));
        assert_eq!(
            found(zoned, "2020-01-01T00:00:00Z"),
            found(zoned, 1_577_836_800_000_i64)
        );
        assert_eq!(found(long, Value::Null), RowKey::NoRow);
        assert_eq!(found(Kind::Float, 1), RowKey::Unknown);
        assert_eq!(found(Kind::Int(127), 128), RowKey::Unknown);
        let answered = of_answer(&facts(&[Kind::Text, long]), ["\"a\\\"b\"", "7"].into_iter());
        let asked = find(
            &facts(&[Kind::Text, long]),
            &[1, 0],
            &[7.into(), "a\"b".into()],
        );
        assert_eq!(Some(asked), answered.map(RowKey::Row));
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let two = facts(&[Kind::Text, Kind::Text]);
        let pair = |a: &str, b: &str| find(&two, &[0, 1], &[a.into(), b.into()]);
        assert_ne!(pair("ab", "c"), pair("a", "bc"));
        assert_ne!(pair("1:a", ""), pair("", "1:a"));
    }
}
