//! A column of a table, as a load sees it.

use crate::name::Name;

/// The value that a column makes of a field of a format without types, such as CSV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Means {
    /// The value that the field looks like: the column is still to be created from its values, or
    /// may be widened.
    #[default]
    Looks,
    /// The text by which the column's type writes its values.
    Itself,
    /// JSON as it stands: a field `"a"` is the text `a`, and a field `a` is no JSON at all.
    Json,
}

/// A column of a table that is to be loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadColumn {
    /// The column's name.
    pub name: Name,
    /// The column's type, in the database's words.
    pub type_name: Box<str>,
    /// True if the database computes the values: none can be given.
    pub generated: bool,
    /// A row that does not name it gets something else than NULL there.
    pub defaults: bool,
    /// The value that the column makes of a field.
    pub means: Means,
}
