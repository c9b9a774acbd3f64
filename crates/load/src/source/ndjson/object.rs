//! One line of NDJSON: an object whose keys are columns.

use std::collections::HashMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;
use windrow_core::{Field, Name};

use super::super::skip;

/// A value as it is written in the line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Cell<'a> {
    /// NULL, or no value.
    #[default]
    Null,
    /// A number, `true`, `false`, an array or an object.
    Raw(&'a str),
    /// A string without escapes.
    Text(&'a str),
    /// A string whose escapes were resolved.
    Owned(String),
}

impl Cell<'_> {
    pub(super) fn field(&self) -> Field<'_> {
        match self {
            Self::Null => Field::Null,
            Self::Text(text) => Field::Text(text),
            Self::Owned(text) => Field::Text(text),
            Self::Raw("true") => Field::Bool(true),
            Self::Raw("false") => Field::Bool(false),
            Self::Raw(json) if json.starts_with(['{', '[']) => Field::Json(json),
            Self::Raw(number) => Field::Number(number),
        }
    }
}

/// The file's columns, and where to find each.
#[derive(Debug, Default)]
pub(super) struct Columns {
    pub(super) names: Vec<Name>,
    places: HashMap<Name, usize>,
    /// True if other keys are ignored.
    pub(super) only: bool,
}

/// The place of a key that is ignored.
const NOWHERE: usize = usize::MAX;

impl Columns {
    pub(super) fn new(names: Vec<Name>) -> Self {
        let places = names.iter().cloned().zip(0..).collect();
        Self {
            names,
            places,
            only: false,
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.places.contains_key(key)
    }

    /// Returns the column of a key. `likely` is tried first, because most files have their keys in
    /// the same order on all lines.
    fn place(&self, key: &str, likely: usize) -> Option<usize> {
        match self.names.get(likely) {
            Some(name) if **name == *key => Some(likely),
            _ => self.places.get(key).copied(),
        }
    }
}

/// Returns the keys of an object, in order.
///
/// # Errors
/// The line is no object.
pub(super) fn keys(line: &str) -> Result<Vec<Name>, String> {
    struct Keys;
    impl<'de> Visitor<'de> for Keys {
        type Value = Vec<Name>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object, whose keys are columns")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Name>, A::Error> {
            let mut names = Vec::new();
            while let Some((key, _)) = map.next_entry::<String, &RawValue>()? {
                names.push(key.into());
            }
            Ok(names)
        }
    }
    let mut json = serde_json::Deserializer::from_str(line);
    let names = json.deserialize_map(Keys).map_err(|error| words(&error))?;
    json.end().map_err(|error| words(&error))?;
    Ok(names)
}

/// Returns the values of an object, in the order of the columns.
///
/// # Errors
/// A message for the user: the line is not an object, a key is not a column or occurs twice, or a
/// text contains a NUL character.
pub(super) fn cells<'a>(line: &'a str, columns: &Columns) -> Result<Vec<Cell<'a>>, String> {
    let mut json = serde_json::Deserializer::from_str(line);
    let cells = json
        .deserialize_map(Cells(columns))
        .map_err(|error| words(&error))?;
    json.end().map_err(|error| words(&error))?;
    Ok(cells)
}

struct Cells<'c>(&'c Columns);

impl<'de> Visitor<'de> for Cells<'_> {
    type Value = Vec<Cell<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object, whose keys are columns")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let columns = self.0;
        let mut cells = vec![None; columns.names.len()];
        let mut likely = 0;
        while let Some(place) = map.next_key_seed(Place { columns, likely })? {
            let raw: &RawValue = map.next_value()?;
            let Some(cell) = cells.get_mut(place) else {
                continue;
            };
            if cell.is_some() {
                let name = columns.names.get(place).map_or("", |name| name);
                return Err(A::Error::custom(format!("has the key {name:?} twice")));
            }
            *cell = Some(value(raw.get()).map_err(A::Error::custom)?);
            likely = place.saturating_add(1);
        }
        Ok(cells.into_iter().map(Option::unwrap_or_default).collect())
    }
}

