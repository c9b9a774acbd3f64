//! SQL calls as row writes, for the spool: what is applied later by the row's values must be what
//! the call would have written now.
//!
//! Only what is certain is taken: a plain INSERT of one row whose values are parameters, each of
//! the type of its column and spelled in a way that reads the same under all settings. Everything
//! else is nobody's row, and its client waits for the commit.

mod civil;

use std::sync::Arc;

use windrow_calls::{Arguments, AsRow, Formats};
use windrow_core::shape::ShapeParts;
use windrow_core::{Key, Name, OnConflict, Op, Returning, RowWrite, Shape, Value};

use super::meaning::Meaning;
use crate::catalog::column::{Column, Kind};
use crate::values::{scalar, time};

/// What calls of a statement are as rows.
#[derive(Debug)]
pub(super) struct RowForm {
    shape: Arc<Shape>,
    /// Where the value of each of the shape's columns comes from.
    sources: Box<[Source]>,
    generates: bool,
}

/// Where a value comes from.
#[derive(Debug)]
enum Source {
    Null,
    /// A parameter, of this type.
    Parameter(usize, Kind),
}

impl RowForm {
    /// What calls of a statement are; `None` where that is not certain.
    pub(super) fn of(meaning: &Meaning) -> Option<Self> {
        let (parsed, facts) = (&meaning.parsed, &meaning.table.facts);
        let plain = parsed.op == Op::Insert
            && parsed.set_based
            && parsed.conflict.is_none()
            && parsed.returning.is_none()
            && parsed.overriding.is_none()
            && meaning.proven;
        let names = parsed.columns.as_ref().filter(|_| plain)?;
        let (mut columns, mut sources) = (Vec::new(), Vec::new());
        for (name, value) in names.iter().zip(&parsed.values) {
            let column = facts.columns.iter().find(|column| column.name == *name)?;
            if let Some(source) = source(column, value, &meaning.signature.parameters)? {
                columns.push(Name::clone(name));
                sources.push(source);
            }
        }
        (!columns.is_empty()).then(|| Self {
            shape: Arc::new(Shape::new(ShapeParts {
                op: Op::Insert,
                table: facts.name.clone(),
                columns: columns.into(),
                key: Key::Primary,
                on_conflict: OnConflict::Error,
                returning: Returning::Nothing,
            })),
            sources: sources.into(),
            generates: meaning.generated.is_some(),
        })
    }

    /// A call as a row; `None` where a value may not read the same elsewhere.
    pub(super) fn row(&self, arguments: &Arguments, formats: &Formats) -> Option<AsRow> {
        let arguments: smallvec::SmallVec<[Option<&[u8]>; 16]> = arguments.iter().collect();
        let value = |source: &Source| match source {
            Source::Null => Some(Value::Null),
            Source::Parameter(place, kind) => match arguments.get(*place)? {
                None => Some(Value::Null),
                Some(bytes) if formats.is_binary(*place) => binary(kind, bytes),
                Some(bytes) => text(kind, std::str::from_utf8(bytes).ok()?),
            },
        };
        let row: Option<Vec<Value>> = self.sources.iter().map(value).collect();
        Some(AsRow {
            write: RowWrite::new(Arc::clone(&self.shape), row?),
            generates: self.generates,
        })
    }
}

/// Where a column's value comes from. Outside `None`: not from a value that is certain; inside: the
/// column gets its default.
fn source(
    column: &Column,
    value: &windrow_calls::Expression,
    types: &[u32],
) -> Option<Option<Source>> {
    use windrow_calls::{Expression, Piece};

    if column.always_generated || column.no_value_yet {
        return None;
    }
    match value {
        Expression::Default => Some(None),
        Expression::Sql(pieces) => match &**pieces {
            [Piece::Text(word)] if word.trim().eq_ignore_ascii_case("null") => {
                Some(Some(Source::Null))
            }
            [Piece::Parameter(place)] => {
                let place = usize::from(*place);
                let kind = Kind::of(*types.get(place)?);
                let kind = travels(column, kind, *types.get(place)?)?;
                Some(Some(Source::Parameter(place, kind)))
            }
            _ => None,
        },
    }
}

