//! A column of a table, as a load sees it.

use crate::name::Name;

/// The meaning that a column gives to a field of a format without types, such as CSV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Means {
    /// The value that the field looks like: the column will be created from its values, or may be
    /// widened.
    #[default]
    Looks,
    /// The column's value in the text form of its type.
    Itself,
    /// JSON as written: a field `"a"` is the text `a`, and a field `a` is not JSON.
    Json,
}

/// A column of a table that is to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadColumn {
    /// The column's name.
    pub name: Name,
    /// The column's type, in the database's words.
    pub type_name: Box<str>,
    /// True if the database computes the values, so that none can be given.
    pub generated: bool,
    /// True if a row that does not name the column gets something other than NULL.
    pub defaults: bool,
    /// The value that the column makes of a field.
    pub means: Means,
}
