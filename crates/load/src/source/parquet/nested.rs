//! Columns whose values are lists, maps or records. Their texts are JSON.

use std::sync::Arc;

use parquet::file::reader::RowGroupReader;
use parquet::record::Field;
use parquet::record::reader::{ReaderIter, TreeBuilder};
use parquet::schema::types::{SchemaDescriptor, Type, TypePtr};

use super::schema::ColumnType;
use super::text;
use super::value::{Stored, ValueKind};

/// The most values that are decoded at once, for each column within a nested one.
const MAX_VALUES: u64 = 1 << 16;
/// The most rows that are decoded at once.
const MAX_ROWS: u64 = 1024;

/// A column that is read row by row, because its values may be much larger than in the file.
pub(super) struct NestedColumn {
    reader: ReaderIter,
    /// The row whose value was read, counted as those of the batch are.
    row: Option<usize>,
    value: Field,
}

impl NestedColumn {
    /// Opens a row group. `values` is the largest number of values of a column within this one.
    ///
    /// # Errors
    /// The file is damaged.
    pub(super) fn open(
        group: &dyn RowGroupReader,
        column: &TypePtr,
        values: u64,
    ) -> Result<Self, String> {
        let root = Type::group_type_builder("schema")
            .with_fields(vec![Arc::clone(column)])
            .build();
        let root = root.map_err(|error| error.to_string())?;
        let schema = Arc::new(SchemaDescriptor::new(Arc::new(root)));
        let rows = u64::try_from(group.metadata().num_rows()).unwrap_or_default();
        let batch_rows = MAX_VALUES.saturating_mul(rows) / values.max(rows).max(1);
        let reader = TreeBuilder::new()
            .with_batch_size(usize::try_from(batch_rows.clamp(1, MAX_ROWS)).unwrap_or(1))
            .as_iter(schema, group);
        Ok(Self {
            reader: reader.map_err(|error| error.to_string())?,
            row: None,
            value: Field::Null,
        })
    }

    /// Counts rows from the next one on.
    pub(super) fn next_batch(&mut self) {
        self.row = None;
    }

    /// Reads the value of a row, unless it was read last: that of the row after the last one.
    ///
    /// # Errors
    /// The file is damaged, or has fewer rows.
    pub(super) fn seek(&mut self, row: usize) -> Result<(), String> {
        if self.row == Some(row) {
            return Ok(());
        }
        let next = self
            .reader
            .next()
            .ok_or("a column ends before the others")?;
        let mut columns = next.map_err(|error| error.to_string())?.into_columns();
        self.value = columns.pop().map_or(Field::Null, |(_, value)| value);
        self.row = Some(row);
        Ok(())
    }

    /// Writes the value that was read last.
    ///
    /// # Errors
    /// See [`Stored::write`].
    pub(super) fn write(
        &self,
        column_type: &ColumnType,
        out: &mut String,
    ) -> Result<ValueKind, String> {
        match &self.value {
            Field::Null => Ok(ValueKind::Null),
            value => {
                json(value, column_type, out)?;
                Ok(ValueKind::Json)
            }
        }
    }
}

fn json(value: &Field, column_type: &ColumnType, out: &mut String) -> Result<(), String> {
    match (value, column_type) {
        (Field::Null, _) => out.push_str("null"),
        (Field::ListInternal(list), ColumnType::List(element)) => {
            array(list.elements(), element, out)?;
        }
        (Field::ListInternal(list), ColumnType::OldList(element)) => match list.elements() {
            [Field::ListInternal(list)] => array(list.elements(), element, out)?,
            elements => array(elements, element, out)?,
        },
        (Field::MapInternal(map), ColumnType::Map(key, element)) => {
            out.push('{');
            for ((name, value), at) in map.entries().iter().zip(0..) {
                comma(at, out);
                member(name, key, out)?;
                json(value, element, out)?;
            }
            out.push('}');
        }
        (Field::Group(record), ColumnType::Record(types)) => {
            out.push('{');
            let fields = record.get_column_iter().zip(types).zip(0..);
            for (((_, value), (name, field_type)), at) in fields {
                comma(at, out);
                out.push_str(name);
                out.push(':');
                json(value, field_type, out)?;
            }
            out.push('}');
        }
        (value, ColumnType::Scalar(scalar)) => {
            let from = out.len();
            let stored = stored(value);
            match stored.write(*scalar, out)? {
                ValueKind::Null => out.push_str("null"),
                ValueKind::Bool(truth) => out.push_str(if truth { "true" } else { "false" }),
                ValueKind::Bytes => text::hex(stored.bytes(), out),
                ValueKind::Number | ValueKind::Json => {}
                ValueKind::Text => {
                    let value = out.split_off(from);
                    text::quoted(&value, out);
                }
            }
        }
        _ => return Err("a nested value has another form than the schema says".to_owned()),
    }
    Ok(())
}

fn array(values: &[Field], element: &ColumnType, out: &mut String) -> Result<(), String> {
    out.push('[');
    for (value, at) in values.iter().zip(0..) {
        comma(at, out);
        json(value, element, out)?;
    }
    out.push(']');
    Ok(())
}

/// Writes the name of a member. A key that is not text is written as text.
fn member(key: &Field, key_type: &ColumnType, out: &mut String) -> Result<(), String> {
    let from = out.len();
    json(key, key_type, out)?;
    if out.get(from..).is_some_and(|key| !key.starts_with('"')) {
        let key = out.split_off(from);
        text::quoted(&key, out);
    }
    out.push(':');
    Ok(())
}

fn stored(value: &Field) -> Stored<'_> {
    match value {
        Field::Bool(value) => Stored::Bool(*value),
        Field::Byte(value) => Stored::Int(i64::from(*value)),
        Field::Short(value) => Stored::Int(i64::from(*value)),
        Field::Int(value) | Field::Date(value) | Field::TimeMillis(value) => {
            Stored::Int(i64::from(*value))
        }
        Field::Long(value)
        | Field::TimeMicros(value)
        | Field::TimestampMillis(value)
        | Field::TimestampMicros(value) => Stored::Int(*value),
        Field::UByte(value) => Stored::Int(i64::from(*value)),
        Field::UShort(value) => Stored::Int(i64::from(*value)),
        Field::UInt(value) => Stored::Int(i64::from(*value)),
        Field::ULong(value) => Stored::Int(value.cast_signed()),
        Field::Float16(value) => Stored::Float(f32::from(*value)),
        Field::Float(value) => Stored::Float(*value),
        Field::Double(value) => Stored::Double(*value),
        Field::Decimal(value) => Stored::Bytes(value.data()),
        Field::Str(value) => Stored::Bytes(value.as_bytes()),
        Field::Bytes(value) => Stored::Bytes(value.data()),
        Field::Null | Field::Group(_) | Field::ListInternal(_) | Field::MapInternal(_) => {
            Stored::Null
        }
    }
}

fn comma(at: usize, out: &mut String) {
    if at > 0 {
        out.push(',');
    }
}
