//! Converts a body in pieces of any size to writes.

use std::sync::Arc;

use windrow_core::{Fault, Shape, Write};

use crate::plan::Plan;
use crate::query::CsvStyle;
use crate::rows::array::ArrayCutter;
use crate::rows::csv::Csv;
use crate::rows::object::{self, Columns};
use crate::rows::position::{Position, RowError};

/// The bytes of a line's end, which count as part of its row.
const LINE_END: usize = 2;

/// A receiver of writes.
pub(crate) trait RowReceiver {
    /// True if no more writes are wanted for now.
    fn is_full(&self) -> bool;

    /// Accepts a write.
    fn take(&mut self, write: Write);

    /// Accepts the error of an unreadable row, in its place among the others.
    ///
    /// # Errors
    /// The same error, if one such row ends the whole body.
    fn refuse(&mut self, error: RowError) -> Result<(), RowError>;
}

/// Reads the rows of one body.
#[derive(Debug)]
pub(crate) struct RowStream<'p> {
    format: Format,
    plan: &'p Plan,
    /// The shape of the previous row.
    last: Option<Arc<Shape>>,
    /// The start of an incomplete row.
    carry: Vec<u8>,
    /// The position of the next row.
    position: Position,
    max_row: usize,
    /// The bytes between rows that belong to no row, minus the bytes of the rows.
    blanks: usize,
}

#[derive(Debug)]
enum Format {
    Lines,
    Array(ArrayCutter),
    Csv(Csv),
}

impl<'p> RowStream<'p> {
    pub(crate) fn ndjson(plan: &'p Plan, max_row: usize) -> Self {
        Self::new(Format::Lines, plan, plan.guess(), max_row)
    }

    pub(crate) fn array(plan: &'p Plan, max_row: usize) -> Self {
        let format = Format::Array(ArrayCutter::default());
        Self::new(format, plan, plan.guess(), max_row)
    }

    pub(crate) fn csv(plan: &'p Plan, style: &CsvStyle, max_row: usize) -> Self {
        Self::new(Format::Csv(Csv::new(style.clone())), plan, None, max_row)
    }

    fn new(format: Format, plan: &'p Plan, last: Option<Arc<Shape>>, max_row: usize) -> Self {
        Self {
            format,
            plan,
            last,
            carry: Vec::new(),
            position: Position::START,
            max_row,
            blanks: 0,
        }
    }

    /// Returns the bytes of an incomplete row.
    pub(crate) fn held(&self) -> usize {
        self.carry.len()
    }

    /// Reads rows until `out` is full or the text is used up, and returns the bytes used. Text
    /// after the last complete row is kept and counts as used.
    ///
    /// # Errors
    /// The first unreadable row, if later rows cannot be found or `out` refuses it. The stream
    /// cannot be used any more then.
    pub(crate) fn push(
        &mut self,
        text: &[u8],
        out: &mut impl RowReceiver,
    ) -> Result<usize, RowError> {
        let mut rest = text;
        while !out.is_full() && !rest.is_empty() {
            let end = self.cut(rest)?;
            let (row, behind) = rest
                .split_at_checked(end.unwrap_or(rest.len()))
                .unwrap_or((rest, &[]));
            self.check_size(row.len())?;
            rest = behind;
            if end.is_none() {
                self.carry.extend_from_slice(row);
            } else if self.carry.is_empty() {
                self.row(row, out)?;
            } else {
                let mut whole = std::mem::take(&mut self.carry);
                whole.extend_from_slice(row);
                self.row(&whole, out)?;
            }
        }
        Ok(text.len() - rest.len())
    }

    /// Reads the rest at the end of the body.
    ///
    /// # Errors
    /// A last row that is unreadable or incomplete.
    pub(crate) fn finish(&mut self, out: &mut impl RowReceiver) -> Result<(), RowError> {
        let rest = std::mem::take(&mut self.carry);
        let end = self.position.after(&rest);
        match &self.format {
            Format::Array(cutter) => cutter.finish().map_err(|text| RowError::text(end, text)),
            Format::Csv(csv) if csv.in_quotes() => {
                let message = "a quoted field is not closed when the body ends";
                Err(RowError::text(self.position, message))
            }
            Format::Lines | Format::Csv(_) => {
                if !rest.is_empty() {
                    self.row(&rest, out)?;
                }
                self.check_header()
            }
        }
    }

    fn check_header(&self) -> Result<(), RowError> {
        if matches!(self.format, Format::Csv(_)) && self.last.is_none() {
            let message = "the CSV body has no header line with the names of the columns";
            return Err(RowError::text(Position::START, message));
        }
        Ok(())
    }

    fn check_size(&self, more: usize) -> Result<(), RowError> {
        if self.carry.len() + more <= self.max_row {
            return Ok(());
        }
        let fault = Fault::too_large(format!(
            "the row is longer than {} bytes, which is the limit (http.max_row)",
            self.max_row
        ));
        Err(RowError::new(self.position, fault))
    }

