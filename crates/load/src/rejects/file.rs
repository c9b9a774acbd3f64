//! The two files that keep refused rows.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use windrow_core::Span;

use super::reject::{Origin, Reason, Reject};
use crate::LoadError;

/// One line of the reasons.
#[derive(Debug, Serialize)]
struct ReasonLine<'a> {
    file: &'a str,
    line: u64,
    code: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    constraint: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a str>,
    record: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    load: Option<&'a str>,
    /// The place in the file of rows where the row ends.
    ends_at: u64,
    /// A checksum of that file up to there.
    sum: u64,
}

/// The parts of a reason that a later run needs.
#[derive(Debug, Deserialize)]
struct KeptReason {
    record: u64,
    load: Option<String>,
    ends_at: u64,
    sum: u64,
}

/// The file of rows and the file of reasons.
#[derive(Debug)]
pub(super) struct RejectFiles {
    rows: GrowingFile,
    reasons: GrowingFile,
    /// The first line of the file of rows.
    header: Option<Box<[u8]>>,
    /// True if a write has failed. Nothing more is written then, because it would follow a partial
    /// row.
    broken: bool,
    before: HashMap<String, Vec<Span>>,
}

/// A file that grows, and its checksum and length so far.
#[derive(Debug)]
struct GrowingFile {
    path: PathBuf,
    out: BufWriter<File>,
    bytes: u64,
    sum: Sum,
}

