//! NDJSON files: one object a line. The columns are the first object's keys, and those that
//! [`super::Source::admit`] adds.

mod object;

use std::collections::HashSet;

use windrow_core::{Field, Name};

use self::object::{Cell, Columns};
use super::csv_text::record::MOST_COLUMNS;
use super::fault::SourceFault;
use super::port::Source;
use super::portion::{BadRecord, Portion, PortionLimits};
use super::window::Window;
use super::{names, skip};

/// The most lines without an object before the first object. A file with more of them is not
/// NDJSON.
const MAX_BAD_FIRST: usize = 100;

/// An open NDJSON file.
pub(super) struct Ndjson {
    window: Window,
    columns: Columns,
    chosen: Option<Vec<usize>>,
    /// Lines before the first object.
    first: Vec<BadRecord>,
    /// The number of the window's first line.
    line: u64,
    /// The number of the next record.
    record: u64,
    /// Keys of the first object.
    lasting: usize,
    /// Further keys of the next objects in the window.
    others: Vec<Name>,
    /// True if a last line without its end is left out unless it is an object.
    unfinished: bool,
    /// The number of such a line.
    left: Option<u64>,
}

/// A line in the window.
#[derive(Clone, Copy)]
struct LineBounds {
    end: usize,
    next: usize,
}

impl Ndjson {
    /// Reads up to the first object.
    ///
    /// # Errors
    /// There is none, its keys cannot be columns, or the file cannot be read.
    pub(super) fn open(window: Window, unfinished: bool) -> Result<Self, SourceFault> {
        let mut ndjson = Self {
            window,
            columns: Columns::default(),
            chosen: None,
            first: Vec::new(),
            line: 1,
            record: 0,
            lasting: 0,
            others: Vec::new(),
            unfinished,
            left: None,
        };
        ndjson.find_names()?;
        Ok(ndjson)
    }

    fn find_names(&mut self) -> Result<(), SourceFault> {
        while let Some(found) = self.find()? {
            let raw = self.raw(found);
            let names = match text(raw).and_then(object::keys) {
                Ok(names) if names.is_empty() => {
                    Err("is empty, and the first object names the columns".to_owned())
                }
                Ok(names) => names::check(&names).map(|()| names),
                Err(reason) => Err(reason),
            };
            let names = match names {
                Ok(names) if names.len() <= MOST_COLUMNS => names,
                Ok(names) => {
                    let reason = format!("has {} keys; the limit is {MOST_COLUMNS}", names.len());
                    return Err(self.window.form(self.line, reason));
                }
                Err(reason) => {
                    self.add_first(found, reason)?;
                    continue;
                }
            };
            self.lasting = names.len();
            self.columns = Columns::new(names);
            self.others = self.look_ahead();
            return Ok(());
        }
        Err(match self.first.first() {
            None => self.window.form(1, "the file is empty; it has no columns"),
            Some(bad) => self.window.form(bad.line, &*bad.reason),
        })
    }

    /// Returns the keys of the lines in the window that the first object does not have. A key that
    /// cannot be a column is reported when its line is read.
    fn look_ahead(&self) -> Vec<Name> {
        let (mut others, mut seen) = (Vec::new(), HashSet::new());
        for line in self.window.data().split(|byte| *byte == b'\n') {
            let keys = text(line).and_then(object::keys).unwrap_or_default();
            for key in keys {
                let new =
                    !self.columns.has(&key) && names::check(std::slice::from_ref(&key)).is_ok();
                if new && others.len() < MOST_COLUMNS && seen.insert(key.clone()) {
                    others.push(key);
                }
            }
        }
        others
    }

    /// Keeps a line before the first object.
    fn add_first(&mut self, found: LineBounds, reason: String) -> Result<(), SourceFault> {
        let raw = self.raw(found);
        if raw.trim_ascii_start().starts_with(b"[") && self.first.is_empty() {
            return Err(self.window.form(
                self.line,
                "begins with an array; give one object a line, as `jq -c '.[]'` makes them",
            ));
        }
        if self.first.len() == MAX_BAD_FIRST {
            let reason = format!(
                "{reason}; none of the first {MAX_BAD_FIRST} lines is an object, so this is taken to be no NDJSON file"
            );
            return Err(self.window.form(self.line, reason));
        }
        self.first.push(BadRecord {
            record: self.record,
            line: self.line,
            raw: raw.to_vec(),
            reason,
        });
        self.advance(found);
        Ok(())
    }

