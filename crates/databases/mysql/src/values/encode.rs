//! Encodes values as parameters of a prepared statement.
//!
//! The server converts texts to the column's type. A number keeps all its digits. Windrow converts
//! only values that have no form in JSON: base64 for binary columns, times with a zone, numbers for
//! BIT.

use mysql_async::Value as Cell;
use windrow_core::{Fault, FaultClass, TableName, Value};
use windrow_database::binary;
use windrow_database::iso_moment::IsoMoment;
use windrow_database::truth::truth;

use super::moment::in_utc;
use crate::values::column::{Column, Kind};

/// Encodes a value to be stored.
///
/// # Errors
/// The value is invalid: no base64, or no number for a BIT.
pub(crate) fn stored(table: &TableName, column: &Column, value: &Value) -> Result<Cell, Fault> {
    let kind = column.kind;
    Ok(match value {
        Value::Null => Cell::NULL,
        Value::Bool(b) if wants_words(kind) => text(if *b { "true" } else { "false" }),
        Value::Bool(b) if kind.is_binary() => text(i64::from(*b).to_string()),
        Value::Bool(b) if kind == Kind::Year => year(i64::from(*b)),
        Value::Bool(b) => Cell::Int(i64::from(*b)),
        Value::Int(n) if wants_words(kind) || kind.is_binary() => text(n.to_string()),
        Value::Int(n) if kind == Kind::Year => year(*n),
        Value::Int(n) => Cell::Int(*n),
        Value::Number(digits) if kind == Kind::Bit => {
            whole(digits).ok_or_else(|| misfit(table, column, BITS))?
        }
        Value::Json(_) if kind == Kind::Bit => return Err(misfit(table, column, BITS)),
        Value::Number(digits) => number(kind, digits),
        Value::Bytes(bytes) if kind == Kind::Bit => bits(bytes),
        // CAST would convert these to NULL.
        Value::Bytes(bytes) if kind.is_numeric() && std::str::from_utf8(bytes).is_err() => {
            return Err(misfit(table, column, "must be a number"));
        }
        // MySQL would store question marks in a column of another character set.
        Value::Bytes(bytes) if is_words(kind) && std::str::from_utf8(bytes).is_err() => {
            let fault = misfit(table, column, "must be UTF-8");
            return Err(Fault::new(FaultClass::Value, "22021", fault.message)
                .with_table(Some(&*table.table))
                .with_column(Some(&*column.name)));
        }
        Value::Bytes(bytes) => Cell::Bytes(bytes.to_vec()),
        Value::Json(json) => text(&**json),
        Value::Text(given) => match kind {
            kind if kind.is_binary() => {
                let mut bytes = Vec::new();
                let read = binary::decode(given, &mut bytes);
                read.map_err(|told| misfit(table, column, &told))?;
                Cell::Bytes(bytes)
            }
            Kind::Bit => {
                let number = given.trim().parse().map(Cell::UInt);
                number.map_err(|_| misfit(table, column, BITS))?
            }
            Kind::Bool => truth(given).map_or_else(|| text(&**given), |b| Cell::Int(i64::from(b))),
            Kind::Json => text(serde_json::Value::from(&**given).to_string()),
            Kind::DateTime | Kind::Timestamp => moment(given),
            Kind::Int => whole(given).unwrap_or_else(|| text(&**given)),
            _ => text(&**given),
        },
    })
}

