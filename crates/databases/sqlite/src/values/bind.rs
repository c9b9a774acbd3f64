//! Converts a value for its column.

use rusqlite::types::ValueRef;
use serde_json::value::RawValue;
use windrow_core::value::is_number;
use windrow_core::{Fault, FaultClass, Name, TableName};
use windrow_database::truth::truth;
use windrow_database::{binary, decimal, demand};

use super::moment::stored_form;
use super::packed::Datum;
use super::spelling::{Spelling, number};
use crate::values::column::ColumnType;

/// Characters of a value that a fault shows.
const SHOWN: usize = 60;

/// The parameter of one value of a row.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) column: Name,
    pub(crate) column_type: ColumnType,
    pub(crate) use_: Use,
    /// The parameter's number in the statement.
    pub(crate) parameter: usize,
}

/// The use of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Stored in a column of a table that Windrow did not create.
    Fixed,
    /// Stored in a table that Windrow created: a value that its column does not keep exactly is
    /// refused.
    Firm,
    /// Stored in a column that is missing and may be added. Only NULL passes, and is left out.
    Missing,
    /// Part of the key that finds a row.
    Key,
    /// Part of the key that finds a row, as a text of a path.
    Spelled,
}

/// A column of a table, for a value and for faults about it.
#[derive(Clone, Copy)]
struct ColumnPlace<'s> {
    slot: &'s Slot,
    table: &'s TableName,
}

/// Converts a value for SQLite. `scratch` holds converted bytes.
pub(crate) fn fit<'a>(
    datum: Datum<'a>,
    slot: &Slot,
    table: &TableName,
    scratch: &'a mut Vec<u8>,
) -> Result<ValueRef<'a>, Fault> {
    let at = ColumnPlace { slot, table };
    match (slot.use_, datum) {
        (Use::Firm, _) if !keeps(slot.column_type, datum) => {
            let (name, type_name) = (&slot.column, slot.column_type.sql());
            Err(demand::misfit(table, name, type_name, &datum.value()))
        }
        (Use::Firm, Datum::Text(text)) => match spelled(text, slot.column_type) {
            Some(value) => Ok(value),
            None => stored(datum, at, scratch),
        },
        (Use::Key | Use::Spelled, Datum::Null) => Ok(ValueRef::Null),
        (Use::Spelled, Datum::Text(text)) => match Spelling::read(text, slot.column_type) {
            Spelling::Plain => key(datum, at, scratch),
            Spelling::Value(datum) => key(datum, at, scratch),
            Spelling::Quoted(text) => quoted(&text, at, scratch),
        },
        (Use::Key | Use::Spelled, _) => key(datum, at, scratch),
        _ => stored(datum, at, scratch),
    }
}

fn quoted<'a>(
    text: &str,
    at: ColumnPlace<'_>,
    scratch: &'a mut Vec<u8>,
) -> Result<ValueRef<'a>, Fault> {
    if at.slot.column_type == ColumnType::Json {
        return json_string(text, at, scratch);
    }
    match key(Datum::Text(text), at, scratch)? {
        ValueRef::Real(number) => Ok(ValueRef::Real(number)),
        ValueRef::Integer(number) => Ok(ValueRef::Integer(number)),
        ValueRef::Text(_) => {
            let form = in_form(text, at.slot.column_type);
            scratch.clear();
            scratch.extend_from_slice(form.as_deref().unwrap_or(text).as_bytes());
            Ok(ValueRef::Text(scratch))
        }
        _ => Ok(ValueRef::Blob(scratch)),
    }
}

/// Converts a value that finds a row to what its column stores. SQLite compares the number as it
/// is, while a column of doubles has rounded it.
fn key<'a>(
    datum: Datum<'a>,
    at: ColumnPlace<'_>,
    scratch: &'a mut Vec<u8>,
) -> Result<ValueRef<'a>, Fault> {
    let whole = match (datum, at.slot.column_type) {
        (Datum::Int(n), ColumnType::Real) => Some(n),
        (Datum::Text(text), ColumnType::Real) => trimmed(text).parse::<i64>().ok(),
        _ => None,
    };
    match whole {
        Some(n) => nearest(&n.to_string(), at),
        None => stored(datum, at, scratch),
    }
}

/// Removes the blanks that SQLite ignores around a number.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| matches!(c, ' ' | '\t'..='\r'))
}

/// Converts a text to a JSON string.
fn json_string<'a>(
    text: &str,
    at: ColumnPlace<'_>,
    scratch: &'a mut Vec<u8>,
) -> Result<ValueRef<'a>, Fault> {
    scratch.clear();
    match serde_json::to_writer(&mut *scratch, text) {
        Ok(()) => Ok(ValueRef::Text(scratch)),
        Err(why) => Err(misfit("22P02", at, &format!("is no JSON: {why}"))),
    }
}

