//! A column that is read, row group by row group.

use parquet::file::reader::RowGroupReader;
use parquet::schema::types::{SchemaDescriptor, TypePtr};

use super::flat::FlatColumn;
use super::nested::NestedColumn;
use super::schema::{ColumnType, Scalar, is_nested};
use super::value::{Stored, ValueKind};

/// The values of one column in the rows that were read last.
pub(super) struct Column {
    column_type: ColumnType,
    values: Values,
}

enum Values {
    Flat(Box<FlatColumn>),
    Nested(NestedColumn),
}

/// The place of a column in the schema of a file.
pub(super) struct Place<'a> {
    pub(super) schema: &'a SchemaDescriptor,
    /// The column and its number, from 0.
    pub(super) column: &'a TypePtr,
    pub(super) at: usize,
}

impl Column {
    /// Opens a row group.
    ///
    /// # Errors
    /// The file is damaged.
    pub(super) fn open(
        group: &dyn RowGroupReader,
        place: &Place<'_>,
        column_type: ColumnType,
    ) -> Result<Self, String> {
        let is_here = |leaf: &usize| place.schema.get_column_root_idx(*leaf) == place.at;
        let mut leaves = (0..place.schema.num_columns()).filter(is_here);
        let values = if is_nested(place.column) {
            let values = |leaf| group.metadata().column(leaf).num_values();
            let most = leaves.map(values).max().unwrap_or_default();
            let most = u64::try_from(most).unwrap_or_default();
            Values::Nested(NestedColumn::open(group, place.column, most)?)
        } else {
            let leaf = leaves.next().ok_or("a column is missing")?;
            let reader = group.get_column_reader(leaf);
            let reader = reader.map_err(|error| error.to_string())?;
            Values::Flat(Box::new(FlatColumn::new(reader)))
        };
        Ok(Self {
            column_type,
            values,
        })
    }

    /// Reads the values of the next rows.
    ///
    /// # Errors
    /// The file is damaged, or has fewer rows.
    pub(super) fn read(&mut self, rows: usize) -> Result<(), String> {
        match &mut self.values {
            Values::Flat(column) => column.read(rows),
            Values::Nested(column) => {
                column.next_batch();
                Ok(())
            }
        }
    }

    /// Makes the value of a row available. Rows must be taken in order; one may be taken again.
    ///
    /// # Errors
    /// The file is damaged.
    pub(super) fn seek(&mut self, row: usize) -> Result<(), String> {
        match &mut self.values {
            Values::Flat(_) => Ok(()),
            Values::Nested(column) => column.seek(row),
        }
    }

    /// Returns true if Parquet declares the column as text and nothing more.
    pub(super) fn is_words(&self) -> bool {
        self.column_type == ColumnType::Scalar(Scalar::Text)
    }

    /// Returns the value of a column of binary data.
    pub(super) fn bytes(&self, row: usize) -> &[u8] {
        match &self.values {
            Values::Flat(column) => column.value(row).bytes(),
            Values::Nested(_) => &[],
        }
    }

    /// Writes a value's text. Rows are counted from the first one that was read last.
    ///
    /// # Errors
    /// See [`Stored::write`].
    pub(super) fn value(&self, row: usize, out: &mut String) -> Result<ValueKind, String> {
        match (&self.values, &self.column_type) {
            (Values::Flat(column), ColumnType::Scalar(scalar)) => {
                Stored::write(column.value(row), *scalar, out)
            }
            (Values::Nested(column), column_type) => column.write(column_type, out),
            (Values::Flat(_), _) => Ok(ValueKind::Null),
        }
    }
}
