//! The records of executed requests with keys. With them a request that is sent twice is executed
//! once.

use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use windrow_core::bookkeeping::IDEMPOTENCY;
use windrow_core::shape::ShapeParts;
use windrow_core::{Fault, Key, Name, Op, Returning, Shape, Value, Write, WriteDone};

use crate::write::{number, parts, shape_of};

/// One part of a request with a key: a unit of writes that commit together.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeyPart {
    /// The client's key; at most [`KeyPart::KEY_BYTES`] bytes of ASCII.
    pub key: Box<str>,
    /// The number of the part within the request.
    pub part: u64,
}

/// The stored record of an executed part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// The fingerprint of the request.
    pub request: Box<str>,
    /// The outcome that the client got; `None` if it was not stored.
    pub outcome: Option<Box<[u8]>>,
}

impl KeyPart {
    /// Bytes of the longest key of a client.
    pub const KEY_BYTES: usize = 255;

    /// Bytes of the longest fingerprint.
    pub const REQUEST_BYTES: usize = 64;

    /// Returns the write that records the execution. It fails if the part is recorded already.
    pub fn insert(&self, request: &str, outcome: Option<&[u8]>) -> Write {
        let row = [
            self.key(),
            self.part(),
            Value::text(request),
            outcome.map_or(Value::Null, |bytes| Value::Bytes(bytes.into())),
        ];
        Write::new(Arc::clone(&INSERT), row)
    }

    /// Returns the write that adds the outcome.
    pub fn complete(&self, outcome: &[u8]) -> Write {
        let row = [Value::Bytes(outcome.into()), self.key(), self.part()];
        Write::new(Arc::clone(&COMPLETE), row)
    }

    /// Returns the write that deletes the record.
    pub fn forget(&self) -> Write {
        Write::new(Arc::clone(&FORGET), [self.key(), self.part()])
    }

    /// Returns the write that reads the record.
    pub fn read(&self) -> Write {
        Write::new(Arc::clone(&READ), [self.key(), self.part()])
    }

    /// Returns the record from the outcome of [`KeyPart::read`]; `None` if the part was not
    /// executed.
    ///
    /// # Errors
    /// The row was not written by Windrow.
    pub fn found(done: &WriteDone) -> Result<Option<Executed>, Fault> {
        let row = done.returned.as_ref().and_then(|found| found.rows.first());
        let Some(row) = row else { return Ok(None) };
        let executed = match &**row {
            [Value::Text(request), outcome] => executed(request, outcome),
            _ => None,
        };
        let strange = || {
            Fault::internal(format!(
                "the table {IDEMPOTENCY} holds what Windrow has not written"
            ))
        };
        executed.ok_or_else(strange).map(Some)
    }

    /// Returns part and fingerprint of a write that [`KeyPart::insert`] has created.
    pub fn of(write: &Write) -> Option<(Self, &str)> {
        if write.shape.op != Op::Insert || write.shape.table != INSERT.table {
            return None;
        }
        match write.row() {
            [Value::Text(key), Value::Int(part), Value::Text(request), _] => {
                let part = u64::try_from(*part).ok()?;
                let key = key.clone();
                Some((Self { key, part }, request))
            }
            _ => None,
        }
    }

    fn key(&self) -> Value {
        Value::text(&*self.key)
    }

    fn part(&self) -> Value {
        number(self.part)
    }
}

/// Returns the record of a row. Databases return binary data as base64.
fn executed(request: &str, outcome: &Value) -> Option<Executed> {
    let outcome = match outcome {
        Value::Null => None,
        Value::Bytes(bytes) => Some(bytes.clone()),
        Value::Text(text) => Some(STANDARD.decode(&**text).ok()?.into()),
        _ => return None,
    };
    Some(Executed {
        request: request.into(),
        outcome,
    })
}

const KEY: &str = "idempotency_key";
const PART: &str = "part";
const REQUEST: &str = "request";
const OUTCOME: &str = "outcome";

// Created once, because each row with a key needs them.
static INSERT: LazyLock<Arc<Shape>> = LazyLock::new(|| {
    shape_of(ShapeParts {
        columns: [KEY, PART, REQUEST, OUTCOME].map(Name::from).into(),
        key: Key::Primary,
        ..parts(Op::Insert, IDEMPOTENCY, [KEY, PART])
    })
});

static COMPLETE: LazyLock<Arc<Shape>> = LazyLock::new(|| {
    shape_of(ShapeParts {
        columns: [OUTCOME].map(Name::from).into(),
        ..parts(Op::Update, IDEMPOTENCY, [KEY, PART])
    })
});

static FORGET: LazyLock<Arc<Shape>> =
    LazyLock::new(|| shape_of(parts(Op::Delete, IDEMPOTENCY, [KEY, PART])));

static READ: LazyLock<Arc<Shape>> = LazyLock::new(|| {
    shape_of(ShapeParts {
        returning: Returning::Columns([REQUEST, OUTCOME].map(Name::from).into()),
        ..parts(Op::Get, IDEMPOTENCY, [KEY, PART])
    })
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_known_by_the_write_that_says_that_it_was_executed() {
        let part = KeyPart {
            key: "a".into(),
            part: 7,
        };
        let write = part.insert("f00", None);
        assert_eq!(KeyPart::of(&write), Some((part.clone(), "f00")));
        assert_eq!(KeyPart::of(&part.complete(b"x")), None);
        assert_eq!(KeyPart::of(&part.read()), None);
    }
}
