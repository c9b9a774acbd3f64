//! Parses a JSON object into a row without an intermediate tree: names are only compared with those
//! of the last row, values go directly from the text to their final place, and numbers keep their
//! digits.

use std::fmt;
use std::sync::Arc;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use windrow_core::name::check_column;
use windrow_core::{Fault, Name, Shape, Value};

use crate::rows::position::Position;
use crate::rows::{MAX_COLUMNS, MAX_DEPTH};

pub use crate::rows::position::RowError;

/// The columns of a row that was read.
#[derive(Clone, Debug)]
pub enum Columns {
    /// The columns of the expected shape.
    Guessed,
    /// Other columns; distinct and checked.
    Named(Vec<Name>),
}

/// Reads one object. The list of values gets capacity for values that may follow those of the
/// object, see [`Vec::with_capacity`].
///
/// # Errors
/// The error, at a position counted from the start of the text.
pub fn read(
    text: &[u8],
    guess: Option<&Arc<Shape>>,
    spare: usize,
) -> Result<(Columns, Vec<Value>), RowError> {
    let expected = guess.map_or(&[][..], |shape| &shape.columns);
    let object = Object { expected, spare };
    let read = match std::str::from_utf8(text) {
        // Checked once as a whole, and not again for each of its pieces.
        Ok(text) => object.read(serde_json::Deserializer::from_str(text)),
        // The reader of bytes reports where.
        Err(_) => object.read(serde_json::Deserializer::from_slice(text)),
    };
    read.map_err(|error| json_error(&error))
}

/// Returns an error of serde_json, with the position removed from its message.
pub fn json_error(error: &serde_json::Error) -> RowError {
    let position = Position {
        line: (error.line() as u64).max(1),
        column: (error.column() as u64).max(1),
    };
    let whole = error.to_string();
    let suffix = format!(" at line {} column {}", error.line(), error.column());
    let message = whole.strip_suffix(&suffix).unwrap_or(&whole);
    let not_json = matches!(
        error.classify(),
        serde_json::error::Category::Syntax | serde_json::error::Category::Eof
    );
    let message = if not_json {
        format!("the body is not valid JSON: {message}")
    } else {
        message.to_owned()
    };
    RowError::text(position, message)
}

struct Object<'s> {
    expected: &'s [Name],
    spare: usize,
}

impl Object<'_> {
    /// Reads an object that is the whole text.
    fn read<'de, R: serde_json::de::Read<'de>>(
        self,
        mut json: serde_json::Deserializer<R>,
    ) -> serde_json::Result<(Columns, Vec<Value>)> {
        let read = self.deserialize(&mut json)?;
        json.end()?;
        Ok(read)
    }
}

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = (Columns, Vec<Value>);

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = (Columns, Vec<Value>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object with the columns of one row")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = Vec::with_capacity(self.expected.len() + self.spare);
        for (at, expected) in self.expected.iter().enumerate() {
            match map.next_key_seed(Match(expected))? {
                Some(None) => values.push(cell(&mut map)?),
                Some(Some(other)) => {
                    let names = self.expected.get(..at).unwrap_or_default();
                    return named(map, names.to_vec(), Some(other), values);
                }
                None => {
                    let names = self.expected.get(..at).unwrap_or_default();
                    return Ok((Columns::Named(names.to_vec()), values));
                }
            }
        }
        match map.next_key_seed(Any)? {
            None if !self.expected.is_empty() => Ok((Columns::Guessed, values)),
            other => named(map, self.expected.to_vec(), other, values),
        }
    }
}

/// Reads the rest of an object whose columns differ from the expected ones.
fn named<'de, A: MapAccess<'de>>(
    mut map: A,
    mut names: Vec<Name>,
    mut next: Option<Name>,
    mut values: Vec<Value>,
) -> Result<(Columns, Vec<Value>), A::Error> {
    while let Some(name) = next {
        names.push(name);
        if names.len() > MAX_COLUMNS {
            // The rest is read too, so that this error does not hide an error of the text itself.
            map.next_value::<IgnoredAny>()?;
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Err(A::Error::custom(format!(
                "the row has more than {MAX_COLUMNS} columns, which is the limit"
            )));
        }
        values.push(cell(&mut map)?);
        next = map.next_key_seed(Any)?;
    }
    check_names(&names).map_err(|fault| A::Error::custom(fault.message))?;
    Ok((Columns::Named(names), values))
}

/// Checks the columns of a row.
///
/// # Errors
/// An invalid name, or one that occurs twice.
pub(crate) fn check_names(names: &[Name]) -> Result<(), Fault> {
    names.iter().try_for_each(|name| check_column(name))?;
    let mut sorted: Vec<&Name> = names.iter().collect();
    sorted.sort_unstable();
    let twice = sorted.windows(2).find(|pair| pair.first() == pair.last());
    match twice.and_then(|pair| pair.first()) {
        Some(name) => Err(Fault::invalid(format!(
            "the column {name:?} occurs twice in one row"
        ))),
        None => Ok(()),
    }
}

fn cell<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Value, A::Error> {
    let raw: &RawValue = map.next_value()?;
    value(raw.get()).map_err(A::Error::custom)
}

/// Returns the value of a JSON text, which is known to be well-formed.
///
/// # Errors
/// An unpaired surrogate in a string, nesting past 128 levels.
pub fn value(raw: &str) -> Result<Value, String> {
    match raw.as_bytes().first() {
        Some(b'"') => string(raw),
        Some(b'{' | b'[') => {
            check_depth(raw)?;
            Ok(Value::Json(raw.into()))
        }
        Some(b't') => Ok(Value::Bool(true)),
        Some(b'f') => Ok(Value::Bool(false)),
        Some(b'n') => Ok(Value::Null),
        _ => Ok(Value::number(raw)),
    }
}

fn string(raw: &str) -> Result<Value, String> {
    let inner = raw
        .strip_prefix('"')
        .and_then(|rest| rest.strip_suffix('"'))
        .unwrap_or_default();
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Ok(Value::Text(inner.into()));
    }
    serde_json::from_str::<Box<str>>(raw)
        .map(Value::Text)
        .map_err(|error| json_error(&error).fault.message.into())
}

/// Refuses nesting beyond the limit, which would break the next reader. The row's own object is the
/// first level.
fn check_depth(raw: &str) -> Result<(), String> {
    let mut depth = 1;
    let mut bytes = raw.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            b'"' => skip_string(&mut bytes),
            _ => {}
        }
        if depth > MAX_DEPTH {
            return Err(too_deep());
        }
    }
    Ok(())
}

fn skip_string(bytes: &mut std::str::Bytes<'_>) {
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => return,
            b'\\' => drop(bytes.next()),
            _ => {}
        }
    }
}

/// Returns the message for nesting past the limit.
pub(crate) fn too_deep() -> String {
    format!("the JSON is nested more deeply than {MAX_DEPTH} levels, which is the limit")
}

/// Compares a field's name with the expected one; returns the name only if it differs.
struct Match<'s>(&'s Name);

/// Accepts any field's name.
struct Any;

impl<'de> DeserializeSeed<'de> for Match<'_> {
    type Value = Option<Name>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Match<'_> {
    type Value = Option<Name>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a column")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok((**self.0 != *name).then(|| name.into()))
    }
}

impl<'de> DeserializeSeed<'de> for Any {
    type Value = Name;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_str(self)
    }
}

impl Visitor<'_> for Any {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a column")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(name.into())
    }
}

#[cfg(test)]
#[path = "object_tests.rs"]
mod tests;
