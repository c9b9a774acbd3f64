//! A value on its way into a column.

use rusqlite::types::ValueRef;
use serde_json::value::RawValue;
use windrow_core::value::is_number;
use windrow_core::{Fault, FaultClass, Name, TableName};
use windrow_database::truth::truth;
use windrow_database::{binary, decimal, demand};

use super::packed::Datum;
use super::spelling::{Spelling, number};
use crate::values::column::ColumnType;

/// Characters of a value that a fault shows.
const SHOWN: usize = 60;

/// Where one value of a row goes.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) column: Name,
    pub(crate) column_type: ColumnType,
    pub(crate) use_: Use,
    /// Its number in the statement.
    pub(crate) parameter: usize,
}

/// What a value is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// It is stored in a column that stays as it is.
    Fixed,
    /// Value for a table that Windrow made: what its column does not keep exactly is refused.
    Firm,
    /// It belongs to a column that is not there and may be added; only NULL passes, and is left
    /// out.
    Missing,
    /// It finds a row.
    Key,
    /// It finds a row, and is a text as a path spells it.
    Spelled,
}

/// What SQLite is given for a value. `scratch` holds what had to be converted.
pub(crate) fn fit<'a>(
    datum: Datum<'a>,
    slot: &Slot,
    table: &TableName,
    scratch: &'a mut Vec<u8>,
) -> Result<ValueRef<'a>, Fault> {
    match (slot.use_, datum) {
        (Use::Firm, _) if !keeps(slot.column_type, datum) => {
            let (name, type_name) = (&slot.column, slot.column_type.sql());
            Err(demand::misfit(table, name, type_name, &datum.value()))
        }
        (Use::Firm, Datum::Text(text)) => match spelled(text, slot.column_type) {
            Some(value) => Ok(value),
            None => stored(datum, slot, table, scratch),
        },
        (Use::Key | Use::Spelled, Datum::Null) => Ok(ValueRef::Null),
        (Use::Spelled, Datum::Text(text)) => match Spelling::read(text, slot.column_type) {
            Spelling::Plain => key(datum, slot, table, scratch),
            Spelling::Value(datum) => key(datum, slot, table, scratch),
            Spelling::Quoted(text) => quoted(&text, slot, table, scratch),
        },
        (Use::Key | Use::Spelled, _) => key(datum, slot, table, scratch),
        _ => stored(datum, slot, table, scratch),
    }
}

fn quoted<'a>(
    text: &str,
    slot: &Slot,
    table: &TableName,
    scratch: &'a mut Vec<u8>,
) -> Result<ValueRef<'a>, Fault> {
    if slot.column_type == ColumnType::Json {
        return json_string(text, slot, table, scratch);
    }
    match key(Datum::Text(text), slot, table, scratch)? {
        ValueRef::Real(number) => Ok(ValueRef::Real(number)),
        ValueRef::Integer(number) => Ok(ValueRef::Integer(number)),
        ValueRef::Text(_) => {
            scratch.clear();
            scratch.extend_from_slice(text.as_bytes());
            Ok(ValueRef::Text(scratch))
        }
        _ => Ok(ValueRef::Blob(scratch)),
    }
}

/// A value that a row is found by: what storing it leaves in the column. Comparing takes a number
/// as it is, while a column of doubles has rounded it.
fn key<'a>(
    datum: Datum<'a>,
    slot: &Slot,
    table: &TableName,
    scratch: &'a mut Vec<u8>,
) -> Result<ValueRef<'a>, Fault> {
    let whole = match (datum, slot.column_type) {
        (Datum::Int(n), ColumnType::Real) => Some(n),
        (Datum::Text(text), ColumnType::Real) => trimmed(text).parse::<i64>().ok(),
        _ => None,
    };
    match whole {
        Some(n) => nearest(&n.to_string(), slot, table),
        None => stored(datum, slot, table, scratch),
    }
}

/// Without the blanks that SQLite does not mind around a number.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| matches!(c, ' ' | '\t'..='\r'))
}

/// A text as a column of JSON holds it.
fn json_string<'a>(
    text: &str,
    slot: &Slot,
    table: &TableName,
    scratch: &'a mut Vec<u8>,
) -> Result<ValueRef<'a>, Fault> {
    scratch.clear();
    match serde_json::to_writer(&mut *scratch, text) {
        Ok(()) => Ok(ValueRef::Text(scratch)),
        Err(why) => Err(misfit("22P02", slot, table, &format!("is no JSON: {why}"))),
    }
}

