//! Parquet files, batch by batch.

mod column;
mod flat;
mod nested;
mod schema;
mod text;
mod value;

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use parquet::basic::{Compression, ConvertedType};
use parquet::file::metadata::ParquetMetaData;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::schema::types::Type;
use windrow_core::{Field, Holds, Means, Name};

use self::column::{Column, Place};
use self::schema::ColumnType;
use self::value::ValueKind;
use super::csv_text::record::MOST_COLUMNS;
use super::fault::SourceFault;
use super::input::RawInput;
use super::port::Source;
use super::portion::{Portion, PortionLimits};
use super::{names, skip};

/// The bytes that a batch of decoded rows should have. A single row may have more.
const BATCH_BYTES: u64 = 4 << 20;
/// The most rows of a batch.
const BATCH_ROWS: u64 = 4096;

/// An open Parquet file.
pub(super) struct Parquet {
    input: RawInput,
    file: SerializedFileReader<File>,
    names: Vec<Name>,
    /// The type of each column; `None` if values of its type are not supported.
    types: Vec<Option<ColumnType>>,
    chosen: Vec<usize>,
    /// The meaning of a text in each column.
    means: Vec<Means>,
    /// The next row group.
    next_group: usize,
    /// True if the last rows were read, or there was a fault.
    ended: bool,
    batch: Batch,
    /// The number of the next record.
    record: u64,
    /// The number of rows of the whole file.
    rows: u64,
    /// The size of the file.
    bytes: u64,
    line: RowText,
}

/// Rows that were decoded and not yet used.
#[derive(Default)]
struct Batch {
    /// The columns of a row group, in the order of the rows.
    columns: Vec<Column>,
    /// The number of rows of the row group that follow the batch.
    behind: usize,
    rows: usize,
    next: usize,
}

/// The texts of a row. They are reused so that their memory is.
#[derive(Default)]
struct RowText {
    text: String,
    /// The kind of each field, and where its text ends.
    ends: Vec<(ValueKind, usize)>,
    /// The row as a line of JSON.
    json: String,
    /// The name of each field, as JSON begins a member: `"a":`.
    keys: Vec<String>,
}

impl Parquet {
    /// Reads the file's metadata.
    ///
    /// # Errors
    /// It is standard input or an archive, no Parquet file, or has columns of the same name.
    pub(super) fn open(mut input: RawInput) -> Result<Self, SourceFault> {
        let Some(file) = input.file.take() else {
            return Err(input.form(
                "Parquet is read from its end: it has to be a file, unpacked, and not standard input or an archive",
            ));
        };
        let bytes = file.metadata().map_or(0, |about| about.len());
        let file = calmly(|| SerializedFileReader::new(file))
            .map_err(|error| input.form(damaged(&error)))?;
        let schema = file.metadata().file_metadata().schema_descr();
        let fields = schema.root_schema().get_fields();
        let names: Vec<Name> = fields.iter().map(|field| field.name().into()).collect();
        if names.len() > MOST_COLUMNS {
            let reason = format!("has {} columns; the limit is {MOST_COLUMNS}", names.len());
            return Err(input.form(reason));
        }
        let types = fields.iter().map(|field| ColumnType::of_column(field));
        let types = types.collect();
        names::check(&names).map_err(|reason| input.form(reason))?;
        if let Some(packing) = packing(file.metadata()) {
            return Err(input.form(format!(
                "its columns are packed with {packing}, which is not read; write it with zstd, snappy, gzip, lz4 or unpacked"
            )));
        }
        let rows = file.metadata().file_metadata().num_rows();
        Ok(Self {
            chosen: (0..names.len()).collect(),
            means: Vec::new(),
            rows: u64::try_from(rows).unwrap_or_default(),
            bytes,
            input,
            file,
            names,
            types,
            next_group: 0,
            ended: false,
            batch: Batch::default(),
            record: 0,
            line: RowText::default(),
        })
    }

    fn key(&self, column: usize) -> String {
        let mut key = String::new();
        if let Some(name) = self.names.get(column) {
            text::quoted(name, &mut key);
        }
        key.push(':');
        key
    }

    /// Returns the number of rows that have [`BATCH_BYTES`] in the row group with the longest rows.
    fn batch_rows(&self) -> usize {
        let groups = self.file.metadata().row_groups().iter();
        let longest = groups.map(|group| {
            let bytes = u64::try_from(group.total_byte_size()).unwrap_or(u64::MAX);
            bytes / u64::try_from(group.num_rows()).unwrap_or_default().max(1)
        });
        let rows = BATCH_BYTES / longest.max().unwrap_or_default().max(1);
        usize::try_from(rows.clamp(1, BATCH_ROWS)).unwrap_or(1)
    }

