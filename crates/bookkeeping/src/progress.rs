//! The progress of a spool: the position up to which each partition is in the database.

use windrow_core::bookkeeping::PROGRESS;
use windrow_core::shape::ShapeParts;
use windrow_core::{Fault, Key, Name, Op, Returning, Value, Write, WriteDone};

use crate::write::{number, parts, shape_of};

/// The row of [`PROGRESS`] that belongs to a partition of a spool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ProgressRow {
    /// The name of the spool; at most [`ProgressRow::NAME_BYTES`] bytes of ASCII.
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

impl ProgressRow {
    /// The most bytes of a spool's name: the longest key that every database can have.
    pub const NAME_BYTES: usize = 64;

    /// Returns the write that reads the progress.
    pub fn read(&self) -> Write {
        let shape = ShapeParts {
            returning: Returning::Columns([POSITION, LAST].map(Name::from).into()),
            ..parts(Op::Get, PROGRESS, [SPOOL, PARTITION])
        };
        Write::new(shape_of(shape), [self.spool(), self.number()])
    }

    /// Returns the progress from the outcome of [`ProgressRow::read`]; `None` if nothing was
    /// applied.
    ///
    /// # Errors
    /// The row has no valid position.
    pub fn found(done: &WriteDone) -> Result<Option<Applied>, Fault> {
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
    pub fn advance(&self, from: Option<u64>, to: &Applied) -> Vec<Write> {
        let leave = from.map(|from| {
            Write::new(
                shape_of(parts(Op::Delete, PROGRESS, [SPOOL, PARTITION, POSITION])),
                [self.spool(), self.number(), number(from)],
            )
        });
        let come = Write::new(
            shape_of(ShapeParts {
                columns: [SPOOL, PARTITION, POSITION, LAST].map(Name::from).into(),
                key: Key::Primary,
                ..parts(Op::Insert, PROGRESS, [SPOOL, PARTITION])
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
