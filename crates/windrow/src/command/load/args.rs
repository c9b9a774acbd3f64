//! The command line of `load`.

use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use windrow::load::{AWAY_WAIT, Escape, Files, Format, LoadError, LoadSettings, Pick, Resume};
use windrow::{OnConflict, Statement};
use windrow_core::Secret;

use crate::command::progress::{Progress, SummaryAs};
use crate::command::status_page::OnStatusPage;

/// Options of `load`.
#[derive(Clone, Args)]
#[command(
    after_help = "Exit status: 0 all rows are in; 1 an error ended it; 2 the command line is wrong; \
3 it came to the end, and some rows were refused; 130 it was interrupted.\nSee docs/load.md."
)]
pub(crate) struct Load {
    /// Files of CSV, TSV, NDJSON or Parquet, packed with gzip, zstd or zip or not; `-` is standard
    /// input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,

    /// Where rows go: sqlite:PATH, postgres://USER@HOST:PORT/DATABASE, mysql://.. and others (see
    /// `windrow databases`)
    // The value may hold a password, so help does not show it.
    #[arg(long, value_name = "URL", env = "WINDROW_TO", hide_env_values = true)]
    to: Secret,

    /// The table: NAME or SCHEMA.NAME
    #[arg(long, short, value_name = "TABLE")]
    table: String,

    /// Which columns of the file are loaded, and what the table calls them: a,b=target [default:
    /// all, by name]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = Pick::parse)]
    columns: Option<Vec<Pick>>,

    /// Action for a row whose key exists already
    #[arg(long, value_name = "WHAT", default_value = "error")]
    on_conflict: Conflict,

    /// The columns of the key that --on-conflict means [default: the table's primary key]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    key: Option<Vec<String>>,

    /// Make the table, and columns that it lacks, from the rows
    #[arg(long)]
    create: bool,

    /// Go on where an earlier run has ended, and let this one be gone on with
    #[arg(long)]
    resume: bool,

    /// As --resume, by a name instead of the file's path: for standard input, or a file that has
    /// moved
    #[arg(long, value_name = "NAME")]
    resume_as: Option<String>,

    /// Keep refused rows in FILE, as they were, and their reasons in FILE.reasons
    #[arg(long, value_name = "FILE")]
    rejects: Option<PathBuf>,

    /// End when more rows than these were refused [default: never]
    #[arg(long, value_name = "N")]
    max_rejects: Option<u64>,

    /// Load the first N rows of each file only
    #[arg(long, value_name = "N", conflicts_with_all = ["resume", "resume_as"])]
    limit: Option<u64>,

    /// Connections that write at once [default: 2, or 1 where order counts or the database has one
    /// writer]
    #[arg(long, short, value_name = "N")]
    jobs: Option<NonZero<usize>>,

    /// Most rows in one transaction [default: what suits the database]
    #[arg(long, value_name = "ROWS")]
    batch_rows: Option<NonZero<usize>>,

    /// Time that a load waits for a database that is away [default: 60s]
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    away_wait: Option<Duration>,

    /// Format of the files; `text` is PostgreSQL's COPY in its text format, which `psql \copy` and
    /// `mysqldump --tab` write [default: what their names or first bytes say]
    #[arg(long, value_name = "FORMAT", value_parser = ["csv", "tsv", "text", "ndjson", "parquet"])]
    format: Option<String>,

    /// CSV: the character between fields [default: a comma, or a tab for TSV and text]
    #[arg(long, value_name = "CHAR", value_parser = character)]
    delimiter: Option<u8>,

    /// CSV: the character around fields, or `none`. In a field that does not begin with it, it is
    /// a character as any other [default: "]
    #[arg(long, value_name = "CHAR", value_parser = quote)]
    quote: Option<Quote>,

    /// CSV: the character that takes the meaning from the one behind it, as \ in files of MySQL
    /// (\" is a quote, \N no value), or `none`: a backslash is a character as any other [default:
    /// none, but what looks like an escape is refused]
    #[arg(long, value_name = "CHAR", value_parser = escape)]
    escape: Option<Escape>,