/// A value that is stored.
fn stored<'a>(
    datum: Datum<'a>,
    slot: &Slot,
    table: &TableName,
    scratch: &'a mut Vec<u8>,
) -> Result<ValueRef<'a>, Fault> {
    use ColumnType::{Any, Blob, Bool, Decimal, Json, Real, Text};
    // Where affinity makes a number of it, a number in JSON must be one that SQLite has.
    let datum = match (datum, slot.column_type) {
        (Datum::Json(text), Text | Decimal | Blob | Any) => Datum::Json(text),
        (Datum::Json(text), _) if is_number(text.trim().as_bytes()) => number(text.trim()),
        _ => datum,
    };
    Ok(match (datum, slot.column_type) {
        (Datum::Null, _) => ValueRef::Null,
        (Datum::Text(text), Json) => json_string(text, slot, table, scratch)?,
        (Datum::Json(text), Json) if serde_json::from_str::<&RawValue>(text).is_err() => {
            let shown = beginning(text);
            return Err(misfit(
                "22P02",
                slot,
                table,
                &format!("({shown}) is no JSON"),
            ));
        }
        (Datum::Bool(b), Text | Json) => ValueRef::Text(if b { b"true" } else { b"false" }),
        (Datum::Bool(b), _) => ValueRef::Integer(i64::from(b)),
        (Datum::Int(n), _) => ValueRef::Integer(n),
        (Datum::Number(digits), Text | Decimal) => ValueRef::Text(digits.as_bytes()),
        // No client sends this as a number, but a move finds it in another file.
        (Datum::Number("Infinity"), _) => ValueRef::Real(f64::INFINITY),
        (Datum::Number("-Infinity"), _) => ValueRef::Real(f64::NEG_INFINITY),
        (Datum::Number(digits), Real) => nearest(digits, slot, table)?,
        (Datum::Number(digits), _) if decimal::is_double(digits) => nearest(digits, slot, table)?,
        (Datum::Number(digits), Any | Blob) => ValueRef::Text(digits.as_bytes()),
        (Datum::Number(digits), _) => return Err(inexact(digits, slot, table)),
        (Datum::Text(text), Blob) => decode(text, slot, table, scratch)?,
        (Datum::Text(text), Bool) if truth(text).is_some() => {
            ValueRef::Integer(i64::from(truth(text) == Some(true)))
        }
        (Datum::Text(text) | Datum::Json(text), _) => ValueRef::Text(text.as_bytes()),
        (Datum::Bytes(bytes), _) => ValueRef::Blob(bytes),
    })
}

/// Returns true if a column that Windrow made keeps the value exactly as it is. A column of doubles
/// keeps only the digits that a double gives back, a numeric one whole numbers of 64 bits besides.
fn keeps(column_type: ColumnType, datum: Datum<'_>) -> bool {
    let kind = column_type.kind();
    let rounds_whole = column_type == ColumnType::Real;
    let rounds = rounds_whole || column_type == ColumnType::Numeric;
    let exact = |digits| !rounds || decimal::is_double(digits);
    match datum {
        Datum::Null => true,
        Datum::Bool(_) => kind.takes_bool(),
        Datum::Int(n) => kind.takes_int() && (!rounds_whole || decimal::int_is_double(n)),
        Datum::Number(digits) => kind.takes_digits(digits) && exact(digits),
        Datum::Text(text) => {
            let is_whole = !rounds_whole && text.parse::<i64>().is_ok();
            kind.takes_text(text) && (is_whole || exact(text))
        }
        Datum::Bytes(_) => kind.takes_bytes(),
        Datum::Json(_) => kind.takes_json(),
    }
}

/// The value that a text spells for a column that Windrow made.
fn spelled(text: &str, column_type: ColumnType) -> Option<ValueRef<'static>> {
    match column_type {
        ColumnType::Integer => text.parse().ok().map(ValueRef::Integer),
        ColumnType::Bool => text.parse().ok().map(|b: bool| ValueRef::Integer(b.into())),
        _ => None,
    }
}

/// Enough of a value to know it again.
fn beginning(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn nearest(digits: &str, slot: &Slot, table: &TableName) -> Result<ValueRef<'static>, Fault> {
    match digits.parse::<f64>() {
        Ok(double) if double.is_finite() => Ok(ValueRef::Real(double)),
        Ok(_) => Err(misfit(
            "22003",
            slot,
            table,
            "is out of the range of a double",
        )),
        Err(_) => Err(misfit("22P02", slot, table, "is not a number")),
    }
}

fn inexact(digits: &str, slot: &Slot, table: &TableName) -> Fault {
    let shown = beginning(digits);
    misfit(
        "22003",
        slot,
        table,
        &format!(
            "({shown}) has more digits than SQLite keeps in a numeric column; declare the column TEXT to keep \
             them all, or REAL to have it rounded"
        ),
    )
}

fn decode<'a>(
    text: &str,
    slot: &Slot,
    table: &TableName,
    scratch: &'a mut Vec<u8>,
) -> Result<ValueRef<'a>, Fault> {
    scratch.clear();
    match binary::decode(text, scratch) {
        Ok(()) => Ok(ValueRef::Blob(scratch)),
        Err(told) => Err(misfit("22P03", slot, table, &told)),
    }
}

fn misfit(code: &'static str, slot: &Slot, table: &TableName, what: &str) -> Fault {
    let column = &slot.column;
    let message = format!("the value for column {column} of table {table} {what}");
    Fault::new(FaultClass::Value, code, message)
        .with_table(Some(&*table.table))
        .with_column(Some(&**column))
}
