//! Decodes returned values by the type of their column.

use mysql_async::consts::{ColumnFlags, ColumnType};
use mysql_async::{Column, Value as Cell};
use serde_json::value::RawValue;
use windrow_core::Value;

use super::moment::fraction;
use crate::values::column::Kind;

/// The server's number of the character set of binary data.
const BINARY: u16 = 63;

/// Decodes the value of a column. `kind` is the column's type in the table's description.
pub(crate) fn value(column: &Column, kind: Option<Kind>, cell: Cell) -> Value {
    match cell {
        Cell::NULL => Value::Null,
        Cell::Int(n @ (0 | 1)) if is_boolean(column) => Value::Bool(n == 1),
        Cell::Int(n) => Value::Int(n),
        Cell::UInt(n) => {
            i64::try_from(n).map_or_else(|_| Value::number(&n.to_string()), Value::Int)
        }
        Cell::Float(x) if x.is_finite() => shortest(&format!("{x:?}")),
        Cell::Float(x) => Value::from(f64::from(x)),
        Cell::Double(x) if x.is_finite() => shortest(&format!("{x:?}")),
        Cell::Double(x) => Value::from(x),
        Cell::Date(year, month, day, h, m, s, micros) => {
            Value::text(date(column, (year, month, day), (h, m, s), micros))
        }
        Cell::Time(negative, days, h, m, s, micros) => {
            let hours = u64::from(days) * 24 + u64::from(h);
            let sign = if negative { "-" } else { "" };
            Value::text(format!(
                "{sign}{hours:02}:{m:02}:{s:02}{}",
                fraction(micros)
            ))
        }
        Cell::Bytes(bytes) => of_bytes(column, kind, bytes),
    }
}

fn of_bytes(column: &Column, kind: Option<Kind>, bytes: Vec<u8>) -> Value {
    use ColumnType::{
        MYSQL_TYPE_BIT, MYSQL_TYPE_BLOB, MYSQL_TYPE_DECIMAL, MYSQL_TYPE_GEOMETRY, MYSQL_TYPE_JSON,
        MYSQL_TYPE_LONG_BLOB, MYSQL_TYPE_MEDIUM_BLOB, MYSQL_TYPE_NEWDECIMAL, MYSQL_TYPE_STRING,
        MYSQL_TYPE_TINY_BLOB, MYSQL_TYPE_VAR_STRING, MYSQL_TYPE_VARCHAR, MYSQL_TYPE_VECTOR,
    };
    let binary = column.character_set() == BINARY;
    match column.column_type() {
        MYSQL_TYPE_BIT => bits(bytes),
        MYSQL_TYPE_GEOMETRY | MYSQL_TYPE_VECTOR => Value::from(bytes),
        MYSQL_TYPE_BLOB
        | MYSQL_TYPE_TINY_BLOB
        | MYSQL_TYPE_MEDIUM_BLOB
        | MYSQL_TYPE_LONG_BLOB
        | MYSQL_TYPE_STRING
        | MYSQL_TYPE_VAR_STRING
        | MYSQL_TYPE_VARCHAR
            if binary && kind != Some(Kind::Other) =>
        {
            Value::from(bytes)
        }
        column_type => match String::from_utf8(bytes) {
            Err(not_text) => Value::from(not_text.into_bytes()),
            Ok(text) => match column_type {
                MYSQL_TYPE_DECIMAL | MYSQL_TYPE_NEWDECIMAL => Value::number(&text),
                MYSQL_TYPE_JSON => Value::Json(text.into()),
                _ if kind == Some(Kind::Json) && is_json(&text) => Value::Json(text.into()),
                _ => Value::text(text),
            },
        },
    }
}

fn is_boolean(column: &Column) -> bool {
    column.column_type() == ColumnType::MYSQL_TYPE_TINY
        && column.column_length() == 1
        && !column.flags().contains(ColumnFlags::UNSIGNED_FLAG)
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text.trim()).is_ok()
}

/// Returns a float by the shortest digits that denote it, as MySQL writes it: 20 and not 20.0.
fn shortest(digits: &str) -> Value {
    Value::number(digits.strip_suffix(".0").unwrap_or(digits))
}

fn bits(bytes: Vec<u8>) -> Value {
    if bytes.len() > 8 {
        return Value::from(bytes);
    }
    let n = bytes
        .iter()
        .fold(0_u64, |n, byte| n << 8 | u64::from(*byte));
    i64::try_from(n).map_or_else(|_| Value::number(&n.to_string()), Value::Int)
}

/// Returns a time in ISO 8601. A TIMESTAMP has the zone UTC.
fn date(
    column: &Column,
    (year, month, day): (u16, u8, u8),
    (h, m, s): (u8, u8, u8),
    micros: u32,
) -> String {
    use ColumnType::{MYSQL_TYPE_DATE, MYSQL_TYPE_NEWDATE, MYSQL_TYPE_TIMESTAMP};
    let date = format!("{year:04}-{month:02}-{day:02}");
    let zone = match column.column_type() {
        MYSQL_TYPE_DATE | MYSQL_TYPE_NEWDATE => return date,
        MYSQL_TYPE_TIMESTAMP if year > 0 => "Z",
        _ => "",
    };
    format!("{date}T{h:02}:{m:02}:{s:02}{}{zone}", fraction(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(column_type: ColumnType, cell: Cell) -> Value {
        value(&Column::new(column_type).with_character_set(45), None, cell)
    }

    #[test]
    fn values_come_back_as_they_went_in() {
        use ColumnType::*;
        let most = Cell::UInt(u64::MAX);
        assert_eq!(
            read(MYSQL_TYPE_LONGLONG, most),
            Value::number("18446744073709551615")
        );
        assert_eq!(
            read(MYSQL_TYPE_FLOAT, Cell::Float(0.1)),
            Value::number("0.1")
        );
        let decimal = Cell::Bytes(b"1.50".to_vec());
        assert_eq!(read(MYSQL_TYPE_NEWDECIMAL, decimal), Value::number("1.50"));
        let moment = Cell::Date(2013, 1, 1, 6, 0, 0, 500_000);
        assert_eq!(
            read(MYSQL_TYPE_TIMESTAMP, moment.clone()),
            "2013-01-01T06:00:00.5Z".into()
        );
        assert_eq!(
            read(MYSQL_TYPE_DATETIME, moment.clone()),
            "2013-01-01T06:00:00.5".into()
        );
        assert_eq!(read(MYSQL_TYPE_DATE, moment), "2013-01-01".into());
        let time = Cell::Time(true, 34, 22, 59, 59, 0);
        assert_eq!(read(MYSQL_TYPE_TIME, time), "-838:59:59".into());
        assert_eq!(read(MYSQL_TYPE_BIT, Cell::Bytes(vec![1, 0])), 256.into());
        let boolean = Column::new(MYSQL_TYPE_TINY).with_column_length(1);
        assert_eq!(value(&boolean, None, Cell::Int(1)), true.into());
        assert_eq!(value(&boolean, None, Cell::Int(2)), 2.into());
        let blob = Column::new(MYSQL_TYPE_BLOB).with_character_set(BINARY);
        assert_eq!(value(&blob, None, Cell::Bytes(vec![1])), vec![1].into());
        let json = Cell::Bytes(b"[1]".to_vec());
        let text = Column::new(MYSQL_TYPE_BLOB).with_character_set(45);
        assert_eq!(
            value(&text, Some(Kind::Json), json.clone()),
            Value::Json("[1]".into())
        );
        assert_eq!(value(&text, Some(Kind::Text), json), "[1]".into());
    }
}
