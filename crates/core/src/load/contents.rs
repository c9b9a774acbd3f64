//! The contents of a portion.

use super::csv::CsvText;
use super::rows::Rows;
use crate::fault::Fault;

/// The contents of a portion, and which of its rows may be left out.
#[derive(Clone, Copy, Debug)]
pub enum Contents<'a> {
    /// Rows that are written all or not at all.
    Rows(&'a Rows),
    /// Rows of which those may be left out that the database would probably refuse. A wrong guess
    /// only costs time: the caller writes the rows that were left out one by one.
    GoodRows(&'a Rows),
    /// Records that the database splits into fields, written all or not at all.
    Csv(CsvText<'a>),
}

impl<'a> Contents<'a> {
    /// Returns the number of rows.
    pub fn count(self) -> usize {
        match self {
            Self::Rows(rows) | Self::GoodRows(rows) => rows.len(),
            Self::Csv(csv) => csv.records,
        }
    }

    /// Returns true if rows may be left out.
    pub fn leaves_out(self) -> bool {
        matches!(self, Self::GoodRows(_))
    }

    /// Returns the rows, for a bulk form that reads no CSV.
    ///
    /// # Errors
    /// The contents are records that are not split into fields.
    pub fn rows(self) -> Result<&'a Rows, Fault> {
        match self {
            Self::Rows(rows) | Self::GoodRows(rows) => Ok(rows),
            Self::Csv(_) => Err(Fault::internal("this bulk form reads no CSV")),
        }
    }
}
