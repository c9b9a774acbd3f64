//! The values of rows that are answered before they are stored: see [`super::Preview`].

/// The origin of a value that is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PreviewValue {
    /// The parameter of the INSERT at this place, in the format of the call.
    Given(usize),
    /// The computed column at this place, in binary.
    Computed(usize),
}

/// A foreign key of one integer or `uuid` column. The plan of a table with any other has a doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PreviewReference {
    /// The place of the column among the parameters of `write`.
    pub value: usize,
    /// The table that is referred to, by its number in the database's catalog.
    pub table: u32,
    /// The column that is referred to, by its number in that table.
    pub column: i16,
}
