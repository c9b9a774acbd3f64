//! Windrow's own tables in a user's database. A transaction can change them together with the rows
//! that Windrow writes for clients.

mod idempotency;

use std::time::Duration;

use async_trait::async_trait;

pub use self::idempotency::{Executed, IDEMPOTENCY, KeyPart};
use crate::fault::Fault;
use crate::name::{Name, TableName};
use crate::outcome::RowDone;
use crate::shape::{Key, OnConflict, Op, Returning, Shape, ShapeParts};
use crate::value::Value;
use crate::write::RowWrite;

/// The table of dead letters: rows of a move that their destination refused, and writes of the
/// spool that the database refused after they had been acknowledged.
///
/// Columns: `id` (primary key, generated), `rejected_at` (time in UTC, set by the database),
/// `source` (the table of a move, or the position in a spool), `destination` (a table), `key` and
/// `row` (JSON: an array of the key's values, an object of all columns), `code`, `message` and
/// `constraint` (of the fault; the last may be NULL), `entry` (the bytes of the spool's entry, with
/// which the write can be tried again; NULL for a move).
pub const REJECTED: &str = "windrow_rejected";

/// The table with the progress of each partition of a spool. Columns: `spool` and `partition` (the
/// primary key), `position` (of the first entry that is not applied), `last_entry` (the name of the
/// entry before it, or an empty text). `spool`, `partition` and `position` together have a unique
/// key, so that a row can be found by all three.
pub const PROGRESS: &str = "windrow_progress";

/// A partition of a spool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    /// The name of the spool; at most [`Partition::NAME_BYTES`] bytes of ASCII.
    pub spool: Box<str>,
    /// The number of the partition.
    pub number: u32,
}

/// The progress of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// The position of the first entry that is not applied.
    pub position: u64,
    /// The unique name of the entry before that position, at most [`Applied::NAME_BYTES`] bytes of
    /// ASCII; empty if unknown. A spool with another entry there is not the spool that was applied.
    pub last: Box<str>,
}

impl Applied {
    /// Bytes of the longest name of an entry.
    pub const NAME_BYTES: usize = 64;

    /// Returns progress up to a position, without the name of the last entry.
    pub fn at(position: u64) -> Self {
        Self {
            position,
            last: "".into(),
        }
    }
}

impl Partition {
    /// Bytes of the longest name of a spool: a length that a key can have in every database.
    pub const NAME_BYTES: usize = 64;

    /// Returns the write that reads the progress.
    pub fn read(&self) -> RowWrite {
        let shape = ShapeParts {
            returning: Returning::Columns([POSITION, LAST].map(Name::from).into()),
            ..parts(Op::Get, [SPOOL, PARTITION])
        };
        RowWrite::new(shape_of(shape), [self.spool(), self.number()])
    }

    /// Returns the progress from the outcome of [`Partition::read`]; `None` if nothing was applied.
    ///
    /// # Errors
    /// The row has no valid position.
    pub fn found(done: &RowDone) -> Result<Option<Applied>, Fault> {
        let row = done.returned.as_ref().and_then(|found| found.rows.first());
        let Some(row) = row else { return Ok(None) };
        let position = match row.first() {
            Some(Value::Int(position)) => u64::try_from(*position).ok(),
            Some(Value::Number(digits)) => digits.parse().ok(),
            _ => None,
        };
        let position = position.ok_or_else(|| {
            Fault::internal(format!("the table {PROGRESS} holds what is no position"))
        })?;
        let last = match row.get(1) {
            Some(Value::Text(name)) => (&**name).into(),
            _ => "".into(),
        };
        Ok(Some(Applied { position, last }))
    }

    /// Returns the writes that advance the progress: a delete of the row with the old position and
    /// an insert of one with the new position. If another process has advanced it meanwhile, the
    /// delete finds nothing, and the insert fails because of the primary key and rolls back its
    /// unit. So two processes that apply the same entries cannot both commit.
    pub fn advance(&self, from: Option<u64>, to: &Applied) -> Vec<RowWrite> {
        let leave = from.map(|from| {
            RowWrite::new(
                shape_of(parts(Op::Delete, [SPOOL, PARTITION, POSITION])),
                [self.spool(), self.number(), number(from)],
            )
        });
        let come = RowWrite::new(
            shape_of(ShapeParts {
                columns: [SPOOL, PARTITION, POSITION, LAST].map(Name::from).into(),
                key: Key::Primary,
                ..parts(Op::Insert, [SPOOL, PARTITION])
            }),
            [
                self.spool(),
                self.number(),
                number(to.position),
                Value::text(&*to.last),
            ],
        );
        leave.into_iter().chain([come]).collect()
    }

