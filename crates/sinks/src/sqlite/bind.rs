//! A value on its way into a column.

use rusqlite::types::ValueRef;
use windrow_core::value::is_number;
use windrow_core::{Fault, FaultClass, TableName};

use super::column::ColumnType;
use super::packed::Datum;
use super::spelling::{Spelling, number};
use super::statement::{Slot, Use};
use crate::sql::{binary, decimal};

/// Why a value cannot go into its column.
#[derive(Debug)]
pub(super) enum Misfit {
    /// It never can.
    Fault(Fault),
    /// It can once the table has been extended or the column widened.
    Grow,
}

/// What SQLite is given for a value. `scratch` holds what had to be converted.
pub(super) fn fit<'a>(
    datum: Datum<'a>,
    slot: &Slot,
    table: &TableName,
    scratch: &'a mut Vec<u8>,
) -> Result<ValueRef<'a>, Misfit> {
    match (slot.use_, datum) {
        (Use::Growing, _) if !keeps(slot.column_type, datum) => Err(Misfit::Grow),
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
) -> Result<ValueRef<'a>, Misfit> {
    match key(Datum::Text(text), slot, table, scratch)? {
        ValueRef::Real(number) => Ok(ValueRef::Real(number)),
        ValueRef::Text(_) => {
            scratch.clear();
            scratch.extend_from_slice(text.as_bytes());
            Ok(ValueRef::Text(scratch))
        }
        _ => Ok(ValueRef::Blob(scratch)),
    }
}

/// A value that a row is found by: what storing it leaves in the column. Comparing takes a number as it is, while a column of
/// doubles has rounded it.
fn key<'a>(
    datum: Datum<'a>,
    slot: &Slot,
    table: &TableName,
    scratch: &'a mut Vec<u8>,
) -> Result<ValueRef<'a>, Misfit> {
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

/// A value that is stored.
fn stored<'a>(
    datum: Datum<'a>,
    slot: &Slot,
    table: &TableName,
    scratch: &'a mut Vec<u8>,
) -> Result<ValueRef<'a>, Misfit> {
    use ColumnType::{Any, Blob, Decimal, Json, Real, Text};
    // Where affinity makes a number of it, a number in JSON must be one that SQLite has.
    let datum = match (datum, slot.column_type) {
        (Datum::Json(text), Text | Decimal | Blob | Any) => Datum::Json(text),
        (Datum::Json(text), _) if is_number(text.trim().as_bytes()) => number(text.trim()),
        _ => datum,
    };
    Ok(match (datum, slot.column_type) {
        (Datum::Null, _) => ValueRef::Null,
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
        (Datum::Text(text) | Datum::Json(text), _) => ValueRef::Text(text.as_bytes()),
        (Datum::Bytes(bytes), _) => ValueRef::Blob(bytes),
    })
}

/// True where a column that Windrow made keeps the value exactly as it is.
fn keeps(column_type: ColumnType, datum: Datum<'_>) -> bool {
    use ColumnType::{Any, Blob, Bool, Decimal, Integer, Json, Numeric, Real, Text};
    match (column_type, datum) {
        (Text | Numeric | Any, _) | (_, Datum::Null) => true,
        (Bool, datum) => matches!(datum, Datum::Bool(_)),
        (Integer, datum) => matches!(datum, Datum::Int(_)),
        (Real, Datum::Int(n)) => decimal::int_is_double(n),
        (Real, Datum::Number(digits)) => decimal::is_double(digits),
        (Real, _) => false,
        (Decimal, datum) => matches!(datum, Datum::Int(_) | Datum::Number(_)),
        (Json, datum) => matches!(datum, Datum::Json(_)),
        (Blob, datum) => matches!(datum, Datum::Bytes(_) | Datum::Text(_)),
    }
}

fn nearest(digits: &str, slot: &Slot, table: &TableName) -> Result<ValueRef<'static>, Misfit> {
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

fn inexact(digits: &str, slot: &Slot, table: &TableName) -> Misfit {
    let shown: String = digits.chars().take(60).collect();
    let cut = if shown.len() < digits.len() {
        "..."
    } else {
        ""
    };
    misfit(
        "22003",
        slot,
        table,
        &format!(
            "({shown}{cut}) has more digits than SQLite keeps in a numeric column; declare the column TEXT to keep \
             them all, or REAL to have it rounded"
        ),
    )
}

fn decode<'a>(
    text: &str,
    slot: &Slot,
    table: &TableName,
    scratch: &'a mut Vec<u8>,
) -> Result<ValueRef<'a>, Misfit> {
    scratch.clear();
    match binary::decode(text, scratch) {
        Ok(()) => Ok(ValueRef::Blob(scratch)),
        Err(told) => Err(misfit("22P03", slot, table, &told)),
    }
}

fn misfit(code: &'static str, slot: &Slot, table: &TableName, what: &str) -> Misfit {
    let column = &slot.column;
    let message = format!("the value for column {column} of table {table} {what}");
    Misfit::Fault(
        Fault::new(FaultClass::Value, code, message)
            .with_table(Some(&*table.table))
            .with_column(Some(&**column)),
    )
}
