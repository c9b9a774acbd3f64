//! Judges the values of a call whose INSERT is answered early.
//!
//! Everything here is stricter than [`crate::values::fit`]: a value that seems to fit is stored
//! without being asked for first.

use smallvec::SmallVec;
use windrow_core::{Arguments, Formats};
use windrow_proof::is_moment;

use super::carrier::int;
use super::literal;
use crate::catalog::column::{Column, Kind, may_name_moments, oid};
use crate::catalog::table::Facts;

/// Maximum size of a row's values in indexes, in bytes. The server refuses entries of a third of a
/// page.
pub(crate) const MAX_INDEXED: usize = 2_500;

/// Maximum size of a JSON value that is read, in bytes.
const MAX_JSON: usize = 64 << 10;

/// Microseconds from 2000-01-01 within which every `timestamp` lies in the server's range, whatever
/// its precision: about 4700 BC and 287000 AD.
const MOMENTS: std::ops::Range<i64> = -211_000_000_000_000_000..9_000_000_000_000_000_000;

/// Days from 2000-01-01 within which every `date` lies in the server's range.
const DAYS: std::ops::Range<i32> = -2_400_000..2_100_000_000;

/// The conditions on the values of a call.
#[derive(Clone, Debug)]
pub(crate) struct GivenValues {
    /// The values that are stored as they are; `None` if some are not read here.
    stored: Option<Box<[GivenValue]>>,
    /// The parameters whose texts may name a time by a word.
    times: Box<[usize]>,
    /// True if the database stores all characters.
    stores_utf8: bool,
}

/// A column whose value is a parameter.
pub(super) struct GivenColumn<'c> {
    pub(super) parameter: usize,
    pub(super) column: &'c Column,
    /// True if an index holds the column.
    pub(super) is_indexed: bool,
}

/// A value that becomes the value of a column.
#[derive(Clone, Debug)]
struct GivenValue {
    parameter: usize,
    form: GivenForm,
    /// True if the column refuses NULL.
    is_needed: bool,
    /// True if the value is part of an index, and may be long.
    is_indexed: bool,
}

/// The values that a column certainly takes.
#[derive(Clone, Debug)]
enum GivenForm {
    /// Whole numbers in this range, in binary of this size.
    Whole(std::ops::RangeInclusive<i64>, usize),
    /// Numbers with so many digits before the point, and after it; `None` if there is no limit.
    Numeric(Option<(i64, i64)>),
    /// Texts of at most so many characters.
    Text(Option<usize>),
    Label(std::sync::Arc<[Box<str>]>),
    Json,
    Jsonb,
    /// The type's usual spelling, or its binary form.
    Plain(u32),
}

impl GivenValues {
    /// Returns the conditions for the values of calls with parameters of these types. `given`: the
    /// columns that parameters become the values of.
    pub(super) fn of<'c>(
        parameters: &[u32],
        facts: &Facts,
        given: impl Iterator<Item = GivenColumn<'c>>,
        stores_utf8: bool,
    ) -> Self {
        let value = |given: GivenColumn<'_>| {
            let (parameter, column) = (given.parameter, given.column);
            Some(GivenValue {
                parameter,
                form: GivenForm::of(*parameters.get(parameter)?, column)?,
                is_needed: column.not_null,
                is_indexed: given.is_indexed && !column.kind.has_fixed_size(),
            })
        };
        let base = |parameter: u32| {
            let mut columns = facts.columns.iter();
            let column = columns.find(|column| column.type_oid == parameter);
            column.map_or(parameter, |column| column.base_oid)
        };
        let names_times = |(_, parameter): &(usize, &u32)| may_name_moments(base(**parameter));
        let times = parameters.iter().enumerate().filter(names_times);
        Self {
            stored: given.map(value).collect(),
            times: times.map(|(place, _)| place).collect(),
            stores_utf8,
        }
    }

    /// Returns true if the server certainly stores the values as they are.
    pub(crate) fn fit(&self, arguments: &Arguments, formats: &Formats) -> bool {
        let Some(stored) = &self.stored else {
            return false;
        };
        let values: SmallVec<[Option<&[u8]>; 16]> = arguments.iter().collect();
        let mut indexed = 0;
        stored.iter().all(|given| {
            let Some(Some(value)) = values.get(given.parameter) else {
                return !given.is_needed && values.len() > given.parameter;
            };
            indexed += if given.is_indexed { value.len() } else { 0 };
            let is_binary = formats.is_binary(given.parameter);
            given.form.takes(value, is_binary, self.stores_utf8) && indexed <= MAX_INDEXED
        })
    }

    /// Returns true if no value is a text that means another time later.
    pub(crate) fn are_lasting(&self, arguments: &Arguments, formats: &Formats) -> bool {
        if self.times.is_empty() || *formats == Formats::Binary {
            return true;
        }
        let values = arguments.iter().enumerate();
        let mut texts =
            values.filter(|(place, _)| self.times.contains(place) && !formats.is_binary(*place));
        !texts.any(|(_, value)| value.is_some_and(is_moment))
    }
}

