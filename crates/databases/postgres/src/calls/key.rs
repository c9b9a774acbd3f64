//! Finds the row that a call is about from the raw values of a unique key's columns.
//!
//! Two spellings of one value (`7` and `007`, a text and a binary number) give the same bytes in
//! every statement. If it cannot be decided whether values are equal, there is no key.

use windrow_core::{Expression, Formats, Name, Op, ParsedStatement, Piece};

use super::carrier;
use crate::catalog::column::{Column, Kind, oid};
use crate::catalog::table::Table;
use crate::statement::parsed::given;
use crate::touch::seed;
use crate::values::key::{Found, RowKey, push_bytes, push_int};
use crate::values::scalar;

/// The source of the value of a key's column.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// The parameter at this place.
    Parameter(usize, KeyReader),
    /// A constant of the statement, the same for all calls: its canonical bytes.
    Constant(Box<[u8]>),
    /// The moment of the row.
    Moment,
    /// A value that cannot be compared.
    Unknown,
}

/// The unique keys of a statement whose columns are all given, each with a seed that distinguishes
/// it from all others.
pub(crate) type Keys = Vec<(u64, Box<[Part]>)>;

/// The way to turn a value into canonical bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeyReader {
    /// Two, four or eight bytes of a whole number.
    Number,
    /// Decimal digits.
    Digits,
    /// Bytes that are equal only if the values are.
    Bytes,
    /// The text of a UUID.
    UuidText,
}

impl Part {
    /// Returns the part of a key whose column gets this expression. `parameters`: the types of the
    /// statement's parameters, and whether they are binary.
    pub(crate) fn of(
        column: &Column,
        expression: &Expression,
        parameters: &impl Fn(usize) -> Option<(u32, bool)>,
    ) -> Self {
        match expression {
            Expression::Sql(pieces) => match &**pieces {
                [Piece::Parameter(place)] => {
                    let place = usize::from(*place);
                    parameters(place)
                        .and_then(|(type_oid, binary)| reader(column, type_oid, binary))
                        .map_or(Self::Unknown, |reader| Self::Parameter(place, reader))
                }
                [Piece::Text(sql)] => {
                    constant(column, sql.trim()).map_or(Self::Unknown, Self::Constant)
                }
                _ => Self::Unknown,
            },
            Expression::Default => Self::Unknown,
        }
    }
}

/// Returns the unique keys that a statement gives, without those that hold the moment of a row.
pub(crate) fn keys(
    parsed: &ParsedStatement,
    table: &Table,
    parameters: &[u32],
    formats: &Formats,
    moments: &[Name],
) -> Keys {
    let mut keys = all_keys(parsed, table, parameters, formats, moments);
    // Every unit has its own moment, so rows that hold one always differ.
    keys.retain(|(_, parts)| !parts.iter().any(|part| matches!(part, Part::Moment)));
    keys
}

/// Returns the keys that hold the moment of a row. Two flights may get the same moment, so rows
/// that are equal in all other columns are never in two flights.
pub(crate) fn keys_of_moments(
    parsed: &ParsedStatement,
    table: &Table,
    parameters: &[u32],
    formats: &Formats,
    moments: &[Name],
) -> Keys {
    let mut keys = all_keys(parsed, table, parameters, formats, moments);
    keys.retain(|(_, parts)| parts.iter().any(|part| matches!(part, Part::Moment)));
    for (_, parts) in &mut keys {
        let is_known = |part: &Part| matches!(part, Part::Parameter(..) | Part::Constant(_));
        *parts = parts
            .iter()
            .filter(|part| is_known(part))
            .cloned()
            .collect();
    }
    keys
}

fn all_keys(
    parsed: &ParsedStatement,
    table: &Table,
    parameters: &[u32],
    formats: &Formats,
    moments: &[Name],
) -> Keys {
    let inserted;
    let named: &[(&Name, &Expression)] = if parsed.op == Op::Insert {
        inserted = given(parsed, table).unwrap_or_default();
        &inserted
    } else {
        inserted = parsed
            .keys
            .iter()
            .map(|(name, value)| (name, value))
            .collect();
        &inserted
    };
    let parameter = |place: usize| Some((*parameters.get(place)?, formats.is_binary(place)));
    let mut keys = Vec::new();
    for (number, unique) in table.uniques.iter().enumerate() {
        let part = |place: &usize| {
            let column = table.columns.get(*place)?;
            if parsed.op == Op::Insert && moments.contains(&column.name) {
                return Some(Part::Moment);
            }
            match named.iter().find(|(name, _)| **name == column.name) {
                Some((_, value)) => Some(Part::of(column, value, &parameter)),
                // The default may give many rows the same value. A value from a sequence is unique.
                None if parsed.op == Op::Insert && is_fixed(column) => Some(Part::Unknown),
                None => None,
            }
        };
        let parts: Option<Box<[Part]>> = unique.columns.iter().map(part).collect();
        if let Some(parts) = parts {
            keys.push((seed(table, number), parts));
        }
    }
    keys
}

/// Returns true if the column has a default that may give several rows the same value.
fn is_fixed(column: &Column) -> bool {
    let is_new = |sql: &String| sql.contains("nextval(");
    column.has_default && !column.identity && !column.default.as_ref().is_some_and(is_new)
}

fn is_whole(kind: &Kind) -> bool {
    matches!(kind, Kind::Int2 | Kind::Int4 | Kind::Int8)
}

