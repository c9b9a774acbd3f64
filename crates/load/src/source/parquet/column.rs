//! One column of a batch, whose values are read as texts.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Date32Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type,
    Float16Type, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    Time32MillisecondType, Time32SecondType, Time64MicrosecondType, Time64NanosecondType,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType,
    TimestampSecondType, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::extension::{EXTENSION_TYPE_NAME_KEY, ExtensionType, Json, Uuid};
use arrow_schema::{DataType, Field, TimeUnit};
use windrow_core::Holds;

use super::kind::ValueKind;
use super::number::{decimal, float, int};
use super::text::{self, Unit};

/// Writes the text of a value that is not NULL, by its row, and says what the value is.
type WriteValue = Box<dyn Fn(usize, &mut String) -> ValueKind + Send>;

/// The values of one column of a batch.
pub(super) struct Column {
    array: ArrayRef,
    write: WriteValue,
    /// True for texts of which Parquet declares no more than that.
    is_words: bool,
}

/// Returns the type that a field declares. `None`: the type follows from the values, as that of
/// times of nanoseconds does, which most databases would round.
pub(super) fn holds(field: &Field) -> Option<Holds> {
    Some(match field.data_type() {
        DataType::Boolean => Holds::Bool,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => Holds::Int2,
        DataType::Int32 | DataType::UInt16 => Holds::Int4,
        DataType::Int64 | DataType::UInt32 => Holds::Int8,
        DataType::UInt64 => Holds::Decimal(20, 0),
        DataType::Float16 | DataType::Float32 => Holds::Float4,
        DataType::Float64 => Holds::Float8,
        DataType::Decimal32(digits, scale)
        | DataType::Decimal64(digits, scale)
        | DataType::Decimal128(digits, scale)
        | DataType::Decimal256(digits, scale) => match u8::try_from(*scale) {
            Ok(scale) => Holds::Decimal(*digits, scale),
            Err(_) => Holds::Decimal(digits.saturating_add(scale.unsigned_abs()), 0),
        },
        DataType::Utf8 if extends::<Json>(field) => Holds::Json,
        DataType::Utf8 => Holds::Text,
        DataType::FixedSizeBinary(16) if extends::<Uuid>(field) => Holds::Uuid,
        DataType::Binary | DataType::FixedSizeBinary(_) => Holds::Bytes,
        DataType::List(_)
        | DataType::FixedSizeList(..)
        | DataType::Struct(_)
        | DataType::Map(..) => Holds::Json,
        DataType::Date32 => Holds::Date,
        DataType::Time64(TimeUnit::Nanosecond) | DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            return None;
        }
        DataType::Time32(_) | DataType::Time64(_) => Holds::Time,
        DataType::Timestamp(_, None) => Holds::Timestamp,
        DataType::Timestamp(_, Some(_)) => Holds::Timestamptz,
        _ => return None,
    })
}

impl Column {
    /// # Errors
    /// The sentence for the user if values of this type are not read.
    pub(super) fn new(array: &ArrayRef, field: &Field) -> Result<Self, String> {
        let write = match nested(array, field)? {
            Some(write) => Some(write),
            None => flat(array, field),
        };
        let write = write.ok_or_else(|| {
            format!(
                "the column {:?} has the type {}, which is not read; leave it out",
                field.name(),
                field.data_type()
            )
        })?;
        Ok(Self {
            array: ArrayRef::clone(array),
            write,
            is_words: *field.data_type() == DataType::Utf8 && !extends::<Json>(field),
        })
    }

    /// True for texts of which Parquet declares no more than that.
    pub(super) fn is_words(&self) -> bool {
        self.is_words
    }

    /// Returns the value of a column of binary data.
    pub(super) fn bytes(&self, row: usize) -> &[u8] {
        if let Some(values) = self.array.as_binary_opt::<i32>() {
            return values.value(row);
        }
        let values = self.array.as_fixed_size_binary_opt();
        values.map_or(&[], |values| values.value(row))
    }

    /// Writes a value's text. The row must be one of the batch's.
    pub(super) fn value(&self, row: usize, out: &mut String) -> ValueKind {
        match self.array.is_null(row) {
            true => ValueKind::Null,
            false => (self.write)(row, out),
        }
    }

    /// Writes a value as JSON.
    fn json(&self, row: usize, out: &mut String) {
        let from = out.len();
        match self.value(row, out) {
            ValueKind::Null => out.push_str("null"),
            ValueKind::Bool(truth) => out.push_str(if truth { "true" } else { "false" }),
            ValueKind::Bytes => text::hex(self.bytes(row), out),
            ValueKind::Number | ValueKind::Json => {}
            ValueKind::Text => {
                let value = out.split_off(from);
                text::quoted(&value, out);
            }
        }
    }

