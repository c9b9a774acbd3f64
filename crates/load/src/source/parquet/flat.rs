//! Columns whose values are not nested.

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray,
    FixedLenByteArrayType, FloatType, Int32Type, Int64Type, Int96, Int96Type,
};

use super::value::Stored;

/// The values of a column in the rows that were read last.
pub(super) enum FlatColumn {
    Bool(Values<BoolType>),
    Int32(Values<Int32Type>),
    Int64(Values<Int64Type>),
    Int96(Values<Int96Type>),
    Float(Values<FloatType>),
    Double(Values<DoubleType>),
    Bytes(Values<ByteArrayType>),
    Fixed(Values<FixedLenByteArrayType>),
}

/// The values of one physical type.
pub(super) struct Values<T: DataType> {
    reader: ColumnReaderImpl<T>,
    /// The values that are not NULL.
    values: Vec<T::T>,
    /// 1 for each row whose value is not NULL, if the column may be NULL.
    levels: Vec<i16>,
    /// The place of each row's value, if some are NULL.
    places: Vec<usize>,
}

macro_rules! each {
    ($column:expr, $values:ident => $body:expr) => {
        match $column {
            FlatColumn::Bool($values) => $body,
            FlatColumn::Int32($values) => $body,
            FlatColumn::Int64($values) => $body,
            FlatColumn::Int96($values) => $body,
            FlatColumn::Float($values) => $body,
            FlatColumn::Double($values) => $body,
            FlatColumn::Bytes($values) => $body,
            FlatColumn::Fixed($values) => $body,
        }
    };
}

impl FlatColumn {
    pub(super) fn new(reader: ColumnReader) -> Self {
        match reader {
            ColumnReader::BoolColumnReader(reader) => Self::Bool(Values::new(reader)),
            ColumnReader::Int32ColumnReader(reader) => Self::Int32(Values::new(reader)),
            ColumnReader::Int64ColumnReader(reader) => Self::Int64(Values::new(reader)),
            ColumnReader::Int96ColumnReader(reader) => Self::Int96(Values::new(reader)),
            ColumnReader::FloatColumnReader(reader) => Self::Float(Values::new(reader)),
            ColumnReader::DoubleColumnReader(reader) => Self::Double(Values::new(reader)),
            ColumnReader::ByteArrayColumnReader(reader) => Self::Bytes(Values::new(reader)),
            ColumnReader::FixedLenByteArrayColumnReader(reader) => Self::Fixed(Values::new(reader)),
        }
    }

    /// Reads the values of the next rows.
    ///
    /// # Errors
    /// The file is damaged, or has fewer rows.
    pub(super) fn read(&mut self, rows: usize) -> Result<(), String> {
        each!(self, values => values.read(rows))
    }

    /// Returns the value of a row, counted from the first one that was read last.
    pub(super) fn value(&self, row: usize) -> Stored<'_> {
        each!(self, values => values.value(row).map_or(Stored::Null, Store::stored))
    }
}

impl<T: DataType> Values<T> {
    fn new(reader: ColumnReaderImpl<T>) -> Self {
        Self {
            reader,
            values: Vec::new(),
            levels: Vec::new(),
            places: Vec::new(),
        }
    }

    fn read(&mut self, rows: usize) -> Result<(), String> {
        self.values.clear();
        self.levels.clear();
        self.places.clear();
        let read = self
            .reader
            .read_records(rows, Some(&mut self.levels), None, &mut self.values);
        let (read, values, _) = read.map_err(|error| error.to_string())?;
        if read != rows || values != self.values.len() {
            return Err("a column ends before the others".to_owned());
        }
        if values < rows {
            let mut place = 0;
            self.places.extend(self.levels.iter().map(|level| {
                let at = place;
                place += usize::from(*level > 0);
                at
            }));
        }
        Ok(())
    }

    fn value(&self, row: usize) -> Option<&T::T> {
        if self.places.is_empty() {
            return self.values.get(row);
        }
        self.levels.get(row).filter(|level| **level > 0)?;
        self.values.get(*self.places.get(row)?)
    }
}

/// The value types of Parquet's physical types.
trait Store {
    fn stored(&self) -> Stored<'_>;
}

impl Store for bool {
    fn stored(&self) -> Stored<'_> {
        Stored::Bool(*self)
    }
}

impl Store for i32 {
    fn stored(&self) -> Stored<'_> {
        Stored::Int(i64::from(*self))
    }
}

impl Store for i64 {
    fn stored(&self) -> Stored<'_> {
        Stored::Int(*self)
    }
}

impl Store for Int96 {
    fn stored(&self) -> Stored<'_> {
        Stored::Int96(self)
    }
}

impl Store for f32 {
    fn stored(&self) -> Stored<'_> {
        Stored::Float(*self)
    }
}

impl Store for f64 {
    fn stored(&self) -> Stored<'_> {
        Stored::Double(*self)
    }
}

impl Store for ByteArray {
    fn stored(&self) -> Stored<'_> {
        Stored::Bytes(self.data())
    }
}

impl Store for FixedLenByteArray {
    fn stored(&self) -> Stored<'_> {
        Stored::Bytes(self.data())
    }
}