/// As what a parameter's values are read that go into a column: its own type, where assigning it
/// does what the column does with the same text.
fn travels(column: &Column, given: Kind, type_oid: u32) -> Option<Kind> {
    let whole = |kind: &Kind| matches!(kind, Kind::Int2 | Kind::Int4 | Kind::Int8);
    let exact = |kind: &Kind| whole(kind) || *kind == Kind::Numeric;
    let fits = match &column.kind {
        Kind::Text | Kind::Char => matches!(given, Kind::Text | Kind::Char),
        Kind::Numeric | Kind::Float8 => exact(&given) || given == column.kind,
        Kind::Float4 => given == Kind::Float4,
        Kind::Enum(_) if type_oid == column.base_oid => return Some(column.kind.clone()),
        kind if whole(kind) => whole(&given),
        Kind::Bool
        | Kind::Bytea
        | Kind::Uuid
        | Kind::Json
        | Kind::Jsonb
        | Kind::Timestamptz
        | Kind::Timestamp
        | Kind::Date => type_oid == column.base_oid,
        _ => false,
    };
    fits.then_some(given)
}

/// A value that came as text.
fn text(kind: &Kind, text: &str) -> Option<Value> {
    let own = || Value::text(text);
    if text.contains('\0') {
        return None;
    }
    match kind {
        Kind::Int2 | Kind::Int4 | Kind::Int8 => scalar::int(&own()).map(Value::Int),
        Kind::Float4 | Kind::Float8 => scalar::plain_double(text.as_bytes()).map(|_| own()),
        Kind::Numeric => scalar::is_numeric(text).then(own),
        Kind::Text | Kind::Char | Kind::Enum(_) => Some(own()),
        Kind::Bool => scalar::boolean(&own()).map(Value::Bool),
        Kind::Uuid => scalar::uuid_of(text.as_bytes()).map(|_| own()),
        Kind::Bytea => hex(text.strip_prefix("\\x")?).map(|bytes| Value::Bytes(bytes.into())),
        Kind::Json | Kind::Jsonb => json(text),
        Kind::Date => time::date(text).map(|_| own()),
        Kind::Timestamp | Kind::Timestamptz => {
            // Without an offset a time zone decides, which may be another one where it is applied.
            let has_offset = text.get(10..)?.contains(['+', '-', 'Z', 'z']);
            let is_certain = has_offset == (*kind == Kind::Timestamptz);
            time::moment(text).filter(|_| is_certain).map(|_| own())
        }
        Kind::Array(..) | Kind::Composite | Kind::Other => None,
    }
}

/// A value that came in the binary format of its type.
fn binary(kind: &Kind, bytes: &[u8]) -> Option<Value> {
    match kind {
        Kind::Int2 => Some(Value::Int(
            i16::from_be_bytes(bytes.try_into().ok()?).into(),
        )),
        Kind::Int4 => Some(Value::Int(
            i32::from_be_bytes(bytes.try_into().ok()?).into(),
        )),
        Kind::Int8 => Some(Value::Int(i64::from_be_bytes(bytes.try_into().ok()?))),
        Kind::Float8 => Some(Value::from(f64::from_be_bytes(bytes.try_into().ok()?))),
        Kind::Bool => match bytes {
            [0] => Some(Value::Bool(false)),
            [1] => Some(Value::Bool(true)),
            _ => None,
        },
        Kind::Uuid => {
            let number = u128::from_be_bytes(bytes.try_into().ok()?);
            Some(Value::text(format!("{number:032x}")))
        }
        Kind::Bytea => Some(Value::Bytes(bytes.into())),
        Kind::Jsonb => match bytes.split_first() {
            Some((1, rest)) => json(std::str::from_utf8(rest).ok()?),
            _ => None,
        },
        Kind::Text | Kind::Char | Kind::Enum(_) | Kind::Json => {
            text(kind, std::str::from_utf8(bytes).ok()?)
        }
        Kind::Date => civil::date(i32::from_be_bytes(bytes.try_into().ok()?)).map(Value::text),
        Kind::Timestamp | Kind::Timestamptz => {
            let micros = i64::from_be_bytes(bytes.try_into().ok()?);
            let zone = if *kind == Kind::Timestamptz { "Z" } else { "" };
            civil::moment(micros).map(|text| Value::text(format!("{text}{zone}")))
        }
        Kind::Float4 | Kind::Numeric | Kind::Array(..) | Kind::Composite | Kind::Other => None,
    }
}

