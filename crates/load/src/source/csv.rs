//! CSV files.

mod doubt;
mod header;
mod row;
mod stretch;

use std::sync::Arc;

use windrow_core::{CsvStyle, Means, Name};

use self::doubt::Backslashes;
use self::header::Header;
use self::stretch::stretch;
use super::csv_text::record::{MOST_COLUMNS, Record, ScanEnd};
use super::csv_text::splitter::{Position, Splitter};
use super::fault::SourceFault;
use super::options::{Escape, Options};
use super::port::Source;
use super::portion::{Portion, PortionLimits};
use super::skip;
use super::window::Window;

use super::csv_text::style::{Escapes, Style};
use super::csv_text::unsplit::Unsplit;

/// An open CSV file.
pub(super) struct Csv {
    window: Window,
    splitter: Arc<Splitter>,
    names: Option<Vec<Name>>,
    /// The record that contains the names.
    heading: Option<Box<[u8]>>,
    found: Record,
    /// The position where the window begins.
    at: Position,
    /// True if a last record without its line end is left out.
    unfinished: bool,
    /// The line of such a record.
    left: Option<u64>,
    /// The number of empty lines, and the line of the first.
    empty: (u64, u64),
    /// Backslashes that may be escapes in a tab-separated file.
    backslashes: Option<Backslashes>,
}

/// The number of records at the beginning of a file that are checked before any of it is loaded.
const LOOKED_AT: usize = 100;

impl Csv {
    /// Reads the header, or counts the fields of the first record.
    ///
    /// # Errors
    /// The file is empty, its header is not a list of different names, its first records look like
    /// those of another form, or it cannot be read.
    pub(super) fn open(
        window: Window,
        options: &Options,
        style: Style,
    ) -> Result<Self, SourceFault> {
        let doubts = style.escapes.is_none() && options.escape == Escape::Unsaid;
        let mut csv = Self {
            window,
            splitter: Arc::new(Splitter {
                style,
                nulls: nulls(options, style),
                columns: None,
                spare: 0,
                doubts,
                chosen: None,
                means: Vec::new(),
            }),
            names: None,
            heading: None,
            found: Record::default(),
            at: Position { record: 0, line: 1 },
            unfinished: options.unfinished,
            left: None,
            empty: (0, 0),
            backslashes: (doubts && style.delimiter == b'\t').then(Backslashes::default),
        };
        csv.find_line_end()?;
        if !csv.find()? {
            if csv.left.is_some() {
                let reason = "the file's first line has no line end yet";
                return Err(csv.window.form(1, reason));
            }
            return Err(csv.window.form(1, "the file is empty; it has no columns"));
        }
        let columns = csv.found.count;
        if columns > MOST_COLUMNS {
            return Err(csv.window.form(
                csv.at.line,
                format!("has {columns} columns; the limit is {MOST_COLUMNS}"),
            ));
        }
        if columns == 1 && options.delimiter.is_none() {
            csv.check_delimiter()?;
        }
        let mut spare = 0;
        if options.header {
            let header = csv.header()?;
            spare = header.spare;
            csv.names = Some(header.names);
            csv.heading = csv.window.data().get(..csv.found.end).map(Into::into);
            csv.advance();
        }
        let splitter = Arc::make_mut(&mut csv.splitter);
        (splitter.columns, splitter.spare) = (Some(columns - spare), spare);
        if doubts {
            csv.look_ahead()?;
        }
        Ok(csv)
    }

    /// Refuses a file of one column if its first line has another delimiter between names.
    fn check_delimiter(&self) -> Result<(), SourceFault> {
        let line = self.window.data().get(..self.found.end);
        let line = std::str::from_utf8(line.unwrap_or_default()).unwrap_or_default();
        match header::other_delimiter(line, self.splitter.style.delimiter) {
            Some(reason) => Err(self.window.form(self.at.line, reason)),
            None => Ok(()),
        }
    }

    /// Refuses a file if backslashes look like escapes in its first records, as far as they are in
    /// the window.
    fn look_ahead(&mut self) -> Result<(), SourceFault> {
        let splitter = &self.splitter;
        let most = splitter.columns.unwrap_or(MOST_COLUMNS);
        let (mut rest, mut line) = (self.window.data(), self.at.line);
        for _ in 0..LOOKED_AT {
            let whole = self.found.scan(rest, splitter.style, most, false) == ScanEnd::Whole;
            if !whole {
                break;
            }
            let (record, behind) = rest.split_at(self.found.next.min(rest.len()));
            let raw = record.get(..self.found.end).unwrap_or_default();
            if (self.found.count, self.found.beyond) == (most, None)
                && let Err(reason) = doubt::check(&self.found, raw, splitter)
            {
                return Err(self.window.form(line, reason));
            }
            line += self.found.lines;
            rest = behind;
        }
        Ok(())
    }

