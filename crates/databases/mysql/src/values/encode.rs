//! Values on their way to the server, as parameters of a prepared statement.
//!
//! Text goes as text and the server's own rules turn it into the column's type; a number keeps all
//! its digits. Windrow itself turns only what JSON has no form of: base64 for binary columns, times
//! with a zone, numbers for BIT.

use mysql_async::Value as Cell;
use windrow_core::{Fault, FaultClass, TableName, Value};
use windrow_database::binary;
use windrow_database::truth::truth;

use super::moment::Moment;
use crate::values::column::{Column, Kind};

/// A value to be stored.
///
/// # Errors
/// The value cannot be read: no base64, no number for a BIT.
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
        // CAST would make NULL of them.
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

/// A value that a row is found by; `None`: no row has it.
///
/// # Errors
/// As [`stored`], and text for a column of numbers: the server would take it for the number 0.
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

/// Columns in which `true` is a word and a number its digits.
fn wants_words(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Char | Kind::Text | Kind::Enum | Kind::Json | Kind::Other
    )
}

/// Columns of text in a character set.
fn is_words(kind: Kind) -> bool {
    matches!(kind, Kind::Char | Kind::Text | Kind::Enum | Kind::Json)
}

fn text(text: impl Into<String>) -> Cell {
    Cell::Bytes(text.into().into_bytes())
}

/// Rule that a value of a column of bits must follow, as its error says it.
const BITS: &str = "must be a whole number, because the column holds bits";

/// Returns the number that some bytes are as bits. More than a column can have are the server's to
/// refuse.
fn bits(bytes: &[u8]) -> Cell {
    if bytes.len() > size_of::<u64>() {
        return Cell::Bytes(bytes.to_vec());
    }
    let next = |number: u64, byte: &u8| number << u8::BITS | u64::from(*byte);
    Cell::UInt(bytes.iter().fold(0, next))
}

/// Returns the text that means the same year as a number: of texts, `0` is the year 2000.
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

/// A whole number that 64 bits hold.
fn whole(digits: &str) -> Option<Cell> {
    match digits.parse::<i64>() {
        Ok(n) => Some(Cell::Int(n)),
        Err(_) => digits.parse().ok().map(Cell::UInt),
    }
}

/// The server does not read zones; Windrow's sessions are in UTC.
fn moment(given: &str) -> Cell {
    let read = Moment::read(given).filter(Moment::has_zone);
    let in_utc = read.and_then(|moment| moment.in_utc());
    in_utc.map_or_else(|| text(given), text)
}

/// Sign, digits before the point without zeros in front, digits behind it without zeros at the end.
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

fn fits(number: &str, digits: usize, scale: usize) -> bool {
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
