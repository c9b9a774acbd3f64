//! The tables that Windrow keeps for itself in a user's database, so that what it remembers and
//! what it has written there change in one transaction.

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
/// Its columns: `id` (its key, counted up by the database), `rejected_at` (when, in UTC; set by the
/// database), `source` (the table of a move, or the place in a spool), `destination` (a table, as
/// text), `key` and `row` (JSON: an array of the key's values, an object of all columns), `code`,
/// `message` and `constraint` (of the fault; the last may be NULL), `entry` (the bytes of the
/// spool's entry, with which the write can be tried again; NULL for a move).
pub const REJECTED: &str = "windrow_rejected";

/// The table of how far each partition of a spool has been applied. Its columns: `spool` (the
/// spool's name), `partition` (its key together), `position` (of the first entry that is not
/// applied), `last_entry` (the name of the entry before it, or an empty text). `spool`, `partition`
/// and `position` are unique together, so that a row can be found by all three.
pub const PROGRESS: &str = "windrow_progress";

/// One partition of one spool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    /// The spool's name; at most [`Partition::NAME_BYTES`] bytes of ASCII.
    pub spool: Box<str>,
    /// The partition's number.
    pub number: u32,
}

/// How far a partition has been applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Applied {
    /// Of the first entry that is not applied.
    pub position: u64,
    /// A name of the entry before it that no other entry has, at most [`Applied::NAME_BYTES`] bytes
    /// of ASCII: where the spool holds another one there, it is not the spool that was applied.
    /// Empty where nobody knows.
    pub last: Box<str>,
}

impl Applied {
    /// The most bytes of an entry's name.
    pub const NAME_BYTES: usize = 64;

    /// Up to a position, and it is not known by which entries.
    pub fn at(position: u64) -> Self {
        Self {
            position,
            last: "".into(),
        }
    }
}

impl Partition {
    /// The most bytes of a spool's name: what the table's key can hold everywhere.
    pub const NAME_BYTES: usize = 64;

    /// Reads how far it has been applied.
    pub fn read(&self) -> RowWrite {
        let shape = ShapeParts {
            returning: Returning::Columns([POSITION, LAST].map(Name::from).into()),
            ..parts(Op::Get, [SPOOL, PARTITION])
        };
        RowWrite::new(shape_of(shape), [self.spool(), self.number()])
    }

    /// What [`Partition::read`] has found; `None` where nothing was applied yet.
    ///
    /// # Errors
    /// What stands there is no position.
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

    /// The writes that move it on: the row with the old position goes, one with the new position
    /// comes. Where somebody else has moved it meanwhile, the first finds nothing and the second
    /// meets the row that is there: its key refuses it, and the whole unit with it. So two who
    /// apply the same entries at the same time cannot both commit.
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

/// Something that was refused after its client had been told that it would be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// Where it came from: a table, or a place in a spool.
    pub source: Box<str>,
    /// The table that it was meant for.
    pub destination: Box<str>,
    /// The values of its key, as an array in JSON.
    pub key: Box<str>,
    /// Its columns, as an object in JSON.
    pub row: Box<str>,
    /// The fault's code.
    pub code: Box<str>,
    /// The fault's message.
    pub message: Box<str>,
    /// The constraint that refused it.
    pub constraint: Option<Box<str>>,
    /// The bytes of the spool's entry.
    pub entry: Option<Box<[u8]>>,
}

impl DeadLetter {
    /// The columns that are written, in the order of [`DeadLetter::write`].
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

    /// The write that puts it into [`REJECTED`]. Every database can store it: zero bytes, which not
    /// all of them have in texts, become U+FFFD.
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

/// A dead letter as it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptLetter {
    /// Its number.
    pub id: u64,
    /// When it was written, as the database spells it.
    pub rejected_at: Box<str>,
    /// What it says.
    pub letter: DeadLetter,
}

/// What a database does for its own tables of Windrow's.
#[async_trait]
pub trait Bookkeeping: Send + Sync + 'static {
    /// Makes what a spool needs if it is not there: [`PROGRESS`], [`REJECTED`] and [`IDEMPOTENCY`].
    /// Safe to run at the same time elsewhere. Cancel safe.
    ///
    /// # Errors
    /// What the database says.
    async fn prepare(&self) -> Result<(), Fault>;

    /// Makes [`IDEMPOTENCY`] alone if it is not there, as [`Bookkeeping::prepare`] does.
    ///
    /// # Errors
    /// What the database says.
    async fn prepare_keys(&self) -> Result<(), Fault>;

    /// Takes parts out of [`IDEMPOTENCY`] that are older than `age`, `most` at most. Gives how many
    /// there were; none where there is no such table. Cancel safe.
    ///
    /// # Errors
    /// What the database says.
    async fn forget_keys(&self, age: Duration, most: usize) -> Result<u64, Fault>;

    /// Dead letters whose number is above `after`, in the order of their numbers, `most` at most;
    /// none where there is no such table. Cancel safe.
    ///
    /// # Errors
    /// What the database says.
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
