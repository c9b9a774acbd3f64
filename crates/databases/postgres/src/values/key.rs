//! Keys of the rows that a write touches, computed from the values of unique keys.
//!
//! Two spellings of one value (`7` and `"007"`, a time in two zones) give the same bytes. Only
//! columns for which [`Column::makes_keys`] is true take part. If equal values cannot be
//! recognized, no key is computed, and the caller keeps the order of writes.

use foldhash::fast::FixedState;
use std::hash::BuildHasher;
use windrow_core::Value;

use super::scalar;
use crate::catalog::column::{Column, Kind};

/// A row, named by a unique key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct RowKey {
    /// A number that sorts like the key's first column, with the precision of eight bytes. By it,
    /// rows of one statement are written in the order of the index, and all batches lock rows in
    /// the same order.
    pub(crate) order: u64,
    /// A hash, the same for the same row.
    pub(crate) hash: u64,
}

impl RowKey {
    /// Returns the key of canonical bytes that sort as the values do.
    pub(crate) fn of(seed: u64, bytes: &[u8]) -> Self {
        let order = bytes
            .iter()
            .chain(std::iter::repeat(&0))
            .take(8)
            .fold(0, |order, byte| order << 8 | u64::from(*byte));
        let hash = FixedState::with_seed(seed).hash_one(bytes);
        Self { order, hash }
    }
}

/// The result of computing a [`RowKey`] from the values of a unique key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The row.
    Row(RowKey),
    /// A part of the key is NULL: no row has this key, and none conflicts with it.
    Nothing,
    /// The key cannot be computed from the values.
    Unknown,
}

/// Returns the row that the values of a unique key name. `seed` distinguishes tables and keys.
pub(crate) fn row_key<'a>(
    seed: u64,
    parts: impl IntoIterator<Item = (&'a Column, &'a Value)>,
    scratch: &mut Vec<u8>,
) -> Found {
    scratch.clear();
    for (column, value) in parts {
        if value.is_null() {
            return Found::Nothing;
        }
        if !column.makes_keys() || push(&column.kind, value, scratch).is_none() {
            return Found::Unknown;
        }
    }
    Found::Row(RowKey::of(seed, scratch))
}

/// Appends canonical bytes that sort as the values do.
fn push(kind: &Kind, value: &Value, out: &mut Vec<u8>) -> Option<()> {
    match kind {
        Kind::Int2 | Kind::Int4 | Kind::Int8 => push_int(scalar::int(value)?, out),
        Kind::Date => push_int(i64::from(scalar::date(value)?), out),
        Kind::Timestamp => push_int(scalar::moment(value)?.local(), out),
        Kind::Timestamptz => push_int(scalar::moment(value)?.utc(), out),
        Kind::Bool => out.push(u8::from(scalar::boolean(value)?)),
        Kind::Uuid => out.extend_from_slice(&scalar::uuid(value)?),
        Kind::Bytea => match value {
            Value::Bytes(bytes) => push_bytes(bytes, out),
            Value::Text(text) if !text.starts_with("\\x") => {
                push_bytes(&super::text::decode_base64(text).ok()?, out);
            }
            _ => return None,
        },
        Kind::Char => push_bytes(plain(value)?.trim_end_matches(' ').as_bytes(), out),
        Kind::Text | Kind::Enum(_) => push_text(value, out)?,
        _ => return None,
    }
    Some(())
}

pub(crate) fn push_int(n: i64, out: &mut Vec<u8>) {
    // The sign bit is inverted so that bytes sort as numbers do.
    out.extend_from_slice(&(n.cast_unsigned() ^ (1 << 63)).to_be_bytes());
}

/// Appends bytes, then their length, so that the bytes still sort and no two lists of parts are the
/// same.
pub(crate) fn push_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(bytes);
    out.extend_from_slice(&(bytes.len() as u64).to_be_bytes());
}

fn push_text(value: &Value, out: &mut Vec<u8>) -> Option<()> {
    match value {
        Value::Int(n) => push_bytes(itoa::Buffer::new().format(*n).as_bytes(), out),
        _ => push_bytes(plain(value)?.as_bytes(), out),
    }
    Some(())
}

fn plain(value: &Value) -> Option<&str> {
    match value {
        Value::Text(text) | Value::Number(text) => Some(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::column::sample;

    fn key(kind: Kind, value: impl Into<Value>) -> Found {
        row_key(1, [(&sample(kind), &value.into())], &mut Vec::new())
    }

    fn order(kind: Kind, value: impl Into<Value>) -> u64 {
        match key(kind, value) {
            Found::Row(row) => row.order,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn spellings_of_one_value_are_one_key() {
        assert_eq!(key(Kind::Int4, 7), key(Kind::Int4, "007"));
        assert_eq!(
            key(Kind::Timestamptz, "2020-01-01T00:00:00Z"),
            key(Kind::Timestamptz, "2020-01-01 01:00+01")
        );
        assert_eq!(key(Kind::Char, "a"), key(Kind::Char, "a  "));
        assert_ne!(key(Kind::Text, "a"), key(Kind::Text, "a "));
        assert_eq!(key(Kind::Text, 5), key(Kind::Text, "5"));
        assert_eq!(key(Kind::Bytea, "AP8="), key(Kind::Bytea, vec![0, 255]));
        assert_eq!(key(Kind::Int4, Value::Null), Found::Nothing);
        assert_eq!(key(Kind::Numeric, 1), Found::Unknown);
    }

    #[test]
    fn parts_do_not_run_into_each_other() {
        let column = sample(Kind::Text);
        let pair = |a: &str, b: &str| {
            let (a, b) = (Value::text(a), Value::text(b));
            row_key(1, [(&column, &a), (&column, &b)], &mut Vec::new())
        };
        assert_ne!(pair("ab", "c"), pair("a", "bc"));
    }

    #[test]
    fn keys_sort_as_values_do() {
        assert!(order(Kind::Int8, -5) < order(Kind::Int8, 3));
        assert!(order(Kind::Int8, i64::MIN) < order(Kind::Int8, i64::MAX));
        assert!(order(Kind::Text, "abc") < order(Kind::Text, "abd"));
    }
}
