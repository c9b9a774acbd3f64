//! What a file is, and how it is read.

use std::path::Path;

use super::csv::Csv;
use super::input::Input;
use super::ndjson::Ndjson;
use super::window::Window;
use super::{Source, SourceFault};

/// A file's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Comma-separated values (RFC 4180, read as PostgreSQL's COPY reads them).
    Csv,
    /// The same, with tabs.
    Tsv,
    /// One JSON object a line.
    Ndjson,
    /// Apache Parquet.
    Parquet,
}

impl Format {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Csv, Self::Tsv, Self::Ndjson, Self::Parquet];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Ndjson => "ndjson",
            Self::Parquet => "parquet",
        }
    }

    /// By what stands behind the last dot of a name, packed or not: `x.csv`, `x.csv.gz`.
    fn by_name(name: &str) -> Option<Self> {
        let path = Path::new(name);
        let extension = |path: &Path| Some(path.extension()?.to_str()?.to_ascii_lowercase());
        match extension(path)?.as_str() {
            "csv" => Some(Self::Csv),
            "tsv" | "tab" => Some(Self::Tsv),
            "ndjson" | "jsonl" | "json" => Some(Self::Ndjson),
            "parquet" | "pq" => Some(Self::Parquet),
            "gz" | "zst" | "zstd" => Self::by_name(path.file_stem()?.to_str()?),
            _ => None,
        }
    }

    /// By its first bytes; what looks like nothing else is CSV.
    fn by_head(head: &[u8]) -> Self {
        let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
        match head.trim_ascii_start().first() {
            Some(b'{') => Self::Ndjson,
            _ => Self::Csv,
        }
    }
}

/// How a file is to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Its format; `None`: what its name says, or else its first bytes.
    pub format: Option<Format>,
    /// CSV: what stands between fields, an ASCII character; `None`: a comma, or a tab for TSV.
    pub delimiter: Option<u8>,
    /// CSV: what stands around fields, an ASCII character; `None`: nothing, every character means
    /// itself.
    pub quote: Option<u8>,
    /// CSV: the first record names the columns.
    pub header: bool,
    /// CSV: a field without quotes that is one of these has no value. As with COPY that is the
    /// empty field unless others are named; a field of two quotes is an empty text always.
    pub null: Vec<String>,
    /// CSV and NDJSON: the encoding, by a name of <https://encoding.spec.whatwg.org/>; `None`: what a byte order mark
    /// says, or else UTF-8. Raw records are in UTF-8 whatever the file is in.
    pub encoding: Option<String>,
    /// So many of the first bytes are kept for [`Source::head`], at least. Standard input is
    /// waited for until they are there, or until it ends.
    pub head: usize,
    /// CSV and NDJSON: a last line without its end is taken to be half written, and is not handed
    /// out ([`Source::left`]). Objects of NDJSON end by themselves.
    pub unfinished: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: None,
            delimiter: None,
            quote: Some(b'"'),
            header: true,
            null: vec![String::new()],
            encoding: None,
            head: 0,
            unfinished: false,
        }
    }
}

/// Opens a file, or standard input for `-`. Archives of gzip and zstd are unpacked on the way.
///
/// # Errors
/// [`SourceFault`]: it cannot be opened, is empty, or its beginning makes no sense; the options
/// contradict each other.
pub fn open(path: &str, options: &Options) -> Result<Box<dyn Source>, SourceFault> {
    let input = Input::open(path, options.head)?;
    start(input, options)
}

/// Some reader in place of a file.
#[cfg(any(test, fuzzing))]
pub(crate) fn open_reader(
    name: &str,
    reader: impl std::io::Read + Send + 'static,
    options: &Options,
) -> Result<Box<dyn Source>, SourceFault> {
    start(Input::try_of(name, reader)?, options)
}

fn start(mut input: Input, options: &Options) -> Result<Box<dyn Source>, SourceFault> {
    let format = format(&input, options)?;
    check(format, options).map_err(|reason| {
        input.io(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            reason,
        ))
    })?;
    if format == Format::Parquet {
        return parquet(input);
    }
    input.decode(options.encoding.as_deref())?;
    let window = Window::new(input);
    let delimiter = options.delimiter.unwrap_or(match format {
        Format::Tsv => b'\t',
        _ => b',',
    });
    Ok(match format {
        Format::Ndjson => Box::new(Ndjson::open(window, options.unfinished)?),
        _ => Box::new(Csv::open(window, options, delimiter)?),
    })
}

fn format(input: &Input, options: &Options) -> Result<Format, SourceFault> {
    let looks_parquet = input.head.starts_with(b"PAR1");
    if let Some(format) = options.format {
        return Ok(format);
    }
    for (mark, what) in [
        (&b"PK\x03\x04"[..], "a zip archive"),
        (b"BZh", "a bzip2 archive"),
        (b"\xfd7zXZ\0", "an xz archive"),
        (b"SQLite format 3\0", "an SQLite database"),
    ] {
        if input.head.starts_with(mark) {
            return Err(input.form(format!(
                "this is {what}; files of CSV, NDJSON and Parquet are read, the first two packed with gzip or zstd too"
            )));
        }
    }
    Ok(match Format::by_name(&input.name) {
        _ if looks_parquet => Format::Parquet,
        Some(format) => format,
        None => Format::by_head(&input.head),
    })
}

fn check(format: Format, options: &Options) -> Result<(), String> {
    let is_csv = matches!(format, Format::Csv | Format::Tsv);
    let marks = options.delimiter.iter().chain(&options.quote);
    for mark in marks.filter(|_| is_csv) {
        if !mark.is_ascii() || matches!(mark, b'\n' | b'\r' | 0) {
            return Err(
                "the delimiter and the quote are each one ASCII character, and no line end".into(),
            );
        }
    }
    if is_csv && options.delimiter.is_some() && options.delimiter == options.quote {
        return Err("the delimiter and the quote cannot be the same character".into());
    }
    if format == Format::Parquet && options.encoding.is_some() {
        return Err("an encoding cannot be given for Parquet, whose texts are UTF-8".into());
    }
    Ok(())
}

#[cfg(feature = "parquet")]
fn parquet(input: Input) -> Result<Box<dyn Source>, SourceFault> {
    Ok(Box::new(super::parquet::Parquet::open(input)?))
}

#[cfg(not(feature = "parquet"))]
fn parquet(input: Input) -> Result<Box<dyn Source>, SourceFault> {
    Err(input
        .form("this is a Parquet file, and this program was built without the feature `parquet`"))
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
