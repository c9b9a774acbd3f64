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
    /// Begins with a row group, of which so many rows are decoded at once.
    ///
    /// # Errors
    /// The file is damaged.
    pub(super) fn open(
        group: &dyn RowGroupReader,
        place: &Place<'_>,
        column_type: ColumnType,
        batch_rows: usize,
    ) -> Result<Self, String> {
        let values = if is_nested(place.column) {
            Values::Nested(NestedColumn::open(group, place.column, batch_rows)?)
        } else {
            let leaf = (0..place.schema.num_columns())
                .find(|leaf| place.schema.get_column_root_idx(*leaf) == place.at);
            let leaf = leaf.ok_or("a column is missing")?;
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
    /// The file is damaged, or has fewer.
    pub(super) fn read(&mut self, rows: usize) -> Result<(), String> {
        match &mut self.values {
            Values::Flat(column) => column.read(rows),
            Values::Nested(column) => column.read(rows),
        }
    }

    /// True for texts of which Parquet declares no more than that.
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
            (Values::Nested(column), column_type) => column.write(row, column_type, out),
            (Values::Flat(_), _) => Ok(ValueKind::Null),
        }
    }
}
