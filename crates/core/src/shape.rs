//! A statement without its values. Writes of one shape can become one statement.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};

use crate::name::{Name, TableName};

/// The operation of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// Adds a row; with [`OnConflict::Ignore`] or [`OnConflict::Update`], an upsert.
    Insert,
    /// Changes the row with a key.
    Update,
    /// Deletes the row with a key.
    Delete,
    /// Reads the row with a key.
    Get,
}

impl Op {
    /// Returns the word used in metrics and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Get => "get",
        }
    }
}

/// The reaction of an insert to a key that exists already.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnConflict {
    /// The write fails with a unique violation.
    #[default]
    Error,
    /// Nothing happens, zero rows are reported.
    Ignore,
    /// The existing row gets the new values of all columns that are named and not part of the key.
    Update,
}

/// The columns by which a write finds its row, or an upsert its conflict.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Key {
    /// The table's primary key, with its columns in their order in that key.
    #[default]
    Primary,
    /// Columns named by the client. For an upsert they are exactly those of a unique key; for an
    /// update, delete or read those of a unique key and perhaps more. An insert without any says
    /// that its rows have no key: a table that is created for it gets no primary key.
    Columns(Box<[Name]>),
}

/// The columns that a write returns.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Returning {
    /// None: only the row count.
    #[default]
    Nothing,
    /// All columns of the table, in its order.
    All,
    /// These columns.
    Columns(Box<[Name]>),
}

/// The parts of a [`Shape`] before it is sealed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShapeParts {
    /// The operation.
    pub op: Op,
    /// The table.
    pub table: TableName,
    /// The columns that get values: those of the new row (insert), or those that change (update).
    /// Empty for delete and get.
    pub columns: Box<[Name]>,
    /// The key by which the write finds its row (update, delete, get) or its conflict (insert with
    /// ignore or update).
    pub key: Key,
    /// The reaction of an insert to a key that exists already.
    pub on_conflict: OnConflict,
    /// The returned columns. [`Op::Get`] needs [`Returning::All`] or named columns.
    pub returning: Returning,
}

/// A statement without its values. Shared by `Arc` and compared by a hash that is computed once.
///
/// A row of this shape has the values of [`ShapeParts::columns`], followed, for update, delete and
/// get, by the values of the key's columns in the key's order.
pub struct Shape {
    parts: ShapeParts,
    spelled: bool,
    hash: u64,
}

impl Shape {
    /// Seals the parts.
    pub fn new(parts: ShapeParts) -> Self {
        Self::seal(parts, false)
    }

    /// Seals the parts of a shape whose key values are texts as in a URL's path. A typed column
    /// reads such a text as it reads any other. A column for values of any type reads its spelling:
    /// a number, `true` and `false` as in JSON, a text in quotation marks, or else the text itself.
    pub fn spelled(parts: ShapeParts) -> Self {
        Self::seal(parts, true)
    }

    fn seal(parts: ShapeParts, spelled: bool) -> Self {
        let hash = foldhash::fast::FixedState::default().hash_one((&parts, spelled));
        Self {
            parts,
            spelled,
            hash,
        }
    }

    /// True for [`Shape::spelled`].
    pub fn is_spelled(&self) -> bool {
        self.spelled
    }

    /// Returns a hash of the parts, the same for equal shapes within one process.
    pub fn id(&self) -> u64 {
        self.hash
    }

    /// Returns the plain insert that does the same as this insert if its table has no primary key:
    /// this one ignores conflicts by the primary key. `None` for other shapes.
    pub fn without_primary_key(&self) -> Option<Self> {
        let ignores = self.op == Op::Insert && self.on_conflict == OnConflict::Ignore;
        (ignores && self.key == Key::Primary).then(|| {
            Self::new(ShapeParts {
                on_conflict: OnConflict::Error,
                ..self.parts.clone()
            })
        })
    }

    /// True if rows have key values after the column values.
    pub fn has_key_values(&self) -> bool {
        self.parts.op != Op::Insert
    }
}

impl std::ops::Deref for Shape {
    type Target = ShapeParts;

    fn deref(&self) -> &ShapeParts {
        &self.parts
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Self) -> bool {
        let same = || self.spelled == other.spelled && self.parts == other.parts;
        std::ptr::eq(self, other) || (self.hash == other.hash && same())
    }
}

impl Eq for Shape {}

impl Hash for Shape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.fmt(f)
    }
}
