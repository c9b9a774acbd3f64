//! The types of Parquet's columns, as a file's schema declares them
//! (<https://github.com/apache/parquet-format/blob/master/LogicalTypes.md>).

use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::schema::types::{BasicTypeInfo, Type};
use windrow_core::Holds;

use super::text::{self, Unit};

/// The type of a column, or of a value inside a nested one.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ColumnType {
    Scalar(Scalar),
    List(Box<Self>),
    /// A list whose repeated field is its element, as old programs write it. The crate's reader
    /// returns such a list as the only element of a list.
    OldList(Box<Self>),
    Map(Box<Self>, Box<Self>),
    /// The fields, each with its name as a string of JSON.
    Record(Vec<(String, Self)>),
}

/// The type of a value that is not nested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    /// All values are NULL, as in a column whose writer saw no value.
    Null,
    Bool,
    Int(IntType),
    /// A half, single or double precision number.
    Float16,
    Float32,
    Float64,
    /// A decimal number: the number of its digits, and of those after the point.
    Decimal(u8, i8),
    Text,
    Json,
    Uuid,
    Bytes,
    Date,
    Time(Unit),
    /// A point in time, in UTC if the flag is true.
    Timestamp(Unit, bool),
    /// A day and nanoseconds in 12 bytes, as Spark and Impala write them.
    Int96,
}

/// The bits of an integer, and whether it has a sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IntType {
    pub(super) bits: u8,
    pub(super) is_signed: bool,
}

impl ColumnType {
    /// Reads the type of a column. `None` if values of its type are not supported.
    pub(super) fn of_column(column: &Type) -> Option<Self> {
        if !is_nested(column) {
            return Scalar::of(column).map(Self::Scalar);
        }
        Self::of(column)
    }

    /// Reads the type of a nested column, or of a field in one.
    fn of(field: &Type) -> Option<Self> {
        if is_repeated(field) {
            return Some(Self::List(Box::new(Self::once(field)?)));
        }
        Self::once(field)
    }

    /// Reads the type of one value of a field that may be repeated.
    fn once(field: &Type) -> Option<Self> {
        if field.is_primitive() {
            // The reader of nested columns returns these in milliseconds, which would lose digits.
            let scalar = Scalar::of(field).filter(|scalar| *scalar != Scalar::Int96);
            return scalar.map(Self::Scalar);
        }
        let children = field.get_fields();
        match (field.get_basic_info().converted_type(), children) {
            (ConvertedType::LIST, [repeated]) if is_element(repeated) => {
                Some(Self::OldList(Box::new(Self::once(repeated)?)))
            }
            (ConvertedType::LIST, [repeated]) => {
                let element = Self::of(repeated.get_fields().first()?)?;
                Some(Self::List(Box::new(element)))
            }
            (ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE, [entry]) => {
                let parts = entry.is_group().then(|| entry.get_fields())?;
                let key = Box::new(Self::of(parts.first()?)?);
                // Maps without values are sets of keys.
                Some(match parts.get(1) {
                    Some(value) => Self::Map(key, Box::new(Self::of(value)?)),
                    None => Self::List(key),
                })
            }
            (_, fields) => {
                let fields = fields.iter().map(|field| {
                    let mut name = String::new();
                    text::quoted(field.name(), &mut name);
                    Some((name, Self::of(field)?))
                });
                Some(Self::Record(fields.collect::<Option<_>>()?))
            }
        }
    }

    /// Returns the type that a table's column should have. `None` if it follows from the values, as
    /// for times of nanoseconds, which most databases would round.
    pub(super) fn holds(&self) -> Option<Holds> {
        match self {
            Self::Scalar(scalar) => scalar.holds(),
            Self::List(_) | Self::OldList(_) | Self::Map(..) | Self::Record(_) => Some(Holds::Json),
        }
    }
}

/// Returns true if a column's values are read as nested ones.
pub(super) fn is_nested(column: &Type) -> bool {
    column.is_group() || is_repeated(column)
}

fn is_repeated(field: &Type) -> bool {
    let info = field.get_basic_info();
    info.has_repetition() && info.repetition() == Repetition::REPEATED
}

/// Returns true if the repeated field of a list is its element, as in lists of two levels. The
/// rules are those of the crate's reader of nested columns, and of Parquet's page on logical types.
fn is_element(repeated: &Type) -> bool {
    if repeated.is_primitive() {
        return true;
    }
    let fields = repeated.get_fields();
    let holds_a_list = repeated.get_basic_info().converted_type() == ConvertedType::LIST
        || matches!(fields, [only] if is_repeated(only));
    !holds_a_list
        && (fields.len() > 1 || repeated.name() == "array" || repeated.name().ends_with("_tuple"))
}

impl Scalar {
    fn of(field: &Type) -> Option<Self> {
        let Type::PrimitiveType {
            basic_info,
            physical_type,
            type_length,
            scale,
            precision,
        } = field
        else {
            return None;
        };
        if basic_info.logical_type_ref() == Some(&LogicalType::Unknown) {
            return Some(Self::Null);
        }
        Some(match physical_type {
            Physical::BOOLEAN => Self::Bool,
            Physical::FLOAT => Self::Float32,
            Physical::DOUBLE => Self::Float64,
            Physical::INT96 => Self::Int96,
            _ if is_decimal(basic_info) => decimal(*precision, *scale)?,
            Physical::INT32 => of_int32(basic_info)?,
            Physical::INT64 => of_int64(basic_info)?,
            Physical::BYTE_ARRAY => of_bytes(basic_info)?,
            Physical::FIXED_LEN_BYTE_ARRAY => of_fixed(basic_info, *type_length)?,
        })
    }

