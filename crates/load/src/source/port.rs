//! The port of a format: a file that is read in order.

use std::sync::Arc;

use windrow_core::{CsvStyle, Holds, Means, Name};

use super::fault::SourceFault;
use super::portion::{Portion, PortionLimits};

/// A file that is read in order. Reading blocks, so it has a thread of its own.
pub trait Source: Send {
    /// Returns the names of the columns; `None` if there are none (a CSV file without a header).
    fn names(&self) -> Option<&[Name]>;

    /// Returns the record that names the columns, as in the file. A file of some of its records
    /// must begin with it. `None` if the format has none.
    fn header(&self) -> Option<&[u8]> {
        None
    }

    /// Returns the number of columns: the names, or the fields of the first record. A table's
    /// columns can be matched to a file without names only if there are as many. `None` if
    /// the number cannot be known before the file is read.
    fn columns(&self) -> Option<usize> {
        self.names().map(<[Name]>::len)
    }

    /// Returns names of columns that [`Source::names`] does not have and other records at the
    /// file's beginning do, if each record names its own.
    fn others(&self) -> &[Name] {
        &[]
    }

    /// Adds names to [`Source::names`], if each record names its columns. `only` is true if other
    /// names of a record are ignored; otherwise such a record is refused. Called at most once,
    /// before [`Source::choose`].
    fn admit(&mut self, _: &[Name], _only: bool) {}

    /// Returns how many of [`Source::names`], from the first, follow from the file's first record
    /// alone, whatever is added to the file later.
    fn lasting(&self) -> usize {
        usize::MAX
    }

    /// Sets the file's columns (counted from 0) that each row holds, in this order. Called once,
    /// before the first [`Source::read`]. Without this call, rows hold all columns in the file's
    /// order.
    fn choose(&mut self, columns: &[usize]);

    /// Sets the meaning of fields without a type in the chosen columns, in the order of
    /// [`Source::choose`]. Called once after it. Without this call, fields mean what they look
    /// like.
    fn means(&mut self, _: &[Means]) {}

    /// Returns the types that the file declares for its columns, in the order of
    /// [`Source::choose`]. Called after it.
    fn declared(&self) -> Vec<Option<Holds>> {
        Vec::new()
    }

    /// Clears the portion, then fills it with the next records. Returns false if there are no more.
    ///
    /// # Errors
    /// [`SourceFault`]. The records that were read before it are in the portion.
    fn read(&mut self, portion: &mut Portion, most: PortionLimits) -> Result<bool, SourceFault>;

    /// Returns the style of the records, if [`Source::read_unsplit`] can return them as in the
    /// file. Called after [`Source::choose`].
    fn style(&self) -> Option<CsvStyle> {
        None
    }

    /// Reads as [`Source::read`], but does not split records into fields if they need not be
    /// examined. [`Portion::split`] then finds the bad records. `style`: that of [`Source::style`].
    ///
    /// # Errors
    /// As [`Source::read`].
    fn read_unsplit(
        &mut self,
        _style: &Arc<CsvStyle>,
        portion: &mut Portion,
        most: PortionLimits,
    ) -> Result<bool, SourceFault> {
        self.read(portion, most)
    }

    /// Returns the first bytes, unpacked: at least [`super::Options::head`], if the file has as
    /// many.
    fn head(&self) -> &[u8];

    /// Returns the line of a last record that was left out because it has no line end, with
    /// [`super::Options::unfinished`].
    fn left(&self) -> Option<u64> {
        None
    }

    /// Returns the number of empty lines, and the line of the first.
    fn empty_lines(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Returns the line of the first record with a possible escape of COPY's text format, in a
    /// tab-separated file that was read without escapes.
    fn backslashes(&self) -> Option<u64> {
        None
    }

    /// Returns the bytes of the file that were read, as on the disk (packed, if it is), for the
    /// progress bar.
    fn read_bytes(&self) -> u64;
}
