//! The port that every format fills: a file, read from its beginning to its end.

use std::sync::Arc;

use windrow_core::{CsvStyle, Holds, Means, Name};

use super::fault::SourceFault;
use super::portion::{Most, Portion};

/// A file that is read from its beginning to its end. It blocks: it is read on a thread of its own.
pub trait Source: Send {
    /// What the file calls its columns; `None` if it has no names (a CSV file without a header).
    fn names(&self) -> Option<&[Name]>;

    /// The record that names the columns, as it stands in the file: what a file that is made of its
    /// other records must begin with. `None` if the format has none.
    fn header(&self) -> Option<&[u8]> {
        None
    }

    /// How many columns the file has: the names, or the fields of its first record. A table's
    /// columns can be matched to a file without names only where there are as many. `None` if
    /// it cannot be known ahead.
    fn columns(&self) -> Option<usize> {
        self.names().map(<[Name]>::len)
    }

    /// What other records at its beginning call columns that [`Source::names`] does not have, where
    /// each record names its own.
    fn others(&self) -> &[Name] {
        &[]
    }

    /// Where each record names its columns: adds these to [`Source::names`]. `only`: what else a
    /// record has is passed over; without it such a record is refused. Called at most once,
    /// before [`Source::choose`].
    fn admit(&mut self, _: &[Name], _only: bool) {}

    /// So many of [`Source::names`], the first of them, follow from the file's first record alone,
    /// whatever is added to it later.
    fn lasting(&self) -> usize {
        usize::MAX
    }

    /// Which of the file's columns (counted from 0) each row is to hold, in this order. Called
    /// once, before the first [`Source::read`]; without it all of them in the file's order.
    fn choose(&mut self, columns: &[usize]);

    /// What the columns that were chosen make of fields without a type, in the order of
    /// [`Source::choose`]. Called once behind it; without it they are taken for what they look
    /// like.
    fn means(&mut self, _: &[Means]) {}

    /// What the file says that its columns hold, in the order of [`Source::choose`], where it says
    /// so; asked behind it.
    fn declared(&self) -> Vec<Option<Holds>> {
        Vec::new()
    }

    /// Clears the portion, then fills it with the next records. False: there are none any more.
    ///
    /// # Errors
    /// [`SourceFault`]; what was read before it is in the portion.
    fn read(&mut self, portion: &mut Portion, most: Most) -> Result<bool, SourceFault>;

    /// How its records are written, where [`Source::read_unsplit`] can hand them out as they stand.
    /// Asked after [`Source::choose`].
    fn style(&self) -> Option<CsvStyle> {
        None
    }

    /// As [`Source::read`], but without splitting records into fields where they need no care: what
    /// is wrong with one of them is then told by [`Portion::split`]. `style`: that of
    /// [`Source::style`].
    ///
    /// # Errors
    /// As [`Source::read`].
    fn read_unsplit(
        &mut self,
        _style: &Arc<CsvStyle>,
        portion: &mut Portion,
        most: Most,
    ) -> Result<bool, SourceFault> {
        self.read(portion, most)
    }

    /// Its first bytes, unpacked: as many as [`super::Options::head`] asks for at least, if there
    /// are as many.
    fn head(&self) -> &[u8];

    /// The line of a last record that was not handed out because its end is missing, with
    /// [`super::Options::unfinished`].
    fn left(&self) -> Option<u64> {
        None
    }

    /// How many empty lines were passed over, and the first of them.
    fn empty_lines(&self) -> (u64, u64) {
        (0, 0)
    }

    /// The line of the first record with what would be an escape in COPY's text format, in a file
    /// between tabs that was read without escapes and may be in that format.
    fn backslashes(&self) -> Option<u64> {
        None
    }

    /// Bytes of the file that were read so far, as they lie on the disk (compressed, if it is), for
    /// the progress bar.
    fn read_bytes(&self) -> u64;

    /// Bytes of the file on the disk; `None` where that cannot be known (standard input, a pipe).
    fn all_bytes(&self) -> Option<u64>;
}
