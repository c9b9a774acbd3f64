//! Decodes units.

use std::collections::HashMap;
use std::sync::Arc;

use windrow_core::Row;
use windrow_core::shape::ShapeParts;
use windrow_core::{Key, Name, OnConflict, Op, Returning, Shape, TableName, Value, Write};

use super::tag::{self, VERSION};

/// The reason why bytes are not a unit. The log has checked that they are what was written, so a
/// newer Windrow wrote them, or Windrow has a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The version is newer than this program.
    #[error(
        "the entry holds writes of version {found}, and this program knows versions up to {known}; \
         run the newer Windrow that wrote it"
    )]
    Newer {
        /// The version of the format.
        found: u8,
        /// The newest version that this program reads.
        known: u8,
    },
    /// The bytes are valid in no version.
    #[error("the entry holds no writes of rows: byte {at} is not what stands there in them")]
    Malformed {
        /// The position of the error, from the entry's first byte.
        at: usize,
    },
}

/// The most bytes of shapes that a decoder remembers. Beyond that, it forgets all of them.
const REMEMBERED: usize = 1 << 20;

/// Decodes entries. While it exists, it returns equal shapes as the same [`Arc`], so that a sink
/// compiles each only once.
#[derive(Debug, Default)]
pub struct Decoder {
    /// Known shapes, by their bytes.
    pub(super) shapes: HashMap<Box<[u8]>, Arc<Shape>>,
    remembered: usize,
}

impl Decoder {
    /// Returns a decoder that knows no shapes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes the writes of a unit. The bytes must contain nothing else.
    ///
    /// # Errors
    /// See [`Unreadable`].
    pub fn unit(&mut self, bytes: &[u8]) -> Result<Vec<Write>, Unreadable> {
        match bytes.first() {
            Some(found) if *found > VERSION => {
                return Err(Unreadable::Newer {
                    found: *found,
                    known: VERSION,
                });
            }
            Some(&VERSION) => {}
            _ => return Err(Unreadable::Malformed { at: 0 }),
        }
        let mut reader = Reader(bytes.get(1..).unwrap_or_default());
        let writes = self.writes(&mut reader).filter(|_| reader.0.is_empty());
        writes.ok_or(Unreadable::Malformed {
            at: bytes.len() - reader.0.len(),
        })
    }

    fn writes(&mut self, reader: &mut Reader<'_>) -> Option<Vec<Write>> {
        let count = reader.count()?;
        let mut stored = Vec::new();
        let write = |_| {
            let shape = match reader.number()?.checked_sub(1) {
                Some(place) => Arc::clone(stored.get(usize::try_from(place).ok()?)?),
                None => {
                    let shape = self.shape(reader)?;
                    stored.push(Arc::clone(&shape));
                    shape
                }
            };
            Some(Write::new(shape, reader.row()?))
        };
        (0..count).map(write).collect()
    }

    /// Reads a shape with its length.
    fn shape(&mut self, reader: &mut Reader<'_>) -> Option<Arc<Shape>> {
        let before = reader.0;
        let bytes = reader.bytes()?;
        if let Some(known) = self.shapes.get(bytes) {
            return Some(Arc::clone(known));
        }
        let mut inner = Reader(bytes);
        let shape = inner.shape().filter(|_| inner.0.is_empty());
        let Some(shape) = shape else {
            // The position that the error reports.
            let read = before.len() - reader.0.len() - inner.0.len();
            reader.0 = before.get(read..).unwrap_or_default();
            return None;
        };
        let shape = Arc::new(shape);
        if self.remembered + bytes.len() > REMEMBERED {
            self.shapes.clear();
            self.remembered = 0;
        }
        self.remembered += bytes.len();
        self.shapes.insert(bytes.into(), Arc::clone(&shape));
        Some(shape)
    }
}

/// Decodes the writes of a single unit.
///
/// # Errors
/// See [`Unreadable`].
pub fn decode_unit(bytes: &[u8]) -> Result<Vec<Write>, Unreadable> {
    Decoder::new().unit(bytes)
}

/// The unread bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn row(&mut self) -> Option<Row> {
        let count = self.count()?;
        (0..count).map(|_| self.value()).collect()
    }

    fn shape(&mut self) -> Option<Shape> {
        let op = match self.byte()? {
            tag::OP_INSERT => Op::Insert,
            tag::OP_UPDATE => Op::Update,
            tag::OP_DELETE => Op::Delete,
            tag::OP_GET => Op::Get,
            _ => return None,
        };
        let spelled = self.bool()?;
        let parts = ShapeParts {
            op,
            table: self.table()?,
            columns: self.names()?,
            key: self.key()?,
            on_conflict: match self.byte()? {
                tag::CONFLICT_ERROR => OnConflict::Error,
                tag::CONFLICT_IGNORE => OnConflict::Ignore,
                tag::CONFLICT_UPDATE => OnConflict::Update,
                _ => return None,
            },
            returning: match self.byte()? {
                tag::RETURNING_NOTHING => Returning::Nothing,
                tag::RETURNING_ALL => Returning::All,
                tag::RETURNING_COLUMNS => Returning::Columns(self.names()?),
                _ => return None,
            },
        };
        Some(if spelled {
            Shape::spelled(parts)
        } else {
            Shape::new(parts)
        })
    }

    fn table(&mut self) -> Option<TableName> {
        let has_schema = self.bool()?;
        Some(TableName {
            schema: if has_schema {
                Some(self.text()?.into())
            } else {
                None
            },
            table: self.text()?.into(),
        })
    }

    fn key(&mut self) -> Option<Key> {
        match self.byte()? {
            tag::KEY_PRIMARY => Some(Key::Primary),
            tag::KEY_COLUMNS => Some(Key::Columns(self.names()?)),
            _ => None,
        }
    }

    fn names(&mut self) -> Option<Box<[Name]>> {
        let count = self.count()?;
        (0..count).map(|_| self.text().map(Name::from)).collect()
    }

    fn value(&mut self) -> Option<Value> {
        Some(match self.byte()? {
            tag::NULL => Value::Null,
            tag::FALSE => Value::Bool(false),
            tag::TRUE => Value::Bool(true),
            tag::INT => Value::Int(unzigzag(self.number()?)),
            tag::NUMBER => Value::Number(self.text()?.into()),
            tag::TEXT => Value::Text(self.text()?.into()),
            tag::BYTES => Value::Bytes(self.bytes()?.into()),
            tag::JSON => Value::Json(self.text()?.into()),
            _ => return None,
        })
    }

    fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.count()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    /// Reads the number of items that take at least one byte each, so that no more memory is
    /// allocated than the bytes can fill.
    fn count(&mut self) -> Option<usize> {
        let count = usize::try_from(self.number()?).ok()?;
        (count <= self.0.len()).then_some(count)
    }

    fn bool(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            // The tenth byte can only contribute one bit.
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}