/// Encodes a value that finds a row; `None` if no row can have it.
///
/// # Errors
/// Those of [`stored`], and a text for a column of numbers, which the server would read as 0.
pub(crate) fn key(
    table: &TableName,
    column: &Column,
    value: &Value,
) -> Result<Option<Cell>, Fault> {
    match (value, column.kind) {
        (Value::Null, _) => Ok(None),
        (Value::Int(n), Kind::Year) => Ok(Some(Cell::Int(*n))),
        (Value::Bool(b), Kind::Year) => Ok(Some(Cell::Int(i64::from(*b)))),
        (Value::Int(_) | Value::Bool(_), Kind::Int | Kind::Bool | Kind::Bit) => {
            stored(table, column, value).map(Some)
        }
        (
            Value::Number(digits) | Value::Text(digits),
            Kind::Int | Kind::Bool | Kind::Year | Kind::Bit,
        ) => match plain(digits.trim()) {
            Some((negative, whole, "")) => Ok(whole_cell(negative, whole)),
            Some(_) => Ok(None),
            None => Err(misfit(table, column, "is not a number")),
        },
        (Value::Int(n), Kind::Decimal(digits, scale)) => {
            Ok(fits(&n.to_string(), digits, scale).then(|| text(n.to_string())))
        }
        (Value::Number(number) | Value::Text(number), Kind::Decimal(digits, scale)) => {
            match plain(number.trim()) {
                Some(_) => Ok(fits(number.trim(), digits, scale).then(|| text(number.trim()))),
                None => Err(misfit(table, column, "is not a number written plainly")),
            }
        }
        (Value::Int(n), Kind::Double | Kind::Float) => number_key(table, column, &n.to_string()),
        (Value::Number(digits) | Value::Text(digits), Kind::Double | Kind::Float) => {
            number_key(table, column, digits.trim())
        }
        (
            Value::Bytes(_) | Value::Json(_) | Value::Bool(_),
            Kind::Int
            | Kind::Bool
            | Kind::Year
            | Kind::Bit
            | Kind::Decimal(..)
            | Kind::Double
            | Kind::Float,
        ) => Err(misfit(table, column, "is not a number")),
        _ => stored(table, column, value).map(Some),
    }
}

/// Returns true for columns that store `true` as a word and a number as its digits.
fn wants_words(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Char | Kind::Text | Kind::Enum | Kind::Json | Kind::Other
    )
}

/// Returns true for columns of text in a character set.
fn is_words(kind: Kind) -> bool {
    matches!(kind, Kind::Char | Kind::Text | Kind::Enum | Kind::Json)
}

fn text(text: impl Into<String>) -> Cell {
    Cell::Bytes(text.into().into_bytes())
}

/// The rule for values of a column of bits, as in its error.
const BITS: &str = "must be a whole number, because the column holds bits";

/// Returns the number of some bytes as bits. The server refuses more bytes than a column can have.
fn bits(bytes: &[u8]) -> Cell {
    if bytes.len() > size_of::<u64>() {
        return Cell::Bytes(bytes.to_vec());
    }
    let next = |number: u64, byte: &u8| number << u8::BITS | u64::from(*byte);
    Cell::UInt(bytes.iter().fold(0, next))
}

/// Returns the text of the same year as a number: the text `0` is the year 2000.
fn year(n: i64) -> Cell {
    match n {
        0 => text("0000"),
        n => text(n.to_string()),
    }
}

fn number(kind: Kind, digits: &str) -> Cell {
    let whole = matches!(kind, Kind::Int | Kind::Bool).then(|| whole(digits));
    whole.flatten().unwrap_or_else(|| text(digits))
}

/// Returns a whole number of 64 bits.
fn whole(digits: &str) -> Option<Cell> {
    match digits.parse::<i64>() {
        Ok(n) => Some(Cell::Int(n)),
        Err(_) => digits.parse().ok().map(Cell::UInt),
    }
}

/// Converts a time to UTC, the zone of Windrow's sessions. The server does not read zones.
fn moment(given: &str) -> Cell {
    let read = IsoMoment::read(given).filter(|moment| moment.zone.is_some());
    read.and_then(in_utc).map_or_else(|| text(given), text)
}

/// Splits a number: sign, digits before the point without leading zeros, digits after it without
/// trailing zeros.
pub(crate) fn plain(digits: &str) -> Option<(bool, &str, &str)> {
    let (negative, rest) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits.strip_prefix('+').unwrap_or(digits)),
    };
    let (whole, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let all_digits = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !all_digits(whole) || !all_digits(fraction) {
        return None;
    }
    let (whole, fraction) = (
        whole.trim_start_matches('0'),
        fraction.trim_end_matches('0'),
    );
    Some((
        negative && whole.len() + fraction.len() > 0,
        whole,
        fraction,
    ))
}