impl GivenForm {
    /// Returns the form of a parameter of this type for a column; `None` if its values are not read
    /// here.
    fn of(parameter: u32, column: &Column) -> Option<Self> {
        let size = match parameter {
            oid::INT2 => 2,
            oid::INT4 => 4,
            oid::INT8 => 8,
            _ => 0,
        };
        let is_text = matches!(parameter, oid::TEXT | oid::VARCHAR | oid::BPCHAR);
        let range = |least, most| (size > 0).then_some(Self::Whole(least..=most, size));
        match &column.kind {
            Kind::Int2 => range(i16::MIN.into(), i16::MAX.into()),
            Kind::Int4 => range(i32::MIN.into(), i32::MAX.into()),
            Kind::Int8 => range(i64::MIN, i64::MAX),
            Kind::Text | Kind::Char => is_text.then_some(Self::Text(column.longest())),
            _ if parameter != column.type_oid => None,
            Kind::Numeric => Some(Self::Numeric(digits(column)?)),
            Kind::Enum(labels) => Some(Self::Label(labels.clone())),
            Kind::Json => Some(Self::Json),
            Kind::Jsonb => Some(Self::Jsonb),
            Kind::Bool | Kind::Float4 | Kind::Float8 | Kind::Uuid | Kind::Bytea => {
                Some(Self::Plain(parameter))
            }
            Kind::Timestamp | Kind::Timestamptz | Kind::Date => Some(Self::Plain(parameter)),
            Kind::Array(..) | Kind::Composite | Kind::Other => None,
        }
    }

    fn takes(&self, value: &[u8], is_binary: bool, stores_utf8: bool) -> bool {
        let is_text = || {
            let valid = if stores_utf8 {
                std::str::from_utf8(value).ok()
            } else {
                ascii(value)
            };
            valid.filter(|text| !text.contains('\0'))
        };
        match (self, is_binary) {
            (Self::Whole(range, size), _) => {
                let number = if is_binary {
                    whole(value, *size)
                } else {
                    int(value)
                };
                // The text is read as the parameter's type, which may be narrower.
                let shift = 64 - 8 * *size;
                let is_of_size = |n: i64| (n << shift) >> shift == n;
                number.is_some_and(|n| is_of_size(n) && range.contains(&n))
            }
            (Self::Numeric(limit), true) => is_binary_numeric(value, *limit),
            (Self::Numeric(limit), false) => is_decimal(value, *limit),
            (Self::Text(longest), _) => is_text()
                .is_some_and(|text| longest.is_none_or(|longest| text.chars().count() <= longest)),
            (Self::Label(labels), _) => labels.iter().any(|label| label.as_bytes() == value),
            (Self::Json, _) | (Self::Jsonb, false) => is_text().is_some_and(is_json),
            (Self::Jsonb, true) => match value {
                [1, json @ ..] => Self::Json.takes(json, false, stores_utf8),
                _ => false,
            },
            (Self::Plain(of), true) => is_binary_of(*of, value),
            (Self::Plain(oid::TIMESTAMPTZ), false) => {
                is_text().is_some_and(|text| crate::values::time::moment(text).is_some())
            }
            (Self::Plain(of), false) => literal::is_usual(*of, value),
        }
    }
}

fn ascii(value: &[u8]) -> Option<&str> {
    value.is_ascii().then(|| std::str::from_utf8(value).ok())?
}