    fn find_line_end(&mut self) -> Result<(), SourceFault> {
        loop {
            let (data, last) = (self.window.data(), self.window.is_last());
            if let Some(found) = self.splitter.style.find_line_end(data, last) {
                Arc::make_mut(&mut self.splitter).style.line_end = found;
                return Ok(());
            }
            self.window.more(self.at.line)?;
        }
    }

    /// Finds the next record. Returns false at the end. Empty lines are not records, unless records
    /// have one field.
    fn find(&mut self) -> Result<bool, SourceFault> {
        let Splitter { style, columns, .. } = *self.splitter;
        let most = columns.unwrap_or(MOST_COLUMNS);
        let ends_by = (style.escapes == Some(Escapes::Copy)).then_some(&b"\\."[..]);
        loop {
            let (data, last) = (self.window.data(), self.window.is_last());
            if data.is_empty() && last {
                return Ok(false);
            }
            match self.found.scan(data, style, most, last) {
                ScanEnd::Whole if self.unfinished && self.found.next == self.found.end => {
                    self.left = Some(self.at.line);
                    return Ok(false);
                }
                ScanEnd::Whole if !self.splitter.is_record(&self.found) => {
                    let (lines, first) = self.empty;
                    self.empty = (lines + 1, if lines == 0 { self.at.line } else { first });
                    self.advance();
                }
                ScanEnd::Whole if ends_by == data.get(..self.found.end) => {
                    self.end_of_data()?;
                    return Ok(false);
                }
                ScanEnd::Whole => return Ok(true),
                ScanEnd::Cut => self.window.more(self.at.line)?,
                ScanEnd::Open(_) if self.unfinished => {
                    self.left = Some(self.at.line);
                    return Ok(false);
                }
                ScanEnd::Open(quote) => {
                    let before = data.get(..quote).unwrap_or_default();
                    let lines = memchr::memchr_iter(style.line_end, before).count();
                    let line = self.at.line + lines as u64;
                    let hint = match self.splitter.doubts {
                        true => doubt::hint(data, style),
                        false => "",
                    };
                    return Err(self.window.form(
                        self.at.line,
                        format!(
                            "the file ends inside of a quoted field that began on line {line}; it is cut off, or a quote \
                             is not meant as one (--quote none: no quotes have a meaning){hint}"
                        ),
                    ));
                }
            }
        }
    }

    /// Skips the line that ends the rows of COPY's text format.
    fn end_of_data(&mut self) -> Result<(), SourceFault> {
        self.advance();
        while self.window.data().is_empty() && !self.window.is_last() {
            self.window.more(self.at.line)?;
        }
        match self.window.data() {
            [] => Ok(()),
            _ => Err(self.window.form(
                self.at.line,
                "the line before ends the rows (\\.), and more follows it; give the rows in a file of their own",
            )),
        }
    }

    /// Moves past the record that was found.
    fn advance(&mut self) {
        self.window.consume(self.found.next);
        self.found.release();
        self.at.line += self.found.lines;
    }

    fn header(&self) -> Result<Header, SourceFault> {
        let fault = |reason: String| {
            let message = format!(
                "{reason}; the first line is to name the columns (--no-header: it holds values)"
            );
            self.window.form(self.at.line, message)
        };
        let raw = self.window.data().get(..self.found.end);
        let text = skip::utf8(raw.unwrap_or_default()).map_err(fault)?;
        let patched = std::str::from_utf8(&self.found.scratch).unwrap_or_default();
        let pieces = self.found.pieces.iter();
        let fields: Vec<&str> = pieces
            .map(|piece| self.found.text(*piece, (text, patched)).0)
            .collect();
        Header::of(&fields).map_err(fault)
    }

    /// Puts the record that was found into the portion. Returns false if the portion has no room
    /// for it.
    fn take(&self, portion: &mut Portion) -> bool {
        let raw = self.window.data().get(..self.found.end);
        let raw = raw.unwrap_or_default();
        self.splitter.take(&self.found, raw, self.at, portion)
    }