fn whole_cell(negative: bool, whole: &str) -> Option<Cell> {
    let digits = if whole.is_empty() { "0" } else { whole };
    if negative {
        return format!("-{digits}").parse().ok().map(Cell::Int);
    }
    self::whole(digits)
}

/// Returns true if a number has no more digits than a column of exact numbers.
pub(crate) fn fits(number: &str, digits: usize, scale: usize) -> bool {
    plain(number).is_some_and(|(_, whole, fraction)| {
        fraction.len() <= scale && whole.len() <= digits.saturating_sub(scale)
    })
}

fn number_key(table: &TableName, column: &Column, digits: &str) -> Result<Option<Cell>, Fault> {
    match digits.parse::<f64>() {
        Ok(n) if n.is_finite() => Ok(Some(Cell::Double(n))),
        Ok(_) => Ok(None),
        Err(_) => Err(misfit(table, column, "is not a number")),
    }
}

fn misfit(table: &TableName, column: &Column, what: &str) -> Fault {
    let name = &column.name;
    let message = format!("the value for column {name} of table {table} {what}");
    Fault::new(FaultClass::Value, "22P02", message)
        .with_table(Some(&*table.table))
        .with_column(Some(&**name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::column::sample;

    fn store(kind: Kind, value: impl Into<Value>) -> Result<Cell, Fault> {
        stored(&TableName::bare("t"), &sample(kind), &value.into())
    }

    fn find(kind: Kind, value: impl Into<Value>) -> Result<Option<Cell>, Fault> {
        key(&TableName::bare("t"), &sample(kind), &value.into())
    }

    #[test]
    fn values_keep_what_they_are() {
        assert_eq!(store(Kind::Int, 5).unwrap(), Cell::Int(5));
        let most = Value::number("18446744073709551615");
        assert_eq!(store(Kind::Int, most).unwrap(), Cell::UInt(u64::MAX));
        let exact = Value::number("0.10000000000000000001");
        assert_eq!(
            store(Kind::Decimal(65, 30), exact).unwrap(),
            text("0.10000000000000000001")
        );
        assert_eq!(store(Kind::Text, true).unwrap(), text("true"));
        assert_eq!(store(Kind::Bool, true).unwrap(), Cell::Int(1));
        assert_eq!(
            store(Kind::Blob, "AP8=").unwrap(),
            Cell::Bytes(vec![0, 255])
        );
        assert_eq!(
            store(Kind::Blob, "no base64!").unwrap_err().class,
            FaultClass::Value
        );
        assert_eq!(
            store(Kind::Timestamp, "2020-01-01T01:00:00+01:00").unwrap(),
            text("2020-01-01 00:00:00")
        );
        assert_eq!(
            store(Kind::Timestamp, "2020-01-01T01:00:00").unwrap(),
            text("2020-01-01T01:00:00")
        );
        assert_eq!(store(Kind::Json, "a\"b").unwrap(), text(r#""a\"b""#));
        assert_eq!(store(Kind::Bit, "5").unwrap(), Cell::UInt(5));
    }

    #[test]
    fn keys_are_never_taken_for_something_else() {
        assert_eq!(find(Kind::Int, "7").unwrap(), Some(Cell::Int(7)));
        assert_eq!(
            find(Kind::Int, Value::number("7.0")).unwrap(),
            Some(Cell::Int(7))
        );
        assert_eq!(find(Kind::Int, Value::number("7.5")).unwrap(), None);
        assert_eq!(
            find(Kind::Int, Value::number("99999999999999999999")).unwrap(),
            None
        );
        assert_eq!(find(Kind::Int, Value::Null).unwrap(), None);
        assert_eq!(find(Kind::Int, "abc").unwrap_err().class, FaultClass::Value);
        assert_eq!(
            find(Kind::Decimal(5, 2), "1.50").unwrap(),
            Some(text("1.50"))
        );
        assert_eq!(find(Kind::Decimal(5, 2), "1.505").unwrap(), None);
        assert_eq!(find(Kind::Text, 7).unwrap(), Some(text("7")));
    }
}
