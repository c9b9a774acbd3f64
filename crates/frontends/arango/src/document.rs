//! Parses the JSON text of a document into the columns of a row.

use std::sync::Arc;

use windrow_core::{Name, OnConflict, Op, Shape, Value};
use windrow_http::extension::object::{self, Columns};

use crate::attributes::{ID, KEY, REV};
use crate::error::{self, Error, KEY_BAD, bad};
use crate::options::Options;

/// A document without the attributes that ArangoDB adds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Document {
    pub(crate) names: Vec<Name>,
    pub(crate) values: Vec<Value>,
    /// The value of `_key`, if present.
    pub(crate) key: Option<Box<str>>,
    /// The value of `_id`, used only to find a document.
    pub(crate) id: Option<Box<str>>,
}

impl Document {
    /// Parses one JSON object. `guess` is the shape of an earlier document, which this one may
    /// share.
    ///
    /// # Errors
    /// The syntax error of the text, or a `_key` that is no string.
    pub(crate) fn read(text: &[u8], guess: Option<&Arc<Shape>>) -> Result<Self, Error> {
        let (columns, mut values) = object::read(text, guess, 2)?;
        let mut names = match (columns, guess) {
            (Columns::Named(names), _) => names,
            (Columns::Guessed, Some(shape)) => shape.columns.to_vec(),
            (Columns::Guessed, None) => Vec::new(),
        };
        let mut take = |wanted: &str| {
            let place = names.iter().position(|name| **name == *wanted)?;
            names.remove(place);
            (place < values.len()).then(|| values.remove(place))
        };
        let key = match take(KEY) {
            None => None,
            Some(Value::Text(key)) => Some(key),
            Some(_) => return Err(bad(KEY_BAD, "illegal document key: _key must be a text")),
        };
        let id = take(ID).and_then(|id| match id {
            Value::Text(id) => Some(id),
            _ => None,
        });
        drop(take(REV));
        Ok(Self {
            names,
            values,
            key,
            id,
        })
    }

    /// Checks that the document's key, if it has one, equals the key in the path.
    pub(crate) fn check_same(&self, key: &str) -> Result<(), Error> {
        match &self.key {
            Some(other) if **other != *key => Err(bad(
                KEY_BAD,
                format!(
                    "the body has the _key {other:?}, the path {key:?}; a key cannot be changed"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Refuses attributes with objects if ArangoDB would merge them with the stored objects.
    pub(crate) fn check_merge(&self, options: &Options, op: Op) -> Result<(), Error> {
        let changes = op == Op::Update || options.on_conflict == OnConflict::Update;
        if !changes || !options.merges {
            return Ok(());
        }
        let is_object = |value: &Value| matches!(value, Value::Json(text) if text.starts_with('{'));
        let object = self.values.iter().position(is_object);
        match object.and_then(|place| self.names.get(place)) {
            None => Ok(()),
            Some(name) => Err(error::unsupported(format!(
                "the attribute {name:?} is an object, and merging it with the one that is there cannot be promised over any \
                 database: send mergeObjects=false to have it replaced"
            ))),
        }
    }
}
