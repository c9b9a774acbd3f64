//! A statement with its values lifted out. Writes of one shape can become one statement.

use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};

use crate::name::{Name, TableName};

/// The operation of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Op {
    /// A row is added; with [`OnConflict::Ignore`] or [`OnConflict::Update`], an upsert.
    Insert,
    /// The row with a key gets new values.
    Update,
    /// The row with a key goes.
    Delete,
    /// The row with a key is read.
    Get,
}

impl Op {
    /// The word used in metrics and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
            Self::Get => "get",
        }
    }
}

/// The reaction of an insert to a key that exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnConflict {
    /// The write fails with a unique violation.
    #[default]
    Error,
    /// Nothing happens, zero rows are reported.
    Ignore,
    /// The row that is there takes the new values of all columns that are named and not part of the
    /// key.
    Update,
}

/// The columns that a write finds its row (or, for an upsert, its conflict) by.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Key {
    /// The table's own primary key, whatever its columns are, in their order in that key.
    #[default]
    Primary,
    /// Columns named by the client: of an upsert exactly those of a unique key; of an update,
    /// delete or read those of a unique key, and maybe more. None of an insert say that its rows
    /// have no key: a table that is created for it gets no primary key.
    Columns(Box<[Name]>),
}

/// The columns that a write gives back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Returning {
    /// None; only the row count is answered.
    #[default]
    Nothing,
    /// Every column of the table, in its order.
    All,
    /// The named ones.
    Columns(Box<[Name]>),
}

/// The parts of a [`Shape`] before it is sealed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ShapeParts {
    /// The operation.
    pub op: Op,
    /// Where.
    pub table: TableName,
    /// The columns that get values: of the new row (insert), or those that change (update). Empty
    /// for delete and get.
    pub columns: Box<[Name]>,
    /// The key: which row (update, delete, get), or what counts as a conflict (insert with ignore
    /// or update).
    pub key: Key,
    /// For inserts.
    pub on_conflict: OnConflict,
    /// The returned columns. [`Op::Get`] needs [`Returning::All`] or named columns.
    pub returning: Returning,
}

/// A statement with its values lifted out. Shared by `Arc` and compared by a hash made once.
///
/// The row of a write of this shape holds the values of [`ShapeParts::columns`], and behind them,
/// for update, delete and get, the values of the key's columns in the key's order.
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

    /// Seals the parts of a shape whose key values are texts as a path spells them. A typed column
    /// reads its text as it reads any other; where a column takes values of any type, the
    /// spelling says what is meant: a number, `true` and `false` as JSON writes them, a text in
    /// quotation marks, else the text as it stands.
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

    /// A hash of the parts, the same for equal shapes within one process.
    pub fn id(&self) -> u64 {
        self.hash
    }

    /// Returns the plain insert that does the same as an insert that ignores conflicts by the
    /// primary key, if its table has none. `None` for other shapes.
    pub fn without_primary_key(&self) -> Option<Self> {
        let ignores = self.op == Op::Insert && self.on_conflict == OnConflict::Ignore;
        (ignores && self.key == Key::Primary).then(|| {
            Self::new(ShapeParts {
                on_conflict: OnConflict::Error,
                ..self.parts.clone()
            })
        })
    }

    /// True where the row carries key values behind the column values.
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
