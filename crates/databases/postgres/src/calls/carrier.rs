//! Carriers: the raw values of one parameter as one array, without reading them if that makes no
//! difference.
//!
//! The server reads the elements of a binary array with the same function as a single binary value,
//! so binary values of any type with arrays are passed unchanged. A text is passed unchanged if the
//! type's binary form is its text. Texts of a few other types are converted here. All other texts
//! go as text and are cast by the server, which calls the same function as for a single text.

use bytes::{BufMut, BytesMut};

use crate::catalog::column::{Column, oid};
use crate::catalog::table::Facts;
use crate::values::encode::{Unfit, put_i32_at};
use crate::values::fit::Fit;
use crate::values::scalar;

/// One parameter of a statement, in one format.
#[derive(Clone, Debug)]
pub(crate) struct Carrier {
    form: Form,
    /// OIDs of the types of the array's elements and of the array.
    element: u32,
    pub(crate) array: u32,
    /// The type that elements are cast to.
    pub(crate) cast: Option<Box<str>>,
    /// True if the parameter's type is a domain. Elements have another type, and become values of
    /// the domain only when they are assigned to a column.
    pub(crate) is_domain: bool,
    /// True if the value is assigned to a column that must not be NULL.
    pub(crate) not_null: bool,
    /// Maximum number of characters, if the value is assigned to a column with such a limit.
    pub(crate) longest: Option<usize>,
}

/// The conversion of a value; `Raw` passes it unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Raw,
    Int2,
    Int4,
    Int8,
    Float4,
    Float8,
    Bool,
    Uuid,
    Bytea,
    Jsonb,
}

/// Types whose texts are their binary forms.
const TEXTS: [(u32, u32); 4] = [
    (oid::TEXT, oid::TEXT_ARRAY),
    (oid::VARCHAR, 1015),
    (oid::BPCHAR, 1014),
    (oid::JSON, 199),
];

/// Other types, their arrays, and how a text becomes one.
const SHORT: [(u32, u32, Form); 9] = [
    (oid::INT2, 1005, Form::Int2),
    (oid::INT4, 1007, Form::Int4),
    (oid::INT8, 1016, Form::Int8),
    (oid::FLOAT4, 1021, Form::Float4),
    (oid::FLOAT8, 1022, Form::Float8),
    (oid::BOOL, 1000, Form::Bool),
    (oid::UUID, 2951, Form::Uuid),
    (oid::BYTEA, 1001, Form::Bytea),
    (oid::JSONB, 3807, Form::Jsonb),
];

/// Types, their arrays, and their names: a cast from text calls their input functions (there is no
/// other cast from text to them, and no length that a bare name would stand for).
const CAST: [(u32, u32, &str); 11] = [
    (oid::NUMERIC, 1231, "numeric"),
    (oid::TIMESTAMPTZ, 1185, "timestamptz"),
    (oid::TIMESTAMP, 1115, "timestamp"),
    (oid::DATE, 1182, "date"),
    (1083, 1183, "time"),
    (1266, 1270, "timetz"),
    (1186, 1187, "interval"),
    (869, 1041, "inet"),
    (650, 651, "cidr"),
    (829, 1040, "macaddr"),
    (600, 1017, "point"),
];

impl Carrier {
    /// Returns the carrier of a parameter of this type; `None` if its values cannot travel in an
    /// array.
    pub(crate) fn of(parameter: u32, binary: bool, facts: &Facts) -> Option<Self> {
        built_in(parameter, binary).or_else(|| {
            facts
                .columns
                .iter()
                .find_map(|c| of_column(c, parameter, binary))
        })
    }

    /// Returns the carrier of texts of a built-in type; `None` if there is none.
    pub(crate) fn of_built_in(parameter: u32) -> Option<Self> {
        built_in(parameter, false)
    }

    fn new(form: Form, element: u32, array: u32) -> Self {
        Self {
            form,
            element,
            array,
            cast: None,
            is_domain: false,
            not_null: false,
            longest: None,
        }
    }

    /// Notes that the parameter is assigned to a column unchanged. `strict`: no trigger can replace
    /// a NULL.
    pub(crate) fn assign(&mut self, column: &Column, strict: bool) {
        self.not_null |= strict && column.not_null;
        self.longest = self.longest.or(column.longest());
    }