impl RejectFiles {
    pub(super) fn open(path: &Path, go_on: bool) -> Result<Self, LoadError> {
        let mut reasons_path = path.as_os_str().to_owned();
        reasons_path.push(".reasons");
        let reasons_path = PathBuf::from(reasons_path);
        let opened = |path: &Path| {
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            options.open(path).map_err(|error| fault(path, error))
        };
        // A crash may have left rows without reasons, but never without their file.
        let ours = reasons_path.exists();
        let (rows, reasons) = (opened(path)?, opened(&reasons_path)?);
        let length = rows.metadata().map_err(|error| fault(path, error))?.len();
        if length > 0 && !(go_on && ours) {
            if !ours {
                std::fs::remove_file(&reasons_path).ok();
            }
            let message = "it is there already and holds rows; move it away, or name another file (with --resume it is continued)";
            return Err(fault(path, io::Error::other(message)));
        }
        let (last, length, before) =
            read_reasons(&reasons, length).map_err(|error| fault(&reasons_path, error))?;
        let rows_to = last.as_ref().map_or(0, |kept| kept.ends_at);
        let (rows, header) = GrowingFile::go_on(rows, path, rows_to)?;
        if last.is_some_and(|kept| kept.sum != rows.sum.0) {
            let message = "its rows are not those that the reasons beside it are about; move both away and load the corrected rows from there";
            return Err(fault(path, io::Error::other(message)));
        }
        let (reasons, _) = GrowingFile::go_on(reasons, &reasons_path, length)?;
        Ok(Self {
            header: (rows.bytes > 0).then_some(header),
            rows,
            reasons,
            broken: false,
            before,
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.reasons.bytes == 0
    }

    pub(super) fn paths(&self) -> (PathBuf, PathBuf) {
        (self.rows.path.clone(), self.reasons.path.clone())
    }

    pub(super) fn before(&self, load: &str) -> Vec<Span> {
        self.before.get(load).cloned().unwrap_or_default()
    }

    /// Sets the header. The rows of one file can be loaded again only if they have one header.
    pub(super) fn header(&mut self, header: Option<&[u8]>) -> Result<(), LoadError> {
        match (&self.header, header) {
            (Some(there), Some(header)) if **there != *header => {
                let message = "the rows that it holds are from a file with other columns; give each load a file of its own";
                Err(fault(&self.rows.path, io::Error::other(message)))
            }
            _ => {
                self.header = header.map(Into::into);
                Ok(())
            }
        }
    }

    pub(super) fn write(&mut self, origin: &Origin, reject: &Reject<'_>) -> Result<(), LoadError> {
        self.whole()?;
        let written = self.append(origin, reject);
        self.broken = written.is_err();
        written
    }

    fn whole(&self) -> Result<(), LoadError> {
        match self.broken {
            false => Ok(()),
            true => {
                let message = "what was to be written before could not be";
                Err(fault(&self.rows.path, io::Error::other(message)))
            }
        }
    }

    fn append(&mut self, origin: &Origin, reject: &Reject<'_>) -> Result<(), LoadError> {
        if self.rows.bytes == 0
            && let Some(header) = &self.header
        {
            self.rows.line(header)?;
        }
        self.rows.line(reject.raw)?;
        let of_database = match reject.reason {
            Reason::Database(fault) => Some(fault),
            Reason::Form(_) => None,
        };
        let line = ReasonLine {
            file: reject.file,
            line: reject.line,
            code: reject.reason.code(),
            message: reject.reason.message(),
            detail: of_database.and_then(|fault| fault.detail()),
            constraint: of_database.and_then(|fault| fault.constraint()),
            column: reject
                .column
                .or_else(|| of_database.and_then(|fault| fault.column())),
            value: reject.value,
            record: reject.record,
            load: origin.load.as_deref(),
            ends_at: self.rows.bytes,
            sum: self.rows.sum.0,
        };
        let text = serde_json::to_vec(&line)
            .map_err(|error| fault(&self.reasons.path, io::Error::other(error)))?;
        self.reasons.line(&text)
    }

    pub(super) fn settle(&mut self, on_disk: bool) -> Result<(), LoadError> {
        self.whole()?;
        let rows = self.rows.settle(on_disk);
        let settled = rows.and_then(|()| self.reasons.settle(on_disk));
        self.broken = settled.is_err();
        settled
    }

    pub(super) fn close(mut self) {
        // A failed write was reported when it was settled.
        self.settle(false).ok();
        if self.is_empty() {
            for path in [&self.rows.path, &self.reasons.path] {
                std::fs::remove_file(path).ok();
            }
        }
    }
}

impl GrowingFile {
    /// Keeps the first `bytes` of a file, and returns its first line too.
    fn go_on(mut file: File, path: &Path, bytes: u64) -> Result<(Self, Box<[u8]>), LoadError> {
        let failed = |error| fault(path, error);
        file.rewind().map_err(failed)?;
        let mut sum = Sum::default();
        let (mut first, mut in_first, mut length) = (Vec::new(), true, 0_u64);
        let mut reader = BufReader::new(&file).take(bytes);
        loop {
            let part = reader.fill_buf().map_err(failed)?;
            if part.is_empty() {
                break;
            }
            sum.add(part);
            if in_first {
                let end = part.iter().position(|b| *b == b'\n');
                first.extend_from_slice(part.get(..end.unwrap_or(part.len())).unwrap_or_default());
                in_first = end.is_none();
            }
            let read = part.len();
            length += read as u64;
            reader.consume(read);
        }
        file.set_len(length).map_err(failed)?;
        file.seek(io::SeekFrom::Start(length)).map_err(failed)?;
        let written = Self {
            path: path.to_owned(),
            out: BufWriter::new(file),
            bytes: length,
            sum,
        };
        Ok((written, first.into()))
    }

    fn line(&mut self, line: &[u8]) -> Result<(), LoadError> {
        for part in [line, b"\n"] {
            self.out
                .write_all(part)
                .map_err(|error| fault(&self.path, error))?;
            self.sum.add(part);
            self.bytes += part.len() as u64;
        }
        Ok(())
    }

    fn settle(&mut self, on_disk: bool) -> Result<(), LoadError> {
        let clean = self.out.buffer().is_empty();
        let mut settled = self.out.flush();
        if on_disk && !clean && settled.is_ok() {
            settled = self.out.get_ref().sync_data();
        }
        settled.map_err(|error| fault(&self.path, error))
    }
}

/// The last whole line, the bytes up to its end, and the records of each load.
type Reasons = (Option<KeptReason>, u64, HashMap<String, Vec<Span>>);

/// Reads the reasons. `rows` is the length of the file of rows. On a full disk, a reason may have
/// been written without its row: such rows have no marks, and are refused again.
fn read_reasons(file: &File, rows: u64) -> io::Result<Reasons> {
    let mut reader = BufReader::new(file);
    let (mut last, mut length) = (None, 0);
    let mut before: HashMap<String, Vec<Span>> = HashMap::new();
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        // A crash may have left half of a line.
        let Ok(kept) = serde_json::from_slice::<KeptReason>(&line) else {
            break;
        };
        if !line.ends_with(b"\n") || kept.ends_at > rows {
            break;
        }
        length += read as u64;
        if let Some(load) = &kept.load {
            let spans = before.entry(load.clone()).or_default();
            match spans.last_mut() {
                Some(span) if span.end == kept.record => span.end += 1,
                _ => spans.push(Span {
                    first: kept.record,
                    end: kept.record + 1,
                }),
            }
        }
        last = Some(kept);
    }
    Ok((last, length, before))
}

/// A checksum (FNV-1a, 64 bits) that shows if a file was edited.
#[derive(Clone, Copy, Debug)]
struct Sum(u64);

impl Default for Sum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

fn fault(path: &Path, error: io::Error) -> LoadError {
    LoadError::Rejects {
        path: path.display().to_string(),
        error,
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