fn whole(value: &[u8], size: usize) -> Option<i64> {
    let number = match *value {
        [a, b] => i64::from(i16::from_be_bytes([a, b])),
        [a, b, c, d] => i64::from(i32::from_be_bytes([a, b, c, d])),
        _ => i64::from_be_bytes(value.try_into().ok()?),
    };
    (value.len() == size).then_some(number)
}

fn is_json(text: &str) -> bool {
    text.len() <= MAX_JSON && literal::is_json(text.as_bytes())
}

/// Returns the digits of a `numeric` before and after its point; no limit if it has no modifier;
/// `None` if the point is not within its digits.
fn digits(column: &Column) -> Option<Option<(i64, i64)>> {
    if column.narrowed < 0 {
        return Some(None);
    }
    let packed = i64::from(column.narrowed) - 4;
    let precision = (packed >> 16) & 0xffff;
    let scale = ((packed & 0x7ff) ^ 1024) - 1024;
    (0..=precision)
        .contains(&scale)
        .then_some(Some((precision - scale, scale)))
}

/// Returns true for decimal digits that fit even if they are rounded up.
fn is_decimal(text: &[u8], limit: Option<(i64, i64)>) -> bool {
    let Some((before, after)) = limit else {
        return literal::is_decimal(text);
    };
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    let point = unsigned.iter().position(|byte| *byte == b'.');
    let (whole, rest) = unsigned.split_at(point.unwrap_or(unsigned.len()));
    let fraction = rest.get(1..).unwrap_or_default();
    let zeros = whole.iter().take_while(|byte| **byte == b'0').count();
    let whole = i64::try_from(whole.len() - zeros).unwrap_or(i64::MAX);
    let is_exact = i64::try_from(fraction.len()).is_ok_and(|digits| digits <= after);
    let is_plain = !text.contains(&b'e') && !text.contains(&b'E');
    is_plain && literal::is_decimal(text) && (whole < before || whole == before && is_exact)
}

/// Returns true for a `numeric` in binary (`numeric_recv` of `src/backend/utils/adt/numeric.c`)
/// that fits even if it is rounded up.
fn is_binary_numeric(value: &[u8], limit: Option<(i64, i64)>) -> bool {
    let mut words = value
        .chunks_exact(2)
        .filter_map(|pair| pair.try_into().ok());
    let mut word = || words.next().map(i16::from_be_bytes);
    let (Some(count), Some(weight), Some(sign), Some(scale)) = (word(), word(), word(), word())
    else {
        return false;
    };
    let is_number = matches!(sign, 0 | 0x4000) && (0..=1000).contains(&scale);
    let is_whole = usize::try_from(count).is_ok_and(|count| value.len() == 8 + 2 * count);
    let first = word();
    let is_digit = |digit: i16| (0..10_000).contains(&digit);
    let are_digits = first.is_none_or(is_digit) && std::iter::from_fn(word).all(is_digit);
    let is_plain = is_number && is_whole && are_digits && (-250..=250).contains(&weight);
    let before = match first {
        Some(first) if weight >= 0 => {
            let of_first = first
                .unsigned_abs()
                .checked_ilog10()
                .map_or(0, |n| i64::from(n) + 1);
            4 * i64::from(weight) + of_first
        }
        _ => 0,
    };
    let fits =
        |(most, after): (i64, i64)| before < most || before == most && i64::from(scale) <= after;
    is_plain && limit.is_none_or(fits)
}

/// Returns true for a value in the binary form of a type.
fn is_binary_of(type_oid: u32, value: &[u8]) -> bool {
    match type_oid {
        oid::BOOL => value.len() == 1,
        oid::FLOAT4 => value.len() == 4,
        oid::FLOAT8 => value.len() == 8,
        oid::UUID => value.len() == 16,
        oid::BYTEA => true,
        oid::DATE => {
            let days = value.try_into().map(i32::from_be_bytes);
            days.is_ok_and(|days| DAYS.contains(&days))
        }
        oid::TIMESTAMP | oid::TIMESTAMPTZ => {
            let micros = value.try_into().map(i64::from_be_bytes);
            micros.is_ok_and(|micros| MOMENTS.contains(&micros))
        }
        _ => false,
    }
}
