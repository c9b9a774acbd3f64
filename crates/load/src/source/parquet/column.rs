//! One column of a batch, whose values are read as texts.

use arrow_array::cast::AsArray;
use arrow_array::types::{self, ArrowPrimitiveType};
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Decimal32Array, Decimal64Array, Decimal128Array,
    Decimal256Array, FixedSizeBinaryArray, FixedSizeListArray, Float16Array, Float32Array,
    Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, ListArray, MapArray,
    PrimitiveArray, StringArray, StructArray, UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_schema::extension::{EXTENSION_TYPE_NAME_KEY, ExtensionType, Json, Uuid};
use arrow_schema::{DataType, Field, TimeUnit};
use windrow_core::Holds;

use super::kind::Kind;
use super::number::{decimal, float, int};
use super::text::{self, Unit};

/// The values, by the type that Parquet gives them.
pub(super) enum Column {
    Nothing,
    Bool(BooleanArray),
    I8(Int8Array),
    I16(Int16Array),
    I32(Int32Array),
    I64(Int64Array),
    U8(UInt8Array),
    U16(UInt16Array),
    U32(UInt32Array),
    U64(UInt64Array),
    F16(Float16Array),
    F32(Float32Array),
    F64(Float64Array),
    D32(Decimal32Array, i8),
    D64(Decimal64Array, i8),
    D128(Decimal128Array, i8),
    D256(Decimal256Array, i8),
    Date(Int32Array),
    Time32(Int32Array, Unit),
    Time64(Int64Array, Unit),
    /// True: in UTC; false: of no time zone.
    Timestamp(Int64Array, Unit, bool),
    Text(StringArray),
    Json(StringArray),
    Bytes(BinaryArray),
    Fixed(FixedSizeBinaryArray),
    Uuid(FixedSizeBinaryArray),
    List(ListArray, Box<Self>),
    FixedList(FixedSizeListArray, Box<Self>),
    /// Names are JSON strings already.
    Struct(StructArray, Vec<(String, Self)>),
    Map(MapArray, Box<(Self, Self)>),
}

