//! A statement for rows.

use std::sync::Arc;

use windrow_core::name::check_column;
use windrow_core::shape::ShapeParts;
use windrow_core::{Fault, Key, Name, OnConflict, Op, Returning, Shape, TableName};

/// A statement without its values: made once, used for every row.
#[derive(Clone, Debug)]
pub struct Statement {
    parts: ShapeParts,
}

impl Statement {
    /// Adds a row with these columns.
    ///
    /// # Errors
    /// [`windrow_core::FaultClass::Invalid`] if a name cannot be one.
    pub fn insert<C: AsRef<str>>(
        table: &str,
        columns: impl IntoIterator<Item = C>,
    ) -> Result<Self, Fault> {
        Self::new(Op::Insert, table, columns)
    }

    /// Changes these columns of the row whose key follows the values.
    ///
    /// # Errors
    /// As [`Statement::insert`].
    pub fn update<C: AsRef<str>>(
        table: &str,
        columns: impl IntoIterator<Item = C>,
    ) -> Result<Self, Fault> {
        Self::new(Op::Update, table, columns)
    }

    /// Deletes the row with a key. The row of values is the key.
    ///
    /// # Errors
    /// As [`Statement::insert`].
    pub fn delete(table: &str) -> Result<Self, Fault> {
        Self::new(Op::Delete, table, [""; 0])
    }

    /// Reads the row with a key. The row of values is the key.
    ///
    /// # Errors
    /// As [`Statement::insert`].
    pub fn get(table: &str) -> Result<Self, Fault> {
        let mut statement = Self::new(Op::Get, table, [""; 0])?;
        statement.parts.returning = Returning::All;
        Ok(statement)
    }

    /// Sets the action of an insert whose key exists already. The default is to fail.
    #[must_use]
    pub fn on_conflict(mut self, action: OnConflict) -> Self {
        self.parts.on_conflict = action;
        self
    }

    /// Names the key's columns, if the key is not the table's primary key. For an update, delete or
    /// read, they must include all columns of a unique key; otherwise the write fails with 42P10.
    ///
    /// # Errors
    /// As [`Statement::insert`].
    pub fn key<C: AsRef<str>>(
        mut self,
        columns: impl IntoIterator<Item = C>,
    ) -> Result<Self, Fault> {
        self.parts.key = Self::key_of(columns)?;
        Ok(self)
    }

    /// Returns a key by the names of its columns.
    ///
    /// # Errors
    /// As [`Statement::insert`].
    pub fn key_of<C: AsRef<str>>(columns: impl IntoIterator<Item = C>) -> Result<Key, Fault> {
        Ok(Key::Columns(names(columns)?))
    }

    /// Asks for values of the row as it was written: generated keys, defaults.
    ///
    /// # Errors
    /// As [`Statement::insert`].
    pub fn returning<C: AsRef<str>>(
        mut self,
        columns: impl IntoIterator<Item = C>,
    ) -> Result<Self, Fault> {
        self.parts.returning = Returning::Columns(names(columns)?);
        Ok(self)
    }

    /// Returns the shape for lanes and sinks.
    pub(crate) fn into_shape(self) -> Arc<Shape> {
        Arc::new(Shape::new(self.parts))
    }

    fn new<C: AsRef<str>>(
        op: Op,
        table: &str,
        columns: impl IntoIterator<Item = C>,
    ) -> Result<Self, Fault> {
        Ok(Self {
            parts: ShapeParts {
                op,
                table: TableName::parse(table)?,
                columns: names(columns)?,
                key: Key::Primary,
                on_conflict: OnConflict::Error,
                returning: Returning::Nothing,
            },
        })
    }
}

fn names<C: AsRef<str>>(names: impl IntoIterator<Item = C>) -> Result<Box<[Name]>, Fault> {
    let checked = |name: C| check_column(name.as_ref()).map(|()| Name::from(name.as_ref()));
    names.into_iter().map(checked).collect()
}