    fn holds(self) -> Option<Holds> {
        Some(match self {
            Self::Bool => Holds::Bool,
            Self::Int(int) => match (int.bits, int.is_signed) {
                (8, _) | (16, true) => Holds::Int2,
                (16, false) | (32, true) => Holds::Int4,
                (32, false) | (_, true) => Holds::Int8,
                (_, false) => Holds::Decimal(20, 0),
            },
            Self::Float16 | Self::Float32 => Holds::Float4,
            Self::Float64 => Holds::Float8,
            Self::Decimal(digits, scale) => match u8::try_from(scale) {
                Ok(scale) => Holds::Decimal(digits, scale),
                Err(_) => Holds::Decimal(digits.saturating_add(scale.unsigned_abs()), 0),
            },
            Self::Text => Holds::Text,
            Self::Json => Holds::Json,
            Self::Uuid => Holds::Uuid,
            Self::Bytes => Holds::Bytes,
            Self::Date => Holds::Date,
            Self::Null | Self::Time(Unit::NANO) | Self::Timestamp(Unit::NANO, _) | Self::Int96 => {
                return None;
            }
            Self::Time(_) => Holds::Time,
            Self::Timestamp(_, true) => Holds::Timestamptz,
            Self::Timestamp(_, false) => Holds::Timestamp,
        })
    }
}

fn is_decimal(info: &BasicTypeInfo) -> bool {
    match info.logical_type_ref() {
        Some(logical) => matches!(logical, LogicalType::Decimal(_)),
        None => info.converted_type() == ConvertedType::DECIMAL,
    }
}

fn decimal(precision: i32, scale: i32) -> Option<Scalar> {
    Some(Scalar::Decimal(
        u8::try_from(precision).ok()?,
        i8::try_from(scale).ok()?,
    ))
}

fn int(bits: u8, is_signed: bool) -> Scalar {
    Scalar::Int(IntType { bits, is_signed })
}

fn of_int32(info: &BasicTypeInfo) -> Option<Scalar> {
    Some(match (info.logical_type_ref(), info.converted_type()) {
        (Some(LogicalType::Integer(of)), _) if matches!(of.bit_width, 8 | 16 | 32) => {
            int(of.bit_width.unsigned_abs(), of.is_signed)
        }
        (Some(LogicalType::Date), _) | (None, ConvertedType::DATE) => Scalar::Date,
        (Some(LogicalType::Time(time)), _) if time.unit == TimeUnit::MILLIS => {
            Scalar::Time(Unit::MILLI)
        }
        (None, ConvertedType::TIME_MILLIS) => Scalar::Time(Unit::MILLI),
        (None, ConvertedType::NONE | ConvertedType::INT_32) => int(32, true),
        (None, ConvertedType::INT_8) => int(8, true),
        (None, ConvertedType::INT_16) => int(16, true),
        (None, ConvertedType::UINT_8) => int(8, false),
        (None, ConvertedType::UINT_16) => int(16, false),
        (None, ConvertedType::UINT_32) => int(32, false),
        _ => return None,
    })
}

fn of_int64(info: &BasicTypeInfo) -> Option<Scalar> {
    Some(match (info.logical_type_ref(), info.converted_type()) {
        (Some(LogicalType::Integer(of)), _) if of.bit_width == 64 => int(64, of.is_signed),
        (Some(LogicalType::Time(time)), _) if time.unit != TimeUnit::MILLIS => {
            Scalar::Time(unit(time.unit))
        }
        (Some(LogicalType::Timestamp(at)), _) => {
            Scalar::Timestamp(unit(at.unit), at.is_adjusted_to_u_t_c)
        }
        (None, ConvertedType::TIME_MICROS) => Scalar::Time(Unit::MICRO),
        (None, ConvertedType::TIMESTAMP_MILLIS) => Scalar::Timestamp(Unit::MILLI, true),
        (None, ConvertedType::TIMESTAMP_MICROS) => Scalar::Timestamp(Unit::MICRO, true),
        (None, ConvertedType::NONE | ConvertedType::INT_64) => int(64, true),
        (None, ConvertedType::UINT_64) => int(64, false),
        _ => return None,
    })
}

fn of_bytes(info: &BasicTypeInfo) -> Option<Scalar> {
    Some(match (info.logical_type_ref(), info.converted_type()) {
        (Some(LogicalType::String), _) | (None, ConvertedType::UTF8 | ConvertedType::JSON) => {
            Scalar::Text
        }
        (Some(LogicalType::Json), _) => Scalar::Json,
        (
            Some(
                LogicalType::Bson
                | LogicalType::Enum
                | LogicalType::Geometry(_)
                | LogicalType::Geography(_)
                | LogicalType::_Unknown { .. },
            ),
            _,
        )
        | (None, ConvertedType::NONE | ConvertedType::BSON | ConvertedType::ENUM) => Scalar::Bytes,
        _ => return None,
    })
}

fn of_fixed(info: &BasicTypeInfo, length: i32) -> Option<Scalar> {
    Some(match (info.logical_type_ref(), info.converted_type()) {
        (None, ConvertedType::INTERVAL) => return None,
        (Some(LogicalType::Float16), _) => (length == 2).then_some(Scalar::Float16)?,
        (Some(LogicalType::Uuid), _) if length == 16 => Scalar::Uuid,
        _ => Scalar::Bytes,
    })
}

fn unit(unit: TimeUnit) -> Unit {
    match unit {
        TimeUnit::MILLIS => Unit::MILLI,
        TimeUnit::MICROS => Unit::MICRO,
        TimeUnit::NANOS => Unit::NANO,
    }
}