    /// Writes an array of JSON.
    fn array(&self, rows: std::ops::Range<usize>, out: &mut String) {
        let first = rows.start;
        out.push('[');
        for row in rows {
            comma(row > first, out);
            self.json(row, out);
        }
        out.push(']');
    }
}

/// True if a field has this extension type.
fn extends<E: ExtensionType>(field: &Field) -> bool {
    let extension = field.metadata().get(EXTENSION_TYPE_NAME_KEY);
    extension.is_some_and(|name| name == E::NAME)
}

fn primitive<T: ArrowPrimitiveType>(
    array: &ArrayRef,
    write: impl Fn(T::Native, &mut String) -> ValueKind + Send + 'static,
) -> Option<WriteValue> {
    let values = array.as_primitive_opt::<T>()?.clone();
    Some(Box::new(move |row, out| write(values.value(row), out)))
}

fn flat(array: &ArrayRef, field: &Field) -> Option<WriteValue> {
    Some(match field.data_type() {
        DataType::Null => Box::new(|_, _| ValueKind::Null),
        DataType::Boolean => {
            let values = array.as_boolean_opt()?.clone();
            Box::new(move |row, _| ValueKind::Bool(values.value(row)))
        }
        DataType::Utf8 => {
            let values = array.as_string_opt::<i32>()?.clone();
            let kind = match extends::<Json>(field) {
                true => ValueKind::Json,
                false => ValueKind::Text,
            };
            Box::new(move |row, out| {
                out.push_str(values.value(row));
                kind
            })
        }
        DataType::FixedSizeBinary(16) if extends::<Uuid>(field) => {
            let values = array.as_fixed_size_binary_opt()?.clone();
            Box::new(move |row, out| {
                text::uuid(values.value(row), out);
                ValueKind::Text
            })
        }
        DataType::Binary | DataType::FixedSizeBinary(_) => Box::new(|_, _| ValueKind::Bytes),
        other => return number(array, other).or_else(|| moment(array, other)),
    })
}

fn number(array: &ArrayRef, data_type: &DataType) -> Option<WriteValue> {
    match *data_type {
        DataType::Int8 => primitive::<Int8Type>(array, int),
        DataType::Int16 => primitive::<Int16Type>(array, int),
        DataType::Int32 => primitive::<Int32Type>(array, int),
        DataType::Int64 => primitive::<Int64Type>(array, int),
        DataType::UInt8 => primitive::<UInt8Type>(array, int),
        DataType::UInt16 => primitive::<UInt16Type>(array, int),
        DataType::UInt32 => primitive::<UInt32Type>(array, int),
        DataType::UInt64 => primitive::<UInt64Type>(array, int),
        DataType::Float16 => primitive::<Float16Type>(array, |value, out| {
            float(f32::from(value), f32::is_finite, out)
        }),
        DataType::Float32 => {
            primitive::<Float32Type>(array, |value, out| float(value, f32::is_finite, out))
        }
        DataType::Float64 => {
            primitive::<Float64Type>(array, |value, out| float(value, f64::is_finite, out))
        }
        DataType::Decimal32(_, scale) => {
            primitive::<Decimal32Type>(array, move |value, out| decimal(value, scale, out))
        }
        DataType::Decimal64(_, scale) => {
            primitive::<Decimal64Type>(array, move |value, out| decimal(value, scale, out))
        }
        DataType::Decimal128(_, scale) => {
            primitive::<Decimal128Type>(array, move |value, out| decimal(value, scale, out))
        }
        DataType::Decimal256(_, scale) => primitive::<Decimal256Type>(array, move |value, out| {
            text::decimal(&value.to_string(), scale, out);
            ValueKind::Number
        }),
        _ => None,
    }
}