/// Converts a value that is stored.
fn stored<'a>(
    datum: Datum<'a>,
    at: ColumnPlace<'_>,
    scratch: &'a mut Vec<u8>,
) -> Result<ValueRef<'a>, Fault> {
    use ColumnType::{Any, Blob, Bool, Decimal, Json, Real, Text};
    // If affinity converts JSON to a number, SQLite must be able to hold it.
    let datum = match (datum, at.slot.column_type) {
        (Datum::Json(text), Text | Decimal | Blob | Any) => Datum::Json(text),
        (Datum::Json(text), _) if is_number(text.trim().as_bytes()) => number(text.trim()),
        _ => datum,
    };
    Ok(match (datum, at.slot.column_type) {
        (Datum::Null, _) => ValueRef::Null,
        (Datum::Text(text), Json) => json_string(text, at, scratch)?,
        (Datum::Json(text), Json) if serde_json::from_str::<&RawValue>(text).is_err() => {
            let shown = beginning(text);
            return Err(misfit("22P02", at, &format!("({shown}) is no JSON")));
        }
        (Datum::Bool(b), Text | Json) => ValueRef::Text(if b { b"true" } else { b"false" }),
        (Datum::Bool(b), _) => ValueRef::Integer(i64::from(b)),
        (Datum::Int(n), _) => ValueRef::Integer(n),
        (Datum::Number(digits), Text | Decimal) => ValueRef::Text(digits.as_bytes()),
        // No client sends this as a number, but a move finds it in another file.
        (Datum::Number("Infinity"), _) => ValueRef::Real(f64::INFINITY),
        (Datum::Number("-Infinity"), _) => ValueRef::Real(f64::NEG_INFINITY),
        (Datum::Number(digits), Real) => nearest(digits, at)?,
        (Datum::Number(digits), _) if decimal::is_double(digits) => nearest(digits, at)?,
        (Datum::Number(digits), Any | Blob) => ValueRef::Text(digits.as_bytes()),
        (Datum::Number(digits), _) => return Err(inexact(digits, at)),
        (Datum::Text(text), Blob) => decode(text, at, scratch)?,
        (Datum::Text(text), Bool) if truth(text).is_some() => {
            ValueRef::Integer(i64::from(truth(text) == Some(true)))
        }
        (Datum::Text(text) | Datum::Json(text), of) => match in_form(text, of) {
            Some(form) => {
                *scratch = form.into_bytes();
                ValueRef::Text(scratch)
            }
            None => ValueRef::Text(text.as_bytes()),
        },
        (Datum::Bytes(bytes), _) => ValueRef::Blob(bytes),
    })
}

/// Returns true if a column that Windrow created keeps the value exactly. A column of doubles keeps
/// the digits that a double returns, a numeric one also whole numbers of 64 bits.
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

/// Returns the value that a text spells for a column that Windrow created.
fn spelled(text: &str, column_type: ColumnType) -> Option<ValueRef<'static>> {
    match column_type {
        ColumnType::Integer => text.parse().ok().map(ValueRef::Integer),
        ColumnType::Bool => text.parse().ok().map(|b: bool| ValueRef::Integer(b.into())),
        _ => None,
    }
}

/// Returns the text of a moment for a column that has one text for each.
fn in_form(text: &str, column_type: ColumnType) -> Option<String> {
    match column_type {
        ColumnType::UniformMoment(holds) => stored_form(text, holds),
        _ => None,
    }
}

/// Returns the beginning of a value, for a message.
fn beginning(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn nearest(digits: &str, at: ColumnPlace<'_>) -> Result<ValueRef<'static>, Fault> {
    match digits.parse::<f64>() {
        Ok(double) if double.is_finite() => Ok(ValueRef::Real(double)),
        Ok(_) => Err(misfit("22003", at, "is out of the range of a double")),
        Err(_) => Err(misfit("22P02", at, "is not a number")),
    }
}

fn inexact(digits: &str, at: ColumnPlace<'_>) -> Fault {
    let shown = beginning(digits);
    misfit(
        "22003",
        at,
        &format!(
            "({shown}) has more digits than SQLite keeps in a numeric column; declare the column TEXT to keep \
             them all, or REAL to have it rounded"
        ),
    )
}

fn decode<'a>(
    text: &str,
    at: ColumnPlace<'_>,
    scratch: &'a mut Vec<u8>,
) -> Result<ValueRef<'a>, Fault> {
    scratch.clear();
    match binary::decode(text, scratch) {
        Ok(()) => Ok(ValueRef::Blob(scratch)),
        Err(why) => Err(misfit("22P03", at, &why)),
    }
}

fn misfit(code: &'static str, at: ColumnPlace<'_>, what: &str) -> Fault {
    let ColumnPlace { slot, table } = at;
    let column = &slot.column;
    let message = format!("the value for column {column} of table {table} {what}");
    Fault::new(FaultClass::Value, code, message)
        .with_table(Some(&*table.table))
        .with_column(Some(&**column))
}