    /// Finds the next line that is not empty.
    fn find(&mut self) -> Result<Option<LineBounds>, SourceFault> {
        let mut looked = 0;
        loop {
            let (data, last) = (self.window.data(), self.window.is_last());
            let rest = data.get(looked..).unwrap_or_default();
            let found = match memchr::memchr(b'\n', rest) {
                Some(at) => LineBounds {
                    end: looked + at,
                    next: looked + at + 1,
                },
                None if last && data.is_empty() => return Ok(None),
                None if last => LineBounds {
                    end: data.len(),
                    next: data.len(),
                },
                None => {
                    looked = data.len();
                    self.window.more(self.line)?;
                    continue;
                }
            };
            let raw = data.get(..found.end).unwrap_or_default();
            if !raw.trim_ascii().is_empty() {
                return Ok(Some(LineBounds {
                    end: found.end - usize::from(raw.ends_with(b"\r")),
                    ..found
                }));
            }
            self.window.consume(found.next);
            self.line += 1;
            looked = 0;
        }
    }

    fn raw(&self, line: LineBounds) -> &[u8] {
        self.window.data().get(..line.end).unwrap_or_default()
    }

    fn advance(&mut self, line: LineBounds) {
        self.window.consume(line.next);
        self.line += 1;
        self.record += 1;
    }

    /// Puts a line into the portion. Returns false if the portion is full, or the line is
    /// incomplete.
    fn take(&mut self, found: LineBounds, portion: &mut Portion) -> bool {
        let (at, raw) = ((self.record, self.line), self.raw(found));
        let cells = match text(raw).and_then(|text| object::cells(text, &self.columns)) {
            Ok(cells) => cells,
            Err(_) if self.unfinished && found.end == found.next => {
                self.left = Some(self.line);
                return false;
            }
            Err(reason) => {
                portion.push_bad(at, raw, reason);
                return true;
            }
        };
        match &self.chosen {
            None => portion.push_row(at, raw, cells.iter().map(Cell::field)),
            Some(chosen) => {
                let chosen = chosen.iter().map(|at| cells.get(*at));
                let fields = chosen.map(|cell| cell.map_or(Field::Null, Cell::field));
                portion.push_row(at, raw, fields)
            }
        }
    }
}

impl Source for Ndjson {
    fn names(&self) -> Option<&[Name]> {
        Some(&self.columns.names)
    }

    fn others(&self) -> &[Name] {
        &self.others
    }

    fn admit(&mut self, names: &[Name], only: bool) {
        let mut all = std::mem::take(&mut self.columns).names;
        all.extend_from_slice(names);
        self.columns = Columns::new(all);
        self.columns.only = only;
    }

    fn lasting(&self) -> usize {
        self.lasting
    }

    fn choose(&mut self, columns: &[usize]) {
        self.chosen = Some(columns.to_vec());
    }

    fn read(&mut self, portion: &mut Portion, most: PortionLimits) -> Result<bool, SourceFault> {
        portion.clear();
        portion.bad.append(&mut self.first);
        portion.end = self.record;
        let mut bad_bytes = portion.bad.iter().map(|bad| bad.raw.len()).sum();
        while !skip::is_full(portion, most, bad_bytes)
            && let Some(found) = self.find()?
        {
            let bad = portion.bad.len();
            if !self.take(found, portion) {
                break;
            }
            if portion.bad.len() > bad {
                bad_bytes += found.end;
            }
            self.advance(found);
            portion.end = self.record;
        }
        Ok(!portion.records.is_empty() || !portion.bad.is_empty())
    }

    fn head(&self) -> &[u8] {
        &self.window.input().head
    }

    fn left(&self) -> Option<u64> {
        self.left
    }

    fn read_bytes(&self) -> u64 {
        self.window.input().read_bytes()
    }
}

/// Returns a line without a byte order mark. Each file of several that were concatenated may begin
/// with one.
fn text(raw: &[u8]) -> Result<&str, String> {
    skip::no_nul(raw)?;
    let text = skip::utf8(raw)?;
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}