    /// Returns how well a value fits: if it can be carried, and if the server will accept it.
    pub(crate) fn fit(&self, value: Option<&[u8]>) -> Fit {
        let Some(value) = value else {
            return if self.not_null { Fit::Bad } else { Fit::Sure };
        };
        let sure = match self.form {
            Form::Raw | Form::Jsonb => match self.longest {
                // Blanks at the end may be cut off.
                Some(longest) if value.len() > longest => return too_long(value, longest),
                _ => return Fit::Sure,
            },
            Form::Int2 => int(value).is_some_and(|n| i16::try_from(n).is_ok()),
            Form::Int4 => int(value).is_some_and(|n| i32::try_from(n).is_ok()),
            Form::Int8 => int(value).is_some(),
            Form::Float4 => scalar::plain_single(value).is_some(),
            Form::Float8 => scalar::plain_double(value).is_some(),
            Form::Bool => boolean(value).is_some(),
            Form::Uuid => scalar::uuid_of(value).is_some(),
            Form::Bytea => is_bytea(value),
        };
        if sure { Fit::Sure } else { self.odd(value) }
    }

    /// Rates a value without the usual spelling: unsure if the server may accept it, bad if the
    /// server certainly refuses it. A bad value runs alone, so that other calls do not fail with
    /// it.
    fn odd(&self, value: &[u8]) -> Fit {
        let maybe = match self.form {
            Form::Int2 | Form::Int4 | Form::Int8 => {
                let trimmed = value.trim_ascii();
                trimmed.len() < value.len() && int(trimmed).is_some()
                    || trimmed.starts_with(b"+")
                    || trimmed.contains(&b'_')
                    || trimmed.starts_with(b"0x")
            }
            Form::Float4 | Form::Float8 => {
                let first = value.trim_ascii().first().map(u8::to_ascii_lowercase);
                matches!(first, Some(b'i' | b'n' | b'+' | b'-'))
                    || value.trim_ascii().len() < value.len()
            }
            Form::Bool => {
                let first = value.trim_ascii().first().map(u8::to_ascii_lowercase);
                matches!(first, Some(b't' | b'f' | b'y' | b'n' | b'o' | b'0' | b'1'))
            }
            Form::Uuid => value.len() >= 32 && value.iter().any(u8::is_ascii_hexdigit),
            Form::Bytea => value.starts_with(b"\\x") || value.contains(&b'\\'),
            Form::Raw | Form::Jsonb => true,
        };
        if maybe { Fit::Unsure } else { Fit::Bad }
    }

    /// Appends the values as the body of an array parameter (`array_recv` of
    /// `src/backend/utils/adt/arrayfuncs.c`).
    pub(crate) fn push_array<'v>(
        &self,
        values: impl ExactSizeIterator<Item = Option<&'v [u8]>>,
        out: &mut BytesMut,
    ) -> Result<(), Unfit> {
        let length = i32::try_from(values.len()).map_err(|_| Unfit)?;
        out.put_i32(1);
        // The server ignores the flag for NULLs.
        out.put_i32(1);
        out.put_u32(self.element);
        out.put_i32(length);
        out.put_i32(1);
        for value in values {
            match value {
                Some(value) => self.push(value, out)?,
                None => out.put_i32(-1),
            }
        }
        Ok(())
    }

    #[inline]
    fn push(&self, value: &[u8], out: &mut BytesMut) -> Result<(), Unfit> {
        match self.form {
            Form::Raw => {
                out.put_i32(i32::try_from(value.len()).map_err(|_| Unfit)?);
                out.put_slice(value);
            }
            Form::Int2 => {
                out.put_i32(2);
                out.put_i16(narrow(int(value))?);
            }
            Form::Int4 => {
                out.put_i32(4);
                out.put_i32(narrow(int(value))?);
            }
            Form::Int8 => {
                out.put_i32(8);
                out.put_i64(int(value).ok_or(Unfit)?);
            }
            Form::Float4 => {
                out.put_i32(4);
                out.put_f32(scalar::plain_single(value).ok_or(Unfit)?);
            }
            Form::Float8 => {
                out.put_i32(8);
                out.put_f64(scalar::plain_double(value).ok_or(Unfit)?);
            }
            Form::Bool => {
                out.put_i32(1);
                out.put_u8(u8::from(boolean(value).ok_or(Unfit)?));
            }
            Form::Uuid => {
                out.put_i32(16);
                out.put_slice(&scalar::uuid_of(value).ok_or(Unfit)?);
            }
            Form::Jsonb => {
                out.put_i32(i32::try_from(value.len() + 1).map_err(|_| Unfit)?);
                // The version of jsonb's binary form.
                out.put_u8(1);
                out.put_slice(value);
            }
            Form::Bytea => return push_bytea(value, out),
        }
        Ok(())
    }
}

fn built_in(parameter: u32, binary: bool) -> Option<Carrier> {
    if let Some((element, array)) = TEXTS.iter().find(|(oid, _)| *oid == parameter) {
        return Some(Carrier::new(Form::Raw, *element, *array));
    }
    if let Some((element, array, form)) = SHORT.iter().find(|(oid, ..)| *oid == parameter) {
        let form = if binary { Form::Raw } else { *form };
        return Some(Carrier::new(form, *element, *array));
    }
    let (element, array, name) = CAST.iter().find(|(oid, ..)| *oid == parameter)?;
    if binary {
        return Some(Carrier::new(Form::Raw, *element, *array));
    }
    Some(Carrier {
        cast: Some(format!("pg_catalog.{name}").into()),
        ..Carrier::new(Form::Raw, oid::TEXT, oid::TEXT_ARRAY)
    })
}

