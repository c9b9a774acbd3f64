//! How far a load has come, kept in the database that it fills.

use async_trait::async_trait;

use crate::fault::Fault;
use crate::name::{Name, TableName};
use crate::shape::{Key, OnConflict, Op, Returning, Shape, ShapeParts};
use crate::value::Value;

/// Rows of one file, counted from 0: those from `first` on, up to and without `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first of them.
    pub first: u64,
    /// The first behind them.
    pub end: u64,
}

/// Says that some rows of a load are done. Written in the transaction that writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// Which load; at most [`Mark::NAME_BYTES`] bytes of ASCII.
    pub load: Box<str>,
    /// The rows.
    pub span: Span,
}

impl Mark {
    /// The table that holds marks: `load`, `first_row` (its key together), `end_row`. It lies where the connection's
    /// own tables do.
    pub const TABLE: &'static str = "windrow_loads";
    /// Its column for [`Mark::load`].
    pub const LOAD: &'static str = "load";
    /// Its column for [`Span::first`].
    pub const FIRST: &'static str = "first_row";
    /// Its column for [`Span::end`].
    pub const END: &'static str = "end_row";
    /// The most bytes of a load's name: what the table's key can hold everywhere.
    pub const NAME_BYTES: usize = 128;

    /// The shape of a write that makes a mark: for marks that are written together with a row, as one unit.
    pub fn shape() -> Shape {
        Shape::new(ShapeParts {
            op: Op::Insert,
            table: TableName {
                schema: None,
                table: Name::from(Self::TABLE),
            },
            columns: [Self::LOAD, Self::FIRST, Self::END].map(Name::from).into(),
            key: Key::Primary,
            on_conflict: OnConflict::Error,
            returning: Returning::Nothing,
        })
    }

    /// The row of a write of [`Mark::shape`].
    pub fn row(&self) -> [Value; 3] {
        let number = |n: u64| Value::Int(i64::try_from(n).unwrap_or(i64::MAX));
        [
            Value::text(&*self.load),
            number(self.span.first),
            number(self.span.end),
        ]
    }
}

/// The marks that a database keeps.
#[async_trait]
pub trait Marks: Send + Sync + 'static {
    /// Makes the table if it is not there. Safe to run at the same time elsewhere. Cancel safe.
    ///
    /// # Errors
    /// What the database says.
    async fn prepare(&self) -> Result<(), Fault>;

    /// What is done of a load, in the order of [`Span::first`]. Cancel safe.
    ///
    /// # Errors
    /// What the database says.
    async fn read(&self, load: &str) -> Result<Vec<Span>, Fault>;

    /// Puts one mark in the place of all marks of its load that lie within it, in one transaction. Cancel safe: it is done or it is not.
    ///
    /// # Errors
    /// What the database says.
    async fn merge(&self, mark: &Mark) -> Result<(), Fault>;
}
