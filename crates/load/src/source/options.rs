//! The format of a file, and the options by which it is read.

use std::path::Path;

/// A file's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Comma-separated values (RFC 4180; in a field that does not begin with a quote, quotes are
    /// ordinary characters).
    Csv,
    /// The same, with tabs.
    Tsv,
    /// PostgreSQL's COPY in its text format, which `mysqldump --tab` writes too: tabs, no quotes,
    /// escapes with a backslash, `\N` for NULL.
    Text,
    /// One JSON object a line.
    Ndjson,
    /// Apache Parquet.
    Parquet,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 5] = [
        Self::Csv,
        Self::Tsv,
        Self::Text,
        Self::Ndjson,
        Self::Parquet,
    ];

    /// Returns the format's name in options.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Text => "text",
            Self::Ndjson => "ndjson",
            Self::Parquet => "parquet",
        }
    }

    /// Finds the format by the end of a file's name, packed or not, such as `x.csv` or `x.csv.gz`.
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

    /// Finds the format by the first bytes. A file that looks like no other format is CSV.
    pub(super) fn by_head(head: &[u8]) -> Self {
        // A byte order mark of UTF-8 or UTF-16 may come first.
        let marks = [
            &b"\xef\xbb\xbf"[..],
            b"\xff\xfe",
            b"\xfe\xff\0",
            b"\xfe\xff",
        ];
        let behind = marks.iter().find_map(|mark| head.strip_prefix(*mark));
        match behind.unwrap_or(head).trim_ascii_start().first() {
            Some(b'{') => Self::Ndjson,
            _ => Self::Csv,
        }
    }
}

/// The character that begins an escape in a CSV file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Escape {
    /// No escapes, but a record whose backslashes look like escapes is refused.
    #[default]
    Unsaid,
    /// No escapes: a backslash is an ordinary character.
    None,
    /// This one, as LOAD DATA of MySQL reads it (`ESCAPED BY`).
    Character(u8),
}

/// The options by which a file is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The file's format; `None` to find it by the file's name, or else by its first bytes.
    pub format: Option<Format>,
    /// CSV: the ASCII character between fields; `None` for a comma, or a tab for TSV and COPY's
    /// text format.
    pub delimiter: Option<u8>,
    /// CSV: the ASCII character around fields; `None` if every character means itself. COPY's text
    /// format has none.
    pub quote: Option<u8>,
    /// CSV: the character that begins an escape.
    pub escape: Escape,
    /// CSV: true if the first record names the columns.
    pub header: bool,
    /// CSV: the fields without quotes that mean NULL. If empty, that is the empty field as for
    /// COPY, with escapes `\N` too, and in COPY's text format only `\N`. A field of two quotes is
    /// always an empty text.
    pub null: Vec<String>,
    /// CSV and NDJSON: the encoding, by a name of <https://encoding.spec.whatwg.org/>; `None` for
    /// that of the byte order mark, or else UTF-8. Raw records are in UTF-8 in any case.
    pub encoding: Option<String>,
    /// The least number of first bytes that are kept for [`super::Source::head`]. Waits until
    /// standard input has as many, or ends.
    pub head: usize,
    /// CSV and NDJSON: true if a last line without its end counts as incomplete and is left out
    /// ([`super::Source::left`]). An object of NDJSON is complete without a line end.
    pub unfinished: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            format: None,
            delimiter: None,
            quote: Some(b'"'),
            escape: Escape::Unsaid,
            header: true,
            null: Vec::new(),
            encoding: None,
            head: 0,
            unfinished: false,
        }
    }
}