    /// Compares the bytes that belong to no row with those that do: unpacking costs work even if
    /// there is no row in the text.
    fn check_blanks(&mut self, text: usize, row: usize) -> Result<(), RowError> {
        self.blanks = (self.blanks + (text - row)).saturating_sub(row);
        if self.blanks <= self.max_row {
            return Ok(());
        }
        Err(RowError::new(self.position, too_blank(self.max_row)))
    }

    /// Returns the end of the current row.
    fn cut(&mut self, text: &[u8]) -> Result<Option<usize>, RowError> {
        match &mut self.format {
            Format::Lines => Ok(memchr::memchr(b'\n', text).map(|at| at + 1)),
            Format::Csv(csv) => Ok(csv.cut(text)),
            Format::Array(cutter) => cutter.cut(text).map_err(|(at, message)| {
                let before = text.get(..at).unwrap_or_default();
                RowError::text(self.position.after(&self.carry).after(before), message)
            }),
        }
    }

    fn row(&mut self, text: &[u8], out: &mut impl RowReceiver) -> Result<(), RowError> {
        let start = self.position;
        self.position = start.after(text);
        let clean = self.strip(text, start);
        let ended = (clean.trim_ascii_end().len() + LINE_END).min(clean.len());
        self.check_blanks(text.len(), ended)?;
        if clean.is_empty() {
            return Ok(());
        }
        let start = start.after(text.get(..text.len() - clean.len()).unwrap_or_default());
        let stands_alone = self.stands_alone();
        match self.write(clean, start) {
            Ok(Some(write)) => out.take(write),
            Ok(None) => {}
            Err(error) if stands_alone => out.refuse(error)?,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// True if rows after an unreadable one can be found: each line of NDJSON and each record of
    /// CSV is a text of its own, but an array is one text. A CSV body with an unreadable header has
    /// no rows.
    fn stands_alone(&self) -> bool {
        match &self.format {
            Format::Lines => true,
            Format::Csv(_) => self.last.is_some(),
            Format::Array(_) => false,
        }
    }

    /// Returns the write of a row's text; `None` for the header of CSV.
    fn write(&mut self, clean: &[u8], start: Position) -> Result<Option<Write>, RowError> {
        Ok(match &self.format {
            Format::Csv(csv) => match &self.last {
                Some(shape) => csv
                    .values(clean, shape.columns.len())
                    .map(|values| Some(Write::new(Arc::clone(shape), values)))
                    .map_err(|text| RowError::text(start, text))?,
                None => {
                    let names = csv.header(clean);
                    let names = names.map_err(|fault| RowError::new(start, fault))?;
                    self.last = Some(self.plan.shape(names));
                    None
                }
            },
            // An error about missing text must point into this line, not to the beginning of the
            // next one.
            Format::Lines => Some(self.object(clean.trim_ascii_end(), start)?),
            Format::Array(_) => Some(self.object(clean, start)?),
        })
    }

    fn object(&mut self, text: &[u8], start: Position) -> Result<Write, RowError> {
        let read = object::read(text, self.last.as_ref(), 0).map_err(|error| error.from(start))?;
        let (shape, values) = match (read, &self.last) {
            ((Columns::Guessed, values), Some(shape)) => (Arc::clone(shape), values),
            ((Columns::Named(names), values), _) => (self.plan.shape(names), values),
            ((Columns::Guessed, values), None) => (self.plan.shape(Vec::new()), values),
        };
        let last = self.last.as_ref();
        if last.is_none_or(|last| !Arc::ptr_eq(last, &shape)) {
            self.last = Some(Arc::clone(&shape));
        }
        Ok(Write::new(shape, values))
    }

    /// Removes the text before a row: separators of an array, a byte order mark, blanks. Nothing is
    /// left of a blank line.
    fn strip<'t>(&self, text: &'t [u8], start: Position) -> &'t [u8] {
        match &self.format {
            Format::Array(_) => {
                let at = text.iter().position(|b| *b == b'{').unwrap_or(text.len());
                text.get(at..).unwrap_or_default()
            }
            Format::Lines => {
                let text = strip_mark(text, start);
                let is_blank = |b: &u8| matches!(b, b' ' | b'\t' | b'\r' | b'\n');
                let at = text.iter().position(|b| !is_blank(b));
                text.get(at.unwrap_or(text.len())..).unwrap_or_default()
            }
            Format::Csv(_) => match strip_mark(text, start) {
                b"\n" | b"\r\n" | b"\r" => &[],
                row => row,
            },
        }
    }
}

/// Returns the refusal of a body that is mostly blank.
pub(crate) fn too_blank(limit: usize) -> Fault {
    Fault::too_large(format!(
        "the body has {limit} bytes (http.max_row) more of blank lines and spaces between its rows than of rows; send it without them"
    ))
}

/// Removes the byte order mark with which some programs (especially spreadsheets) begin a file.
fn strip_mark(text: &[u8], start: Position) -> &[u8] {
    match text.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) if start == Position::START => rest,
        _ => text,
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
