//! What a file is, and how it is to be read.

use std::path::Path;

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
    pub(super) fn by_name(name: &str) -> Option<Self> {
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
    pub(super) fn by_head(head: &[u8]) -> Self {
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
    /// So many of the first bytes are kept for [`super::Source::head`], at least. Standard input is
    /// waited for until they are there, or until it ends.
    pub head: usize,
    /// CSV and NDJSON: a last line without its end is taken to be half written, and is not handed
    /// out ([`super::Source::left`]). Objects of NDJSON end by themselves.
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