/// What the values of a field are. `None`: what they look like, as times of nanoseconds, which most
/// databases would round.
pub(super) fn holds(field: &Field) -> Option<Holds> {
    let extension = field.metadata().get(EXTENSION_TYPE_NAME_KEY);
    let is = |name: &str| extension.is_some_and(|found| found == name);
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
        DataType::Utf8 if is(Json::NAME) => Holds::Json,
        DataType::Utf8 => Holds::Text,
        DataType::FixedSizeBinary(16) if is(Uuid::NAME) => Holds::Uuid,
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

fn primitive<T: ArrowPrimitiveType, K: ArrowPrimitiveType<Native = T::Native>>(
    array: &ArrayRef,
) -> Option<PrimitiveArray<K>> {
    Some(array.as_primitive_opt::<T>()?.reinterpret_cast())
}

fn same<T: ArrowPrimitiveType>(array: &ArrayRef) -> Option<PrimitiveArray<T>> {
    array.as_primitive_opt::<T>().cloned()
}

impl Column {
    /// # Errors
    /// What to tell the user: values of this type are not read.
    pub(super) fn new(array: &ArrayRef, field: &Field) -> Result<Self, String> {
        match Self::nested(array, field)? {
            Some(column) => Some(column),
            None => Self::flat(array, field),
        }
        .ok_or_else(|| {
            format!(
                "the column {:?} has the type {}, which is not read; leave it out",
                field.name(),
                field.data_type()
            )
        })
    }

    fn flat(array: &ArrayRef, field: &Field) -> Option<Self> {
        let extension = field.metadata().get(EXTENSION_TYPE_NAME_KEY);
        let is = |name: &str| extension.is_some_and(|found| found == name);
        Some(match field.data_type() {
            DataType::Null => Self::Nothing,
            DataType::Boolean => Self::Bool(array.as_boolean_opt()?.clone()),
            DataType::Utf8 if is(Json::NAME) => Self::Json(array.as_string_opt()?.clone()),
            DataType::Utf8 => Self::Text(array.as_string_opt()?.clone()),
            DataType::Binary => Self::Bytes(array.as_binary_opt()?.clone()),
            DataType::FixedSizeBinary(16) if is(Uuid::NAME) => {
                Self::Uuid(array.as_fixed_size_binary_opt()?.clone())
            }
            DataType::FixedSizeBinary(_) => Self::Fixed(array.as_fixed_size_binary_opt()?.clone()),
            DataType::Decimal32(_, scale) => Self::D32(same(array)?, *scale),
            DataType::Decimal64(_, scale) => Self::D64(same(array)?, *scale),
            DataType::Decimal128(_, scale) => Self::D128(same(array)?, *scale),
            DataType::Decimal256(_, scale) => Self::D256(same(array)?, *scale),
            other => return Self::number(array, other).or_else(|| Self::time(array, other)),
        })
    }

    fn number(array: &ArrayRef, data_type: &DataType) -> Option<Self> {
        Some(match data_type {
            DataType::Int8 => Self::I8(same(array)?),
            DataType::Int16 => Self::I16(same(array)?),
            DataType::Int32 => Self::I32(same(array)?),
            DataType::Int64 => Self::I64(same(array)?),
            DataType::UInt8 => Self::U8(same(array)?),
            DataType::UInt16 => Self::U16(same(array)?),
            DataType::UInt32 => Self::U32(same(array)?),
            DataType::UInt64 => Self::U64(same(array)?),
            DataType::Float16 => Self::F16(same(array)?),
            DataType::Float32 => Self::F32(same(array)?),
            DataType::Float64 => Self::F64(same(array)?),
            _ => return None,
        })
    }

    fn time(array: &ArrayRef, data_type: &DataType) -> Option<Self> {
        use types::{
            Date32Type, Int32Type, Int64Type, Time32MillisecondType, Time32SecondType,
            Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
            TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
        };
        Some(match data_type {
            DataType::Date32 => Self::Date(primitive::<Date32Type, Int32Type>(array)?),
            DataType::Time32(TimeUnit::Second) => Self::Time32(
                primitive::<Time32SecondType, Int32Type>(array)?,
                Unit::SECOND,
            ),
            DataType::Time32(_) => Self::Time32(
                primitive::<Time32MillisecondType, Int32Type>(array)?,
                Unit::MILLI,
            ),
            DataType::Time64(TimeUnit::Microsecond) => Self::Time64(
                primitive::<Time64MicrosecondType, Int64Type>(array)?,
                Unit::MICRO,
            ),
            DataType::Time64(_) => Self::Time64(
                primitive::<Time64NanosecondType, Int64Type>(array)?,
                Unit::NANO,
            ),
            DataType::Timestamp(unit, zone) => {
                let (array, unit) = match unit {
                    TimeUnit::Second => (
                        primitive::<TimestampSecondType, Int64Type>(array)?,
                        Unit::SECOND,
                    ),
                    TimeUnit::Millisecond => (
                        primitive::<TimestampMillisecondType, Int64Type>(array)?,
                        Unit::MILLI,
                    ),
                    TimeUnit::Microsecond => (
                        primitive::<TimestampMicrosecondType, Int64Type>(array)?,
                        Unit::MICRO,
                    ),
                    TimeUnit::Nanosecond => (
                        primitive::<TimestampNanosecondType, Int64Type>(array)?,
                        Unit::NANO,
                    ),
                };
                Self::Timestamp(array, unit, zone.is_some())
            }
            _ => return None,
        })
    }

    fn nested(array: &ArrayRef, field: &Field) -> Result<Option<Self>, String> {
        Ok(match field.data_type() {
            DataType::List(item) => match array.as_list_opt() {
                Some(list) => Some(Self::List(
                    list.clone(),
                    Box::new(Self::new(list.values(), item)?),
                )),
                None => None,
            },
            DataType::FixedSizeList(item, _) => match array.as_fixed_size_list_opt() {
                Some(list) => Some(Self::FixedList(
                    list.clone(),
                    Box::new(Self::new(list.values(), item)?),
                )),
                None => None,
            },
            DataType::Struct(fields) => match array.as_struct_opt() {
                Some(record) => {
                    let mut columns = Vec::with_capacity(fields.len());
                    for (column, field) in record.columns().iter().zip(fields) {
                        let mut name = String::new();
                        text::quoted(field.name(), &mut name);
                        columns.push((name, Self::new(column, field)?));
                    }
                    Some(Self::Struct(record.clone(), columns))
                }
                None => None,
            },
            DataType::Map(..) => match array.as_map_opt() {
                Some(map) => {
                    let (keys, values) = map.entries_fields();
                    let keys = Self::new(map.keys(), keys)?;
                    let values = Self::new(map.values(), values)?;
                    Some(Self::Map(map.clone(), Box::new((keys, values))))
                }
                None => None,
            },
            _ => None,
        })
    }

    fn is_null(&self, row: usize) -> bool {
        match self {
            Self::Nothing => true,
            Self::Bool(a) => a.is_null(row),
            Self::I8(a) => a.is_null(row),
            Self::I16(a) => a.is_null(row),
            Self::I32(a) | Self::Date(a) | Self::Time32(a, _) => a.is_null(row),
            Self::I64(a) | Self::Time64(a, _) | Self::Timestamp(a, ..) => a.is_null(row),
            Self::U8(a) => a.is_null(row),
            Self::U16(a) => a.is_null(row),
            Self::U32(a) => a.is_null(row),
            Self::U64(a) => a.is_null(row),
            Self::F16(a) => a.is_null(row),
            Self::F32(a) => a.is_null(row),
            Self::F64(a) => a.is_null(row),
            Self::D32(a, _) => a.is_null(row),
            Self::D64(a, _) => a.is_null(row),
            Self::D128(a, _) => a.is_null(row),
            Self::D256(a, _) => a.is_null(row),
            Self::Text(a) | Self::Json(a) => a.is_null(row),
            Self::Bytes(a) => a.is_null(row),
            Self::Fixed(a) | Self::Uuid(a) => a.is_null(row),
            Self::List(a, _) => a.is_null(row),
            Self::FixedList(a, _) => a.is_null(row),
            Self::Struct(a, _) => a.is_null(row),
            Self::Map(a, _) => a.is_null(row),
        }
    }

    /// True for texts of which Parquet knows no more than that.
    pub(super) fn is_words(&self) -> bool {
        matches!(self, Self::Text(_))
    }

    /// The value of a column of binary data.
    pub(super) fn bytes(&self, row: usize) -> &[u8] {
        match self {
            Self::Bytes(a) => a.value(row),
            Self::Fixed(a) => a.value(row),
            _ => &[],
        }
    }

    /// Writes a value's text. The row must be one of the batch's.
    pub(super) fn value(&self, row: usize, out: &mut String) -> Kind {
        if self.is_null(row) {
            return Kind::Null;
        }
        match self {
            Self::Nothing => return Kind::Null,
            Self::Bool(a) => return Kind::Bool(a.value(row)),
            Self::Bytes(_) | Self::Fixed(_) => return Kind::Bytes,
            Self::I8(a) => int(a.value(row), out),
            Self::I16(a) => int(a.value(row), out),
            Self::I32(a) => int(a.value(row), out),
            Self::I64(a) => int(a.value(row), out),
            Self::U8(a) => int(a.value(row), out),
            Self::U16(a) => int(a.value(row), out),
            Self::U32(a) => int(a.value(row), out),
            Self::U64(a) => int(a.value(row), out),
            Self::F16(a) => return float(f32::from(a.value(row)), f32::is_finite, out),
            Self::F32(a) => return float(a.value(row), f32::is_finite, out),
            Self::F64(a) => return float(a.value(row), f64::is_finite, out),
            Self::D32(a, scale) => decimal(a.value(row), *scale, out),
            Self::D64(a, scale) => decimal(a.value(row), *scale, out),
            Self::D128(a, scale) => decimal(a.value(row), *scale, out),
            Self::D256(a, scale) => text::decimal(&a.value(row).to_string(), *scale, out),
            _ => return self.text(row, out),
        }
        Kind::Number
    }

    fn text(&self, row: usize, out: &mut String) -> Kind {
        match self {
            Self::Text(a) => out.push_str(a.value(row)),
            Self::Uuid(a) => text::uuid(a.value(row), out),
            Self::Date(a) => text::date(i64::from(a.value(row)), out),
            Self::Time32(a, unit) => unit.time(i64::from(a.value(row)), out),
            Self::Time64(a, unit) => unit.time(a.value(row), out),
            Self::Timestamp(a, unit, utc) => {
                unit.timestamp(a.value(row), out);
                if *utc {
                    out.push_str("+00:00");
                }
            }
            _ => {
                self.json(row, out);
                return Kind::Json;
            }
        }
        Kind::Text
    }

    /// Writes a value as JSON.
    fn json(&self, row: usize, out: &mut String) {
        if self.is_null(row) {
            out.push_str("null");
            return;
        }
        match self {
            Self::Text(a) => text::quoted(a.value(row), out),
            Self::Json(a) => out.push_str(a.value(row)),
            Self::List(a, items) => {
                let offsets = a.value_offsets();
                items.array(span(offsets, row), out);
            }
            Self::FixedList(a, items) => {
                let length = usize::try_from(a.value_length()).unwrap_or_default();
                items.array(row * length..(row + 1) * length, out);
            }
            Self::Struct(_, columns) => {
                out.push('{');
                for ((name, column), at) in columns.iter().zip(0..) {
                    comma(at > 0, out);
                    out.push_str(name);
                    out.push(':');
                    column.json(row, out);
                }
                out.push('}');
            }
            Self::Map(a, entries) => map(a, entries, row, out),
            _ => self.scalar(row, out),
        }
    }

    fn array(&self, rows: std::ops::Range<usize>, out: &mut String) {
        let first = rows.start;
        out.push('[');
        for row in rows {
            comma(row > first, out);
            self.json(row, out);
        }
        out.push(']');
    }

    fn scalar(&self, row: usize, out: &mut String) {
        let from = out.len();
        match self.value(row, out) {
            Kind::Null => out.push_str("null"),
            Kind::Bool(truth) => out.push_str(if truth { "true" } else { "false" }),
            Kind::Bytes => text::hex(self.bytes(row), out),
            Kind::Number | Kind::Json => {}
            // Dates and the like, which hold nothing to be escaped.
            Kind::Text => {
                out.insert(from, '"');
                out.push('"');
            }
        }
    }
}

/// An object; keys that are no texts become the texts of their values.
fn map(array: &MapArray, entries: &(Column, Column), row: usize, out: &mut String) {
    let (keys, values) = entries;
    let span = span(array.value_offsets(), row);
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
}

fn span(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    let at = |at: usize| {
        let offset = offsets.get(at).copied().unwrap_or_default();
        usize::try_from(offset).unwrap_or_default()
    };
    at(row)..at(row + 1)
}

fn comma(wanted: bool, out: &mut String) {
    if wanted {
        out.push(',');
    }
}