/// Values of dates, times of day and points in time.
fn moment(array: &ArrayRef, data_type: &DataType) -> Option<WriteValue> {
    match data_type {
        DataType::Date32 => primitive::<Date32Type>(array, |days, out| {
            text::date(i64::from(days), out);
            ValueKind::Text
        }),
        DataType::Time32(TimeUnit::Second) => time::<Time32SecondType>(array, Unit::SECOND),
        DataType::Time32(_) => time::<Time32MillisecondType>(array, Unit::MILLI),
        DataType::Time64(TimeUnit::Microsecond) => {
            time::<Time64MicrosecondType>(array, Unit::MICRO)
        }
        DataType::Time64(_) => time::<Time64NanosecondType>(array, Unit::NANO),
        DataType::Timestamp(unit, zone) => {
            let is_utc = zone.is_some();
            match unit {
                TimeUnit::Second => timestamp::<TimestampSecondType>(array, Unit::SECOND, is_utc),
                TimeUnit::Millisecond => {
                    timestamp::<TimestampMillisecondType>(array, Unit::MILLI, is_utc)
                }
                TimeUnit::Microsecond => {
                    timestamp::<TimestampMicrosecondType>(array, Unit::MICRO, is_utc)
                }
                TimeUnit::Nanosecond => {
                    timestamp::<TimestampNanosecondType>(array, Unit::NANO, is_utc)
                }
            }
        }
        _ => None,
    }
}

fn time<T: ArrowPrimitiveType<Native: Into<i64>>>(
    array: &ArrayRef,
    unit: Unit,
) -> Option<WriteValue> {
    primitive::<T>(array, move |value, out| {
        unit.time(value.into(), out);
        ValueKind::Text
    })
}

fn timestamp<T: ArrowPrimitiveType<Native = i64>>(
    array: &ArrayRef,
    unit: Unit,
    is_utc: bool,
) -> Option<WriteValue> {
    primitive::<T>(array, move |value, out| {
        unit.timestamp(value, out);
        out.push_str(if is_utc { "+00:00" } else { "" });
        ValueKind::Text
    })
}

fn nested(array: &ArrayRef, field: &Field) -> Result<Option<WriteValue>, String> {
    Ok(match field.data_type() {
        DataType::List(item) => match array.as_list_opt::<i32>().cloned() {
            Some(list) => {
                let items = Column::new(list.values(), item)?;
                Some(Box::new(move |row, out| {
                    items.array(span(list.value_offsets(), row), out);
                    ValueKind::Json
                }))
            }
            None => None,
        },
        DataType::FixedSizeList(item, length) => match array.as_fixed_size_list_opt() {
            Some(list) => {
                let items = Column::new(list.values(), item)?;
                let length = usize::try_from(*length).unwrap_or_default();
                Some(Box::new(move |row, out| {
                    items.array(row * length..(row + 1) * length, out);
                    ValueKind::Json
                }))
            }
            None => None,
        },
        DataType::Struct(fields) => match array.as_struct_opt() {
            Some(record) => {
                let mut columns = Vec::with_capacity(fields.len());
                for (column, field) in record.columns().iter().zip(fields) {
                    let mut name = String::new();
                    text::quoted(field.name(), &mut name);
                    columns.push((name, Column::new(column, field)?));
                }
                Some(Box::new(move |row, out| object(&columns, row, out)))
            }
            None => None,
        },
        DataType::Map(..) => match array.as_map_opt().cloned() {
            Some(map) => {
                let (keys, values) = map.entries_fields();
                let keys = Column::new(map.keys(), keys)?;
                let values = Column::new(map.values(), values)?;
                Some(Box::new(move |row, out| {
                    entries((&keys, &values), span(map.value_offsets(), row), out)
                }))
            }
            None => None,
        },
        _ => None,
    })
}

/// Writes an object with the names of a struct, which are strings of JSON already.
fn object(columns: &[(String, Column)], row: usize, out: &mut String) -> ValueKind {
    out.push('{');
    for ((name, column), at) in columns.iter().zip(0..) {
        comma(at > 0, out);
        out.push_str(name);
        out.push(':');
        column.json(row, out);
    }
    out.push('}');
    ValueKind::Json
}

/// Writes an object of a map's entries. Keys that are no texts become the texts of their values.
fn entries(
    (keys, values): (&Column, &Column),
    span: std::ops::Range<usize>,
    out: &mut String,
) -> ValueKind {
    let first = span.start;
    out.push('{');
    for entry in span {
        comma(entry > first, out);
        let from = out.len();
        keys.json(entry, out);
        if out.get(from..).is_some_and(|key| !key.starts_with('"')) {
            let key = out.split_off(from);
            text::quoted(&key, out);
        }
        out.push(':');
        values.json(entry, out);
    }
    out.push('}');
    ValueKind::Json
}

fn span(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    let at = |at: usize| {
        let offset = offsets.get(at).copied().unwrap_or_default();
        usize::try_from(offset).unwrap_or_default()
    };
    at(row)..at(row + 1)
}

fn comma(is_wanted: bool, out: &mut String) {
    if is_wanted {
        out.push(',');
    }
}
