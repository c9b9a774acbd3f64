//! Fingerprints, which distinguish requests with the same key.

use sha2::{Digest as _, Sha256};
use windrow_core::{Key, Name, OnConflict, Op, Returning, Shape, Value, Write};

/// A fingerprint of the units of a request so far, in their order: two requests have the same one
/// if they ask for the same in the same order. It is stored, so its computation never changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fingerprint([u8; 16]);

impl Fingerprint {
    /// Returns the fingerprint with one more unit. `way`: a word for the time of its answer.
    #[must_use]
    pub(crate) fn with(self, way: &str, writes: &[Write]) -> Self {
        let mut digest = Feed(Sha256::new());
        digest.bytes(&self.0);
        digest.bytes(way.as_bytes());
        digest.number(writes.len());
        for write in writes {
            digest.shape(&write.shape);
            digest.number(write.row().len());
            write.row().iter().for_each(|value| digest.value(value));
        }
        let whole: [u8; 32] = digest.0.finalize().into();
        let mut kept = [0; 16];
        kept.iter_mut().zip(whole).for_each(|(to, from)| *to = from);
        Self(kept)
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Hashes its input so that different inputs never give the same bytes: each part is preceded by
/// its length or the number of its kind.
struct Feed(Sha256);

impl Feed {
    fn shape(&mut self, shape: &Shape) {
        self.kind(match shape.op {
            Op::Insert => 0,
            Op::Update => 1,
            Op::Delete => 2,
            Op::Get => 3,
        });
        self.kind(u8::from(shape.is_spelled()));
        self.kind(u8::from(shape.table.schema.is_some()));
        self.bytes(shape.table.schema.as_deref().unwrap_or_default().as_bytes());
        self.bytes(shape.table.table.as_bytes());
        self.names(&shape.columns);
        match &shape.key {
            Key::Primary => self.kind(0),
            Key::Columns(columns) => {
                self.kind(1);
                self.names(columns);
            }
        }
        self.kind(match shape.on_conflict {
            OnConflict::Error => 0,
            OnConflict::Ignore => 1,
            OnConflict::Update => 2,
        });
        match &shape.returning {
            Returning::Nothing => self.kind(0),
            Returning::All => self.kind(1),
            Returning::Columns(columns) => {
                self.kind(2);
                self.names(columns);
            }
        }
    }

    fn names(&mut self, names: &[Name]) {
        self.number(names.len());
        names.iter().for_each(|name| self.bytes(name.as_bytes()));
    }

    fn value(&mut self, value: &Value) {
        let (kind, bytes): (u8, &[u8]) = match value {
            Value::Null => (0, &[]),
            Value::Bool(false) => (1, &[]),
            Value::Bool(true) => (2, &[]),
            Value::Int(int) => {
                self.kind(3);
                return self.bytes(&int.to_be_bytes());
            }
            Value::Number(digits) => (4, digits.as_bytes()),
            Value::Text(text) => (5, text.as_bytes()),
            Value::Bytes(bytes) => (6, bytes),
            Value::Json(json) => (7, json.as_bytes()),
        };
        self.kind(kind);
        self.bytes(bytes);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.0.update(bytes);
    }

    fn number(&mut self, number: usize) {
        self.0.update((number as u64).to_be_bytes());
    }

    fn kind(&mut self, kind: u8) {
        self.0.update([kind]);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windrow_core::TableName;
    use windrow_core::shape::ShapeParts;

    use super::*;

    fn insert(table: &str, values: impl Into<Box<[Value]>>) -> Write {
        let shape = Shape::new(ShapeParts {
            op: Op::Insert,
            table: TableName::bare(table),
            columns: ["a", "b"].map(Name::from).into(),
            key: Key::Primary,
            on_conflict: OnConflict::Error,
            returning: Returning::Nothing,
        });
        Write::new(Arc::new(shape), values)
    }

    #[test]
    fn what_differs_has_another_fingerprint() {
        let of = |way: &str, writes: &[Write]| Fingerprint::default().with(way, writes);
        let text = |a: &str, b: &str| insert("t", [Value::text(a), Value::text(b)]);
        let first = of("commit", &[text("x", "yz")]);
        assert_eq!(first, of("commit", &[text("x", "yz")]));
        for other in [
            of("spool", &[text("x", "yz")]),
            of("commit", &[text("xy", "z")]),
            of("commit", &[text("x", "yz"), text("x", "yz")]),
            of(
                "commit",
                &[insert("u", [Value::text("x"), Value::text("yz")])],
            ),
            of(
                "commit",
                &[insert("t", [Value::text("x"), Value::Json("yz".into())])],
            ),
            first.with("commit", &[text("x", "yz")]),
        ] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn a_fingerprint_stays_what_it_was() {
        let row = insert("t", [Value::Int(7), Value::Null]);
        let text = Fingerprint::default().with("commit", &[row]).to_string();
        assert_eq!(text, "f177da4d57102ce0cae7f3e764eb7af3");
    }
}