    /// Decodes the next rows. Returns false at the end of the file.
    fn next_batch(&mut self) -> Result<bool, SourceFault> {
        if self.ended {
            return Ok(false);
        }
        // So that nothing is read twice if this fails.
        self.ended = true;
        while self.batch.behind == 0 {
            if self.next_group == self.file.num_row_groups() {
                self.batch = Batch::default();
                return Ok(false);
            }
            self.open_group()?;
        }
        let rows = self.batch.behind.min(self.batch_rows());
        let columns = &mut self.batch.columns;
        let read = calmly(|| columns.iter_mut().try_for_each(|column| column.read(rows)));
        read.map_err(|error| self.fault(&error))?;
        self.batch.behind -= rows;
        self.batch.rows = rows;
        self.batch.next = 0;
        self.ended = false;
        Ok(true)
    }

    /// Opens the next row group.
    fn open_group(&mut self) -> Result<(), SourceFault> {
        if self.next_group == 0 {
            self.line.keys = self.chosen.iter().map(|at| self.key(*at)).collect();
        }
        let group = calmly(|| self.file.get_row_group(self.next_group))
            .map_err(|error| self.fault(&error))?;
        let schema = self.file.metadata().file_metadata().schema_descr();
        let mut columns = Vec::with_capacity(self.chosen.len());
        for at in self.chosen.iter().copied() {
            let (Some(column), Some(column_type)) = (
                schema.root_schema().get_fields().get(at),
                self.types.get(at),
            ) else {
                return Err(self.fault("a column is missing"));
            };
            let Some(column_type) = column_type.clone() else {
                return Err(self.form(unread(column)));
            };
            let place = Place { schema, column, at };
            let opened = calmly(|| Column::open(&*group, &place, column_type));
            columns.push(opened.map_err(|error| self.fault(&error))?);
        }
        let rows = usize::try_from(group.metadata().num_rows());
        self.batch = Batch {
            columns,
            behind: rows.map_err(|_| self.fault("it has a negative number of rows"))?,
            rows: 0,
            next: 0,
        };
        self.next_group += 1;
        Ok(())
    }

    /// Puts the next row into the portion. Returns false if the portion is full.
    ///
    /// # Errors
    /// A value does not have the form that its type requires.
    fn take(&mut self, portion: &mut Portion) -> Result<bool, SourceFault> {
        let row = self.batch.next;
        let (columns, text) = (&mut self.batch.columns, &mut self.line);
        let read = calmly(|| columns.iter_mut().try_for_each(|column| column.seek(row)));
        if let Err(error) = read.and_then(|()| text.write(columns, row)) {
            self.ended = true;
            return Err(self.fault(&error));
        }
        let (at, raw) = ((self.record, self.record + 1), self.line.json.as_bytes());
        if let Err(reason) = skip::no_nul(self.line.text.as_bytes()) {
            portion.push_bad(at, raw, reason);
            return Ok(true);
        }
        let fields = self.line.fields(&self.batch.columns, &self.means, row);
        Ok(portion.push_row(at, raw, fields))
    }

    fn fault(&self, error: &str) -> SourceFault {
        self.form(damaged(error))
    }

    fn form(&self, reason: String) -> SourceFault {
        SourceFault::Form {
            name: self.input.name.clone(),
            line: self.record + 1,
            reason,
        }
    }
}

/// Returns the message for the user about a column whose values are not supported.
fn unread(column: &Type) -> String {
    let info = column.get_basic_info();
    let declared = match (info.logical_type_ref(), info.converted_type()) {
        (Some(logical), _) => format!("{logical:?}"),
        (None, ConvertedType::NONE) => "a nested type".to_owned(),
        (None, converted) => converted.to_string(),
    };
    format!(
        "the column {:?} has the type {declared}, which is not read; leave it out",
        column.name()
    )
}

/// Returns the packing of the columns, if it is not supported.
fn packing(metadata: &ParquetMetaData) -> Option<&'static str> {
    let chunks = metadata
        .row_groups()
        .iter()
        .flat_map(|group| group.columns());
    let mut packings = chunks.map(|chunk| chunk.compression());
    packings.find_map(|packing| match packing {
        Compression::BROTLI(_) => Some("Brotli"),
        Compression::LZO => Some("LZO"),
        _ => None,
    })
}

