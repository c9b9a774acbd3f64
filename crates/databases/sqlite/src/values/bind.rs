//! A value on its way into a column.

use rusqlite::types::ValueRef;
use windrow_core::value::is_number;
use windrow_core::{Fault, FaultClass, Name, TableName};
use windrow_database::{binary, decimal};

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
    /// It is stored in a column that may be widened for it.
    Growing,
    /// It is stored in a column of a key, in a table that Windrow made: what is not kept exactly is
    /// refused.
    Firm,
    /// It belongs to a column that is not there and may be added; only NULL passes, and is left
    /// out.
    Missing,
    /// It finds a row.
    Key,
    /// It finds a row, and is a text as a path spells it.
    Spelled,
}

/// Why a value cannot go into its column.
#[derive(Debug)]
pub(crate) enum Misfit {
    /// It never can.
    Fault(Fault),
    /// It can once the table has been extended or the column widened.
    Grow,
}

/// What SQLite is given for a value. `scratch` holds what had to be converted.
pub(crate) fn fit<'a>(
    datum: Datum<'a>,
    slot: &Slot,
    table: &TableName,
    scratch: &'a mut Vec<u8>,
) -> Result<ValueRef<'a>, Misfit> {
    match (slot.use_, datum) {
        (Use::Growing, _) if !keeps(slot.column_type, datum) => Err(Misfit::Grow),
        (Use::Firm, _) if !keeps(slot.column_type, datum) => match whole(slot.column_type, datum) {
            Some(number) => Ok(ValueRef::Integer(number)),
            None => Err(firm(datum, slot, table)),
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

/// A value that a row is found by: what storing it leaves in the column. Comparing takes a number
/// as it is, while a column of doubles has rounded it.
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

/// The number that a text spells as one is written: what a column of whole numbers keeps of it is
/// what was sent.
fn whole(column_type: ColumnType, datum: Datum<'_>) -> Option<i64> {
    let (ColumnType::Integer, Datum::Text(text)) = (column_type, datum) else {
        return None;
    };
    let number = text.parse::<i64>().ok()?;
    (number.to_string() == text).then_some(number)
}

/// A key stays what it is: another type would change the rows that are there, and who finds them.
fn firm(datum: Datum<'_>, slot: &Slot, table: &TableName) -> Misfit {
    let (column, declared) = (&slot.column, slot.column_type.sql());
    let came = match datum {
        Datum::Null => "null".to_owned(),
        Datum::Bool(b) => format!("{b}"),
        Datum::Int(n) => format!("the number {n}"),
        Datum::Number(digits) => format!("the number {}", beginning(digits)),
        Datum::Text(text) => format!("the text {:?}", beginning(text)),
        Datum::Json(text) => format!("the JSON {}", beginning(text)),
        Datum::Bytes(_) => "binary data".to_owned(),
    };
    let message = format!(
        "column {column} of table {table} is {declared} and part of a key, and {came} came for it: \
         columns of keys are not given another type"
    );
    let hint = format!(
        "send values that {declared} keeps as they are; if others are meant, make the table anew \
         with {column} as TEXT"
    );
    Misfit::Fault(
        Fault::new(FaultClass::Value, "22P02", message)
            .with_hint(Some(hint))
            .with_table(Some(&*table.table))
            .with_column(Some(&**column)),
    )
}

/// Enough of a value to know it again.
fn beginning(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
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