    /// CSV: the first line holds values, not names
    #[arg(long)]
    no_header: bool,

    /// CSV: a field without quotes that means no value; may be given several times [default: the
    /// empty field; with --escape \N too; of text \N alone]
    #[arg(long, value_name = "TEXT")]
    null: Vec<String>,

    /// CSV, NDJSON: the encoding, as utf-8 or windows-1252 [default: what a byte order mark says,
    /// or UTF-8]
    #[arg(long, value_name = "NAME")]
    encoding: Option<String>,

    /// Progress: a bar on a terminal and lines elsewhere, lines, or nothing
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub(super) progress: Progress,

    #[command(flatten)]
    pub(super) on_status_page: OnStatusPage,

    /// Summary at the end
    #[arg(long, value_name = "HOW", default_value = "text")]
    pub(super) summary: SummaryAs,

    /// Level or filter of the log [default: warn]
    #[arg(long, value_name = "FILTER", env = "WINDROW_LOG")]
    pub(super) log: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Conflict {
    /// The row is refused
    Error,
    /// The row is left out
    Ignore,
    /// The row that is there takes the new values
    Update,
}

/// A quote, or none.
#[derive(Clone, Copy, Debug)]
struct Quote(Option<u8>);

fn character(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" => Ok(b'\t'),
        [byte] if byte.is_ascii() => Ok(*byte),
        _ => Err("one ASCII character is wanted; \\t is a tab".into()),
    }
}

fn escape(text: &str) -> Result<Escape, String> {
    match text {
        "none" => Ok(Escape::None),
        _ => character(text).map(Escape::Character),
    }
}

fn quote(text: &str) -> Result<Quote, String> {
    match text {
        "none" => Ok(Quote(None)),
        _ => character(text).map(|byte| Quote(Some(byte))),
    }
}

impl Load {
    /// True if the same command goes on where this one ends.
    pub(super) fn resumes(&self) -> bool {
        self.resume || self.resume_as.is_some()
    }

    pub(super) fn files(&self) -> Files {
        let mut files = Files::new(self.files.clone());
        let format = |name: &str| Format::ALL.into_iter().find(|f| f.as_str() == name);
        let options = &mut files.options;
        options.format = self.format.as_deref().and_then(format);
        options.delimiter = self.delimiter;
        if let Some(Quote(quote)) = self.quote {
            options.quote = quote;
        }
        options.escape = self.escape.unwrap_or_default();
        options.header = !self.no_header;
        if !self.null.is_empty() {
            options.null.clone_from(&self.null);
        }
        options.encoding.clone_from(&self.encoding);
        files
    }

    /// Of what, into what.
    pub(super) fn what(&self) -> String {
        let table = &self.table;
        match self.files.as_slice() {
            [file] => format!("{file} into {table}"),
            files => format!("{} files into {table}", files.len()),
        }
    }

    pub(super) fn settings(&self) -> Result<LoadSettings, LoadError> {
        let mut settings = LoadSettings::new(self.to.clone(), &self.table)?;
        let load = &mut settings.load;
        load.columns.clone_from(&self.columns);
        load.on_conflict = match self.on_conflict {
            Conflict::Error => OnConflict::Error,
            Conflict::Ignore => OnConflict::Ignore,
            Conflict::Update => OnConflict::Update,
        };
        if let Some(key) = &self.key {
            load.key = Statement::key_of(key)
                .map_err(|fault| LoadError::Invalid(fault.message.into_string()))?;
        }
        load.create = self.create;
        load.limit = self.limit;
        load.jobs = self.jobs;
        load.portion_rows = self.batch_rows;
        load.away_wait = self.away_wait.unwrap_or(AWAY_WAIT);
        settings.resume = match &self.resume_as {
            Some(name) => Some(Resume::As(name.clone())),
            None => self.resume.then_some(Resume::ByPath),
        };
        settings.rejects.clone_from(&self.rejects);
        settings.max_rejects = self.max_rejects;
        Ok(settings)
    }
}