/// Reads a key as the column's place.
struct Place<'c> {
    columns: &'c Columns,
    likely: usize,
}

impl<'de> DeserializeSeed<'de> for Place<'_> {
    type Value = usize;

    fn deserialize<D: Deserializer<'de>>(self, key: D) -> Result<usize, D::Error> {
        key.deserialize_str(self)
    }
}

impl Visitor<'_> for Place<'_> {
    type Value = usize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<usize, E> {
        match self.columns.place(key, self.likely) {
            Some(place) => Ok(place),
            None if self.columns.only => Ok(NOWHERE),
            None => Err(E::custom(format!(
                "has the key {key:?}, which is no column of the table, or one with a default that no object at the file's \
                 beginning names; --columns says which keys are loaded"
            ))),
        }
    }
}

/// Reads a value from its text, which is known to be well-formed.
fn value(raw: &str) -> Result<Cell<'_>, String> {
    let Some(inner) = raw.strip_prefix('"').and_then(|r| r.strip_suffix('"')) else {
        return Ok(if raw == "null" {
            Cell::Null
        } else {
            Cell::Raw(raw)
        });
    };
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Ok(Cell::Text(inner));
    }
    let text: String = serde_json::from_str(raw).map_err(|error| words(&error))?;
    skip::no_nul(text.as_bytes())?;
    Ok(Cell::Owned(text))
}

/// The beginning of messages about a line that is no object.
const NO_OBJECT: &str = "is not a JSON object";

/// Returns the message of an error. serde_json counts lines within its input, which is one line
/// here, so only the column is useful.
fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let message = match text.rsplit_once(" at line ") {
        Some((message, _)) => message,
        None => text.as_str(),
    };
    if message.starts_with("has ") || message.starts_with(NO_OBJECT) {
        message.to_owned()
    } else if error.column() == 0 {
        format!("{NO_OBJECT}: {message}")
    } else {
        format!("{NO_OBJECT}: {message}, at its byte {}", error.column())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Columns {
        Columns::new(["a", "b", "c"].map(Name::from).to_vec())
    }

    #[test]
    fn values_keep_their_text_and_missing_ones_are_null() {
        let line = r#" {"c": 1.50e400, "a": "x\n\"y", "b": {"k": [1, 2.0]}} "#;
        let cells = cells(line, &columns()).unwrap();
        let fields: Vec<_> = cells.iter().map(Cell::field).collect();
        assert_eq!(
            fields,
            [
                Field::Text("x\n\"y"),
                Field::Json("{\"k\": [1, 2.0]}"),
                Field::Number("1.50e400")
            ]
        );
        let cells = super::cells(r#"{"b":true,"c":null}"#, &columns()).unwrap();
        let fields: Vec<_> = cells.iter().map(Cell::field).collect();
        assert_eq!(fields, [Field::Null, Field::Bool(true), Field::Null]);
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (line, reason) in [
            (
                r#"{"a":1,"d":2}"#,
                r#"has the key "d", which is no column of the table"#,
            ),
            (r#"{"a":1,"a":2}"#, r#"has the key "a" twice"#),
            (r#"{"a":"\u0000"}"#, "has a NUL character"),
            (
                r#"{"a":"\ud800"}"#,
                "is not a JSON object: unexpected end of hex escape",
            ),
            (
                r#"{"a":1"#,
                "is not a JSON object: EOF while parsing an object, at its byte 6",
            ),
            (
                r#"{"a":1} {}"#,
                "is not a JSON object: trailing characters, at its byte 9",
            ),
            ("[1]", "is not a JSON object: "),
        ] {
            let error = cells(line, &columns()).unwrap_err();
            assert!(error.starts_with(reason), "{line}: {error}");
        }
    }
}
