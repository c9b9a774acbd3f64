//! Encodes units.

use std::sync::Arc;

use windrow_core::{Key, Name, OnConflict, Op, Returning, Shape, Value, Write};

use super::tag::{self, VERSION};

/// The number of a unit's shapes that a write's shape is compared with. Any other is stored again,
/// which takes space but changes nothing.
const COMPARED: usize = 16;

/// Encodes units as entries. While it exists, it remembers the bytes of the last shape, which
/// nearly always is the next one too.
#[derive(Debug, Default)]
pub struct Encoder {
    last: Option<Arc<Shape>>,
    /// The encoded bytes.
    bytes: Vec<u8>,
}

impl Encoder {
    /// Returns an encoder that knows no shape.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends a unit to bytes, such as those of a [`crate::Batch`].
    pub fn unit(&mut self, writes: &[Write], out: &mut Vec<u8>) {
        out.push(VERSION);
        number(writes.len() as u64, out);
        let mut stored: Vec<&Arc<Shape>> = Vec::new();
        for write in writes {
            match place_of(&write.shape, &stored) {
                Some(place) => number(place as u64 + 1, out),
                None => {
                    number(0, out);
                    self.shape(&write.shape, out);
                    stored.push(&write.shape);
                }
            }
            number(write.row().len() as u64, out);
            for one in write.row() {
                value(one, out);
            }
        }
    }

    /// Appends a shape with its length.
    fn shape(&mut self, wanted: &Arc<Shape>, out: &mut Vec<u8>) {
        let is_last = |last: &Arc<Shape>| is_same(last, wanted);
        if !self.last.as_ref().is_some_and(is_last) {
            self.bytes.clear();
            shape(wanted, &mut self.bytes);
            self.last = Some(Arc::clone(wanted));
        }
        bytes(&self.bytes, out);
    }
}

/// Returns the number of a shape among those that are stored already.
fn place_of(wanted: &Arc<Shape>, stored: &[&Arc<Shape>]) -> Option<usize> {
    let mut compared = stored.iter().enumerate().rev().take(COMPARED);
    let found = compared.find(|(_, shape)| is_same(shape, wanted));
    found.map(|(place, _)| place)
}

fn is_same(one: &Arc<Shape>, other: &Arc<Shape>) -> bool {
    Arc::ptr_eq(one, other) || one == other
}

/// Returns the bytes of a unit's entry.
pub fn encode_unit(writes: &[Write]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Encoder::new().unit(writes, &mut bytes);
    bytes
}

fn shape(shape: &Shape, out: &mut Vec<u8>) {
    out.push(match shape.op {
        Op::Insert => tag::OP_INSERT,
        Op::Update => tag::OP_UPDATE,
        Op::Delete => tag::OP_DELETE,
        Op::Get => tag::OP_GET,
    });
    out.push(u8::from(shape.is_spelled()));
    out.push(u8::from(shape.table.schema.is_some()));
    if let Some(schema) = &shape.table.schema {
        text(schema, out);
    }
    text(&shape.table.table, out);
    names(&shape.columns, out);
    match &shape.key {
        Key::Primary => out.push(tag::KEY_PRIMARY),
        Key::Columns(columns) => {
            out.push(tag::KEY_COLUMNS);
            names(columns, out);
        }
    }
    out.push(match shape.on_conflict {
        OnConflict::Error => tag::CONFLICT_ERROR,
        OnConflict::Ignore => tag::CONFLICT_IGNORE,
        OnConflict::Update => tag::CONFLICT_UPDATE,
    });
    match &shape.returning {
        Returning::Nothing => out.push(tag::RETURNING_NOTHING),
        Returning::All => out.push(tag::RETURNING_ALL),
        Returning::Columns(columns) => {
            out.push(tag::RETURNING_COLUMNS);
            names(columns, out);
        }
    }
}

fn names(names: &[Name], out: &mut Vec<u8>) {
    number(names.len() as u64, out);
    for name in names {
        text(name, out);
    }
}

fn value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.push(tag::NULL),
        Value::Bool(false) => out.push(tag::FALSE),
        Value::Bool(true) => out.push(tag::TRUE),
        Value::Int(int) => {
            out.push(tag::INT);
            number(zigzag(*int), out);
        }
        Value::Number(digits) => tagged(tag::NUMBER, digits.as_bytes(), out),
        Value::Text(characters) => tagged(tag::TEXT, characters.as_bytes(), out),
        Value::Bytes(bytes) => tagged(tag::BYTES, bytes, out),
        Value::Json(json) => tagged(tag::JSON, json.as_bytes(), out),
    }
}

fn tagged(tag: u8, content: &[u8], out: &mut Vec<u8>) {
    out.push(tag);
    bytes(content, out);
}

fn text(text: &str, out: &mut Vec<u8>) {
    bytes(text.as_bytes(), out);
}

fn bytes(bytes: &[u8], out: &mut Vec<u8>) {
    number(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Encodes small numbers of either sign in few bytes.
fn zigzag(int: i64) -> u64 {
    (int.cast_unsigned() << 1) ^ (int >> 63).cast_unsigned()
}

fn number(mut number: u64, out: &mut Vec<u8>) {
    loop {
        let [low, ..] = number.to_le_bytes();
        if number < 0x80 {
            return out.push(low);
        }
        out.push(low | 0x80);
        number >>= 7;
    }
}