/// Returns the carrier of a column's type: an enum, whose binary form is its text; a domain, which
/// is carried as its base type; or any other type with arrays, in binary only.
fn of_column(column: &Column, parameter: u32, binary: bool) -> Option<Carrier> {
    use crate::catalog::column::Kind;
    if column.type_oid != parameter {
        return None;
    }
    if column.base_oid != column.type_oid {
        return Some(Carrier {
            is_domain: true,
            ..built_in(column.base_oid, binary)?
        });
    }
    let whole = !matches!(column.kind, Kind::Array(..) | Kind::Composite) && column.array_oid != 0;
    let raw = binary || matches!(column.kind, Kind::Enum(_));
    (whole && raw).then(|| Carrier::new(Form::Raw, column.base_oid, column.array_oid))
}

fn too_long(value: &[u8], longest: usize) -> Fit {
    let trimmed = value.trim_ascii_end();
    // Bytes that begin a character of UTF-8.
    let characters = trimmed.iter().filter(|byte| **byte & 0xC0 != 0x80).count();
    if characters > longest {
        Fit::Bad
    } else {
        Fit::Sure
    }
}

fn narrow<T: TryFrom<i64>>(n: Option<i64>) -> Result<T, Unfit> {
    n.and_then(|n| T::try_from(n).ok()).ok_or(Unfit)
}

/// Reads a whole number that every version of the server accepts: a sign and decimal digits.
pub(crate) fn int(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || digits.len() > 19 {
        return None;
    }
    let mut n: u64 = 0;
    for digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        // Nineteen digits are less than 2^64.
        n = n * 10 + u64::from(digit);
    }
    if negative {
        0_i64.checked_sub_unsigned(n)
    } else {
        i64::try_from(n).ok()
    }
}

fn boolean(text: &[u8]) -> Option<bool> {
    match text {
        b"t" | b"true" | b"1" | b"on" | b"yes" | b"y" => Some(true),
        b"f" | b"false" | b"0" | b"off" | b"no" | b"n" => Some(false),
        _ => None,
    }
}

/// Returns true for hexadecimal digits, and for bytes without an escape.
fn is_bytea(text: &[u8]) -> bool {
    match text {
        [b'\\', b'x', digits @ ..] => {
            digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit)
        }
        plain => plain.is_ascii() && !plain.contains(&b'\\'),
    }
}

fn push_bytea(text: &[u8], out: &mut BytesMut) -> Result<(), Unfit> {
    let at = out.len();
    out.put_i32(0);
    match text {
        [b'\\', b'x', digits @ ..] => {
            for pair in digits.chunks_exact(2) {
                let byte = pair.iter().try_fold(0_u8, |byte, digit| {
                    let digit = u8::try_from(char::from(*digit).to_digit(16)?).ok()?;
                    Some(byte << 4 | digit)
                });
                out.put_u8(byte.ok_or(Unfit)?);
            }
        }
        plain => out.put_slice(plain),
    }
    let size = out.len() - at - size_of::<i32>();
    put_i32_at(out, at, size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_signs_and_digits() {
        for (text, n) in [
            ("0", 0),
            ("-0", 0),
            ("007", 7),
            ("-9223372036854775808", i64::MIN),
            ("9223372036854775807", i64::MAX),
        ] {
            assert_eq!(int(text.as_bytes()), Some(n), "{text}");
        }
        for odd in [
            "",
            "-",
            "+1",
            " 1",
            "1 ",
            "1.0",
            "9223372036854775808",
            "12345678901234567890",
            "0x1",
        ] {
            assert_eq!(int(odd.as_bytes()), None, "{odd}");
        }
    }

    #[test]
    fn bytes_are_hexadecimal_or_plain() {
        let mut out = BytesMut::new();
        push_bytea(b"\\x00fF", &mut out).unwrap();
        push_bytea(b"ab", &mut out).unwrap();
        assert_eq!(&out[..], [0, 0, 0, 2, 0, 255, 0, 0, 0, 2, b'a', b'b']);
        assert!(is_bytea(b"") && !is_bytea(b"\\x0") && !is_bytea(b"\\001") && !is_bytea(b"\\x0g"));
    }

    #[test]
    fn what_is_cut_off_without_an_error_is_not_too_long() {
        assert_eq!(too_long(b"abc  ", 3), Fit::Sure);
        assert_eq!(too_long("äöü".as_bytes(), 3), Fit::Sure);
        assert_eq!(too_long(b"abcd", 3), Fit::Bad);
    }
}