    fn spool(&self) -> Value {
        Value::text(&*self.spool)
    }

    fn number(&self) -> Value {
        Value::Int(i64::from(self.number))
    }
}

const SPOOL: &str = "spool";
const PARTITION: &str = "partition";
const POSITION: &str = "position";
const LAST: &str = "last_entry";

/// A write that was refused after it had been acknowledged, or a row that a move could not deliver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The origin: a table, or a position in a spool.
    pub source: Box<str>,
    /// The destination table.
    pub destination: Box<str>,
    /// The values of the row's key, as a JSON array.
    pub key: Box<str>,
    /// The columns of the row, as a JSON object.
    pub row: Box<str>,
    /// The code of the fault.
    pub code: Box<str>,
    /// The message of the fault.
    pub message: Box<str>,
    /// The constraint that refused the row.
    pub constraint: Option<Box<str>>,
    /// The bytes of the spool's entry.
    pub entry: Option<Box<[u8]>>,
}

impl DeadLetter {
    /// The columns that [`DeadLetter::write`] sets, in its order.
    pub const COLUMNS: [&str; 8] = [
        "source",
        "destination",
        "key",
        "row",
        "code",
        "message",
        "constraint",
        "entry",
    ];

    /// Returns the write that inserts the dead letter into [`REJECTED`]. Zero bytes, which some
    /// databases do not allow in texts, become U+FFFD.
    pub fn write(&self) -> RowWrite {
        let text = |text: &str| Value::text(text.replace('\0', "\u{fffd}"));
        let json = |json: &str| Value::Json(json.into());
        let row = [
            text(&self.source),
            text(&self.destination),
            json(&self.key),
            json(&self.row),
            text(&self.code),
            text(&self.message),
            self.constraint.as_deref().map_or(Value::Null, text),
            self.entry
                .as_deref()
                .map_or(Value::Null, |bytes| Value::Bytes(bytes.into())),
        ];
        let shape = ShapeParts {
            table: own(REJECTED),
            columns: Self::COLUMNS.map(Name::from).into(),
            key: Key::Primary,
            ..parts(Op::Insert, [])
        };
        RowWrite::new(shape_of(shape), row)
    }
}

/// A dead letter read from the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLetter {
    /// The number of the dead letter.
    pub id: u64,
    /// The time of the insert, in the database's spelling.
    pub rejected_at: Box<str>,
    /// The content of the dead letter.
    pub letter: DeadLetter,
}

/// Operations of a database on Windrow's own tables.
#[async_trait]
pub trait Bookkeeping: Send + Sync + 'static {
    /// Creates the tables of a spool if they are missing: [`PROGRESS`], [`REJECTED`] and
    /// [`IDEMPOTENCY`]. Several processes may call it at the same time. Cancel safe.
    ///
    /// # Errors
    /// The error of the database.
    async fn prepare(&self) -> Result<(), Fault>;

    /// Creates only [`IDEMPOTENCY`] if it is missing, as [`Bookkeeping::prepare`] does.
    ///
    /// # Errors
    /// The error of the database.
    async fn prepare_keys(&self) -> Result<(), Fault>;

    /// Deletes at most `most` parts from [`IDEMPOTENCY`] that are older than `age`. Returns the
    /// number of deleted parts; 0 if the table does not exist. Cancel safe.
    ///
    /// # Errors
    /// The error of the database.
    async fn forget_keys(&self, age: Duration, most: usize) -> Result<u64, Fault>;

    /// Returns at most `most` dead letters with numbers above `after`, in order; none if the table
    /// does not exist. Cancel safe.
    ///
    /// # Errors
    /// The error of the database.
    async fn letters(&self, after: u64, most: usize) -> Result<Vec<KeptLetter>, Fault>;
}

fn own(table: &str) -> TableName {
    TableName {
        schema: None,
        table: Name::from(table),
    }
}

fn parts<const N: usize>(op: Op, key: [&str; N]) -> ShapeParts {
    ShapeParts {
        op,
        table: own(PROGRESS),
        columns: Box::default(),
        key: Key::Columns(key.map(Name::from).into()),
        on_conflict: OnConflict::Error,
        returning: Returning::Nothing,
    }
}

fn shape_of(parts: ShapeParts) -> std::sync::Arc<Shape> {
    std::sync::Arc::new(Shape::new(parts))
}

fn number(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}