    /// Moves whole records from the window to other unsplit records. Returns true if reading on may
    /// bring more of them: not if there is no room for them, or if the next record must be
    /// examined. If the window were read on without room for its records, it would grow with each
    /// portion.
    fn move_stretch(&mut self, quote: u8, unsplit: &mut Unsplit, most: PortionLimits) -> bool {
        let left = PortionLimits {
            records: most.records.saturating_sub(unsplit.records),
            bytes: most.bytes.saturating_sub(unsplit.text.len()),
        };
        if left.records == 0 || left.bytes == 0 {
            return false;
        }
        let style = self.splitter.style;
        let found = stretch(self.window.data(), style, quote, left);
        unsplit.text.push_str(found.text);
        unsplit.records += found.records;
        unsplit.lines += found.lines;
        self.at.line += found.lines;
        self.at.record += found.records as u64;
        let (bytes, blocked) = (found.text.len(), found.blocked);
        self.window.consume(bytes);
        let full = unsplit.records >= most.records || unsplit.text.len() >= most.bytes;
        !blocked && !full
    }

    /// Adds the next records to the unsplit ones, up to one that must be examined.
    fn fill(
        &mut self,
        quote: u8,
        unsplit: &mut Unsplit,
        most: PortionLimits,
    ) -> Result<(), SourceFault> {
        while self.move_stretch(quote, unsplit, most) && !self.window.is_last() {
            self.window.more(self.at.line)?;
        }
        Ok(())
    }
}

impl Source for Csv {
    fn names(&self) -> Option<&[Name]> {
        self.names.as_deref()
    }

    fn header(&self) -> Option<&[u8]> {
        self.heading.as_deref()
    }

    fn columns(&self) -> Option<usize> {
        self.splitter.columns
    }

    fn choose(&mut self, columns: &[usize]) {
        Arc::make_mut(&mut self.splitter).chosen = Some(columns.to_vec());
    }

    fn means(&mut self, means: &[Means]) {
        Arc::make_mut(&mut self.splitter).means = means.to_vec();
    }

    fn style(&self) -> Option<CsvStyle> {
        // If records have one field, a record may be an empty line.
        let several = self.splitter.columns.is_some_and(|columns| columns > 1);
        let Splitter { style, nulls, .. } = &*self.splitter;
        let [null] = &**nulls else { return None };
        (several && style.escapes.is_none() && self.splitter.takes_all()).then_some(CsvStyle {
            delimiter: style.delimiter,
            quote: style.quote?,
            null: null.clone(),
        })
    }

    fn read_unsplit(
        &mut self,
        style: &Arc<CsvStyle>,
        portion: &mut Portion,
        most: PortionLimits,
    ) -> Result<bool, SourceFault> {
        portion.clear();
        let mut unsplit = Unsplit {
            splitter: Arc::clone(&self.splitter),
            style: Arc::clone(style),
            text: std::mem::take(&mut portion.text),
            records: 0,
            lines: 0,
            first: self.at,
        };
        let filled = self.fill(style.quote, &mut unsplit, most);
        portion.end = self.at.record;
        if unsplit.records > 0 {
            portion.unsplit = Some(unsplit);
            filled.map(|()| true)
        } else {
            portion.text = unsplit.text;
            filled?;
            self.read(portion, most)
        }
    }

    fn read(&mut self, portion: &mut Portion, most: PortionLimits) -> Result<bool, SourceFault> {
        portion.clear();
        portion.end = self.at.record;
        let mut bad_bytes = 0;
        while !skip::is_full(portion, most, bad_bytes) && self.find()? {
            let bad = portion.bad.len();
            if !self.take(portion) {
                break;
            }
            if portion.bad.len() > bad {
                bad_bytes += self.found.end;
            } else if let Some(backslashes) = &mut self.backslashes {
                let raw = self.window.data().get(..self.found.end);
                backslashes.see(raw.unwrap_or_default(), self.at.line);
            }
            self.advance();
            self.at.record += 1;
            portion.end = self.at.record;
        }
        Ok(!portion.records.is_empty() || !portion.bad.is_empty())
    }

    fn head(&self) -> &[u8] {
        &self.window.input().head
    }

    fn left(&self) -> Option<u64> {
        self.left
    }

    fn empty_lines(&self) -> (u64, u64) {
        self.empty
    }

    fn backslashes(&self) -> Option<u64> {
        self.backslashes.as_ref().and_then(Backslashes::line)
    }

    fn read_bytes(&self) -> u64 {
        self.window.input().read_bytes()
    }
}

/// Returns the texts that mean NULL.
fn nulls(options: &Options, style: Style) -> Vec<Box<str>> {
    let named = options.null.iter().map(|null| null.as_str().into());
    match (style.escapes, options.null.is_empty()) {
        (_, false) => named.collect(),
        (None, true) => vec!["".into()],
        (Some(Escapes::Copy), true) => vec!["\\N".into()],
        (Some(Escapes::LoadData(escape)), true) => {
            vec!["".into(), format!("{}N", char::from(escape)).into()]
        }
    }
}
