//! Parquet files, batch by batch.

mod column;
mod kind;
mod number;
mod text;

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::RecordBatch;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Compression;
use parquet::file::metadata::ParquetMetaData;
use windrow_core::{Field, Holds, Means, Name};

use self::column::Column;
use self::kind::ValueKind;
use super::csv_text::record::MOST_COLUMNS;
use super::fault::SourceFault;
use super::input::RawInput;
use super::port::Source;
use super::portion::{BadRecord, Portion, PortionLimits};
use super::{names, skip};

/// Bytes that a batch of decoded rows should have. A single row may pass it.
const BATCH_BYTES: u64 = 4 << 20;
/// The most rows of a batch.
const BATCH_ROWS: u64 = 4096;

/// A Parquet file that is read.
pub(super) struct Parquet {
    input: RawInput,
    file: File,
    metadata: ArrowReaderMetadata,
    names: Vec<Name>,
    chosen: Vec<usize>,
    /// Of each of them what its column makes of a text.
    means: Vec<Means>,
    reader: Option<ParquetRecordBatchReader>,
    /// The last batch was read, or there was a fault.
    ended: bool,
    batch: Batch,
    /// The number of the next record.
    record: u64,
    /// Of the whole file.
    rows: u64,
    line: RowText,
}

/// Rows that were decoded and not yet used.
#[derive(Default)]
struct Batch {
    /// In the order of the rows to be made.
    columns: Vec<Column>,
    rows: usize,
    next: usize,
}

/// A row's texts. Kept between rows for its memory.
#[derive(Default)]
struct RowText {
    text: String,
    /// Of each field what it is, and where its text ends.
    ends: Vec<(ValueKind, usize)>,
    /// The row as a line of JSON.
    json: String,
    /// Of each field its name, as JSON begins a member: `"a":`.
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
        // Without what Arrow adds: types are those that Parquet itself has, however the file was
        // made.
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let metadata = calmly(|| ArrowReaderMetadata::load(&file, options))
            .map_err(|error| input.form(damaged(&error)))?;
        let fields = metadata.schema().fields();
        let names: Vec<Name> = fields.iter().map(|f| f.name().as_str().into()).collect();
        if names.len() > MOST_COLUMNS {
            let reason = format!("has {} columns; the limit is {MOST_COLUMNS}", names.len());
            return Err(input.form(reason));
        }
        names::check(&names).map_err(|reason| input.form(reason))?;
        if let Some(packing) = packing(metadata.metadata()) {
            return Err(input.form(format!(
                "its columns are packed with {packing}, which is not read; write it with zstd, snappy, gzip, lz4 or unpacked"
            )));
        }
        let rows = metadata.metadata().file_metadata().num_rows();
        Ok(Self {
            chosen: (0..names.len()).collect(),
            means: Vec::new(),
            rows: u64::try_from(rows).unwrap_or_default(),
            input,
            file,
            metadata,
            names,
            reader: None,
            ended: false,
            batch: Batch::default(),
            record: 0,
            line: RowText::default(),
        })
    }

    /// Returns the columns to be read, in the file's order, each once.
    fn projection(&self) -> Vec<usize> {
        let mut columns = self.chosen.clone();
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    fn start(&mut self) -> Result<ParquetRecordBatchReader, SourceFault> {
        self.line.keys = self.chosen.iter().map(|at| self.key(*at)).collect();
        let file = self
            .file
            .try_clone()
            .map_err(|error| self.input.io(error))?;
        let builder =
            ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone());
        let mask = ProjectionMask::roots(builder.parquet_schema(), self.projection());
        let builder = builder
            .with_projection(mask)
            .with_batch_size(self.batch_rows());
        calmly(|| builder.build()).map_err(|error| self.fault(&error))
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
        let groups = self.metadata.metadata().row_groups().iter();
        let longest = groups.map(|group| {
            let bytes = u64::try_from(group.total_byte_size()).unwrap_or(u64::MAX);
            bytes / u64::try_from(group.num_rows()).unwrap_or_default().max(1)
        });
        let rows = BATCH_BYTES / longest.max().unwrap_or_default().max(1);
        usize::try_from(rows.clamp(1, BATCH_ROWS)).unwrap_or(1)
    }

    /// Decodes the next rows. False at the end of the file.
    fn next_batch(&mut self) -> Result<bool, SourceFault> {
        if self.ended {
            return Ok(false);
        }
        // Whatever happens now, nothing is read twice.
        self.ended = true;
        let mut reader = match self.reader.take() {
            Some(reader) => reader,
            None => self.start()?,
        };
        let next = calmly(|| reader.next().transpose()).map_err(|error| self.fault(&error))?;
        let Some(batch) = next else {
            return Ok(false);
        };
        self.batch = Batch {
            columns: self.columns(&batch)?,
            rows: batch.num_rows(),
            next: 0,
        };
        self.reader = Some(reader);
        self.ended = false;
        Ok(true)
    }

    fn columns(&self, batch: &RecordBatch) -> Result<Vec<Column>, SourceFault> {
        let read = self.projection();
        let schema = batch.schema();
        let mut columns = Vec::with_capacity(self.chosen.len());
        for chosen in &self.chosen {
            let at = read.binary_search(chosen).unwrap_or_default();
            let (Some(array), Some(field)) = (batch.columns().get(at), schema.fields().get(at))
            else {
                return Err(self.fault("a column is missing"));
            };
            let column = Column::new(array, field).map_err(|reason| self.form(reason))?;
            columns.push(column);
        }
        Ok(columns)
    }

    /// Puts the next row into the portion. False: the portion is full.
    fn take(&mut self, portion: &mut Portion) -> bool {
        let row = self.batch.next;
        self.line.write(&self.batch.columns, row);
        let line = self.record + 1;
        if let Err(reason) = skip::no_nul(self.line.text.as_bytes()) {
            portion.bad.push(BadRecord {
                record: self.record,
                line,
                raw: self.line.json.clone().into_bytes(),
                reason,
            });
            return true;
        }
        let fields = self.line.fields(&self.batch.columns, &self.means, row);
        let added = portion.rows.push(line, fields);
        if added {
            portion.push_raw(self.record, self.line.json.as_bytes());
        }
        added
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

/// Returns the packing of the columns, if it cannot be unpacked here.
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

/// Runs the decoder, which panics on some damaged files where it should say what is wrong.
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
    fn write(&mut self, columns: &[Column], row: usize) {
        self.text.clear();
        self.ends.clear();
        self.json.clear();
        self.json.push('{');
        for (column, key) in columns.iter().zip(&self.keys) {
            let from = self.text.len();
            let kind = column.value(row, &mut self.text);
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
                    // Parquet has a type for JSON, and few writers know it.
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
        let fields = self.metadata.schema().fields();
        let field = |at: &usize| fields.get(*at).and_then(|field| column::holds(field));
        self.chosen.iter().map(field).collect()
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
            if !self.take(portion) {
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
        let all = u128::from(self.input.all_bytes().unwrap_or_default());
        let bytes = all * u128::from(self.record.min(self.rows)) / u128::from(self.rows.max(1));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    fn all_bytes(&self) -> Option<u64> {
        self.input.all_bytes()
    }
}

#[cfg(test)]
#[path = "parquet/tests.rs"]
mod tests;