/// Objects and arrays: a text alone would be taken for a text.
fn json(text: &str) -> Option<Value> {
    let is_nested = text.trim_start().starts_with(['{', '[']);
    is_nested.then(|| Value::Json(text.into()))
}

fn hex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).ok().filter(|p| p.len() == 2)?;
        u8::from_str_radix(pair, 16)
            .ok()
            .filter(|_| !pair.starts_with('+'))
    };
    pairs.map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_reads_the_same_everywhere_is_taken() {
        let taken = [
            (Kind::Int4, "-7", Value::Int(-7)),
            (Kind::Numeric, "1.50", Value::text("1.50")),
            (Kind::Bool, "t", Value::Bool(true)),
            (Kind::Text, "it's", Value::text("it's")),
            (Kind::Date, "2024-02-29", Value::text("2024-02-29")),
            (
                Kind::Timestamp,
                "2024-02-29 12:00:00",
                Value::text("2024-02-29 12:00:00"),
            ),
            (
                Kind::Timestamptz,
                "2024-02-29 12:00:00+01",
                Value::text("2024-02-29 12:00:00+01"),
            ),
            (Kind::Bytea, "\\x00fF", Value::Bytes([0, 255].into())),
            (Kind::Jsonb, "{\"a\": 1}", Value::Json("{\"a\": 1}".into())),
        ];
        for (kind, given, value) in taken {
            assert_eq!(text(&kind, given), Some(value), "{kind:?} {given}");
        }
        for (kind, given) in [
            (Kind::Int4, " 7"),
            (Kind::Int4, "0x10"),
            (Kind::Numeric, "NaN"),
            (Kind::Date, "now"),
            (Kind::Date, "1/2/2024"),
            (Kind::Timestamptz, "2024-02-29 12:00:00"),
            (Kind::Timestamp, "2024-02-29 12:00:00+01"),
            (Kind::Bytea, "abc"),
            (Kind::Bytea, "\\x0"),
            (Kind::Bytea, "\\x+1"),
            (Kind::Json, "\"text\""),
            (Kind::Text, "a\0b"),
            (Kind::Other, "x"),
        ] {
            assert_eq!(text(&kind, given), None, "{kind:?} {given}");
        }
    }

    #[test]
    fn binary_values_are_spelled() {
        let day = 8825_i32;
        let micros = i64::from(day) * 86_400_000_000 + 1;
        for (kind, bytes, value) in [
            (Kind::Int2, &[255, 255][..], Value::Int(-1)),
            (Kind::Float8, &1.5_f64.to_be_bytes()[..], Value::from(1.5)),
            (
                Kind::Date,
                &day.to_be_bytes()[..],
                Value::text("2024-02-29"),
            ),
            (
                Kind::Timestamptz,
                &micros.to_be_bytes()[..],
                Value::text("2024-02-29T00:00:00.000001Z"),
            ),
            (Kind::Jsonb, b"\x01[1]", Value::Json("[1]".into())),
        ] {
            assert_eq!(binary(&kind, bytes), Some(value), "{kind:?}");
        }
        assert_eq!(binary(&Kind::Int4, &[1]), None);
        assert_eq!(binary(&Kind::Date, &i32::MAX.to_be_bytes()), None);
    }
}