/// Runs the decoder and catches its panics: it panics on some damaged files instead of returning an
/// error.
fn calmly<T, E: std::fmt::Display>(work: impl FnOnce() -> Result<T, E>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|error| error.to_string()),
        Err(panic) => Err(match panic.downcast_ref::<String>() {
            Some(text) => text.clone(),
            None => panic
                .downcast_ref::<&str>()
                .map_or("it makes no sense".into(), ToString::to_string),
        }),
    }
}

fn damaged(error: &str) -> String {
    format!(
        "this cannot be read as Parquet: {error}; the file is damaged, cut off, or of another kind"
    )
}

impl RowText {
    fn write(&mut self, columns: &[Column], row: usize) -> Result<(), String> {
        self.text.clear();
        self.ends.clear();
        self.json.clear();
        self.json.push('{');
        for (column, key) in columns.iter().zip(&self.keys) {
            let from = self.text.len();
            let kind = column.value(row, &mut self.text)?;
            self.ends.push((kind, self.text.len()));
            if self.json.len() > 1 {
                self.json.push(',');
            }
            self.json.push_str(key);
            let text = self.text.get(from..).unwrap_or_default();
            match kind {
                ValueKind::Null => self.json.push_str("null"),
                ValueKind::Bool(true) => self.json.push_str("true"),
                ValueKind::Bool(false) => self.json.push_str("false"),
                ValueKind::Number | ValueKind::Json => self.json.push_str(text),
                ValueKind::Text => text::quoted(text, &mut self.json),
                ValueKind::Bytes => text::hex(column.bytes(row), &mut self.json),
            }
        }
        self.json.push('}');
        Ok(())
    }

    fn fields<'a>(
        &'a self,
        columns: &'a [Column],
        means: &'a [Means],
        row: usize,
    ) -> impl Iterator<Item = Field<'a>> + use<'a> {
        let mut from = 0;
        let means = means.iter().copied().chain(std::iter::repeat(Means::Looks));
        self.ends
            .iter()
            .zip(columns)
            .zip(means)
            .map(move |(((kind, end), column), means)| {
                let text = self.text.get(from..*end).unwrap_or_default();
                from = *end;
                match *kind {
                    ValueKind::Null => Field::Null,
                    ValueKind::Bool(truth) => Field::Bool(truth),
                    ValueKind::Number => Field::Number(text),
                    // Parquet has a type for JSON, but few programs write it.
                    ValueKind::Text if means == Means::Json && column.is_words() => {
                        Field::Json(text)
                    }
                    ValueKind::Text => Field::Text(text),
                    ValueKind::Json => Field::Json(text),
                    ValueKind::Bytes => Field::Bytes(column.bytes(row)),
                }
            })
    }
}

impl Source for Parquet {
    fn names(&self) -> Option<&[Name]> {
        Some(&self.names)
    }

    fn choose(&mut self, columns: &[usize]) {
        self.chosen = columns.to_vec();
    }

    fn means(&mut self, means: &[Means]) {
        self.means = means.to_vec();
    }

    fn declared(&self) -> Vec<Option<Holds>> {
        let of = |at: &usize| self.types.get(*at)?.as_ref()?.holds();
        self.chosen.iter().map(of).collect()
    }

    fn read(&mut self, portion: &mut Portion, most: PortionLimits) -> Result<bool, SourceFault> {
        portion.clear();
        portion.end = self.record;
        let mut bad_bytes = 0;
        while !skip::is_full(portion, most, bad_bytes) {
            if self.batch.next == self.batch.rows && !self.next_batch()? {
                break;
            }
            let bad = portion.bad.len();
            if !self.take(portion)? {
                break;
            }
            if portion.bad.len() > bad {
                bad_bytes += self.line.json.len();
            }
            self.batch.next += 1;
            self.record += 1;
            portion.end = self.record;
        }
        Ok(!portion.records.is_empty() || !portion.bad.is_empty())
    }

    fn head(&self) -> &[u8] {
        &self.input.head
    }

    fn read_bytes(&self) -> u64 {
        let all = u128::from(self.bytes);
        let bytes = all * u128::from(self.record.min(self.rows)) / u128::from(self.rows.max(1));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
#[path = "parquet/tests.rs"]
mod tests;