/// Returns the reader that gives equal bytes for values that the column's type considers equal;
/// `None` if there is none.
fn reader(column: &Column, parameter: u32, binary: bool) -> Option<KeyReader> {
    let same = parameter == column.type_oid || parameter == column.base_oid;
    let whole = matches!(parameter, oid::INT2 | oid::INT4 | oid::INT8);
    let text = matches!(parameter, oid::TEXT | oid::VARCHAR);
    match &column.kind {
        kind if is_whole(kind) && whole => Some(if binary {
            KeyReader::Number
        } else {
            KeyReader::Digits
        }),
        // A column with a length cuts blanks off.
        Kind::Text if text && column.bytewise && column.narrowed < 0 => Some(KeyReader::Bytes),
        Kind::Uuid if same => Some(if binary {
            KeyReader::Bytes
        } else {
            KeyReader::UuidText
        }),
        Kind::Enum(_) if same => Some(KeyReader::Bytes),
        Kind::Bytea | Kind::Date if same && binary => Some(KeyReader::Bytes),
        Kind::Timestamp | Kind::Timestamptz if same && binary && column.narrowed < 0 => {
            Some(KeyReader::Bytes)
        }
        _ => None,
    }
}

/// Returns the canonical bytes of a constant in the statement's text: decimal digits, or a text in
/// quotes without any escape.
fn constant(column: &Column, sql: &str) -> Option<Box<[u8]>> {
    let mut out = Vec::new();
    let quoted = sql
        .strip_prefix('\'')
        .and_then(|rest| rest.strip_suffix('\''));
    let plain = quoted.is_none_or(|text| !text.contains(['\'', '\\']));
    match &column.kind {
        kind if is_whole(kind) && plain => {
            push_int(carrier::int(quoted.unwrap_or(sql).as_bytes())?, &mut out);
        }
        Kind::Text if plain && column.bytewise && column.narrowed < 0 => {
            push_bytes(quoted?.as_bytes(), &mut out);
        }
        Kind::Uuid if plain => push_bytes(&scalar::uuid_of(quoted?.as_bytes())?, &mut out),
        Kind::Enum(_) if plain => push_bytes(quoted?.as_bytes(), &mut out),
        _ => return None,
    }
    Some(out.into())
}

/// Returns the row that the values name.
pub(crate) fn row_key(
    seed: u64,
    parts: &[Part],
    values: &[Option<&[u8]>],
    scratch: &mut Vec<u8>,
) -> Found {
    scratch.clear();
    for part in parts {
        let (place, reader) = match part {
            Part::Parameter(place, reader) => (*place, *reader),
            Part::Constant(bytes) => {
                scratch.extend_from_slice(bytes);
                continue;
            }
            Part::Moment | Part::Unknown => return Found::Unknown,
        };
        let Some(Some(value)) = values.get(place) else {
            return Found::Nothing;
        };
        if push(reader, value, scratch).is_none() {
            return Found::Unknown;
        }
    }
    Found::Row(RowKey::of(seed, scratch))
}

#[inline]
fn push(reader: KeyReader, value: &[u8], out: &mut Vec<u8>) -> Option<()> {
    match reader {
        KeyReader::Number => push_int(number(value)?, out),
        KeyReader::Digits => push_int(carrier::int(value)?, out),
        KeyReader::Bytes => push_bytes(value, out),
        KeyReader::UuidText => push_bytes(&scalar::uuid_of(value)?, out),
    }
    Some(())
}

fn number(value: &[u8]) -> Option<i64> {
    match *value {
        [a, b] => Some(i64::from(i16::from_be_bytes([a, b]))),
        [a, b, c, d] => Some(i64::from(i32::from_be_bytes([a, b, c, d]))),
        _ => Some(i64::from_be_bytes(value.try_into().ok()?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::column::sample;

    fn found(kind: Kind, parameter: u32, binary: bool, value: &[u8]) -> Found {
        let column = sample(kind);
        let expression = Expression::Sql([Piece::Parameter(0)].into());
        let part = Part::of(&column, &expression, &|_| Some((parameter, binary)));
        row_key(1, &[part], &[Some(value)], &mut Vec::new())
    }

    #[test]
    fn spellings_of_one_number_are_one_row() {
        let seven = found(Kind::Int4, oid::INT4, true, &[0, 0, 0, 7]);
        assert_eq!(seven, found(Kind::Int4, oid::INT8, false, b"007"));
        assert_eq!(seven, found(Kind::Int4, oid::INT2, true, &[0, 7]));
        assert_ne!(seven, found(Kind::Int4, oid::INT4, false, b"8"));
        assert_eq!(found(Kind::Int4, oid::NUMERIC, false, b"7"), Found::Unknown);
        let column = sample(Kind::Int4);
        let text = Expression::Sql([Piece::Text(" 7 ".into())].into());
        let part = Part::of(&column, &text, &|_| None);
        assert_eq!(row_key(1, &[part], &[], &mut Vec::new()), seven);
    }

    #[test]
    fn what_may_be_equal_in_another_sense_is_not_told() {
        let mut column = sample(Kind::Text);
        column.bytewise = false;
        assert_eq!(reader(&column, oid::TEXT, false), None);
        column.bytewise = true;
        assert_eq!(reader(&column, oid::TEXT, false), Some(KeyReader::Bytes));
        assert_eq!(reader(&column, oid::BPCHAR, false), None);
        assert_eq!(reader(&sample(Kind::Other), 0, true), None);
        assert_eq!(constant(&column, "'it''s'"), None);
        assert_eq!(constant(&column, "lower('x')"), None);
    }
}
