//! A column of a table, as a load sees it.

use crate::name::Name;

/// What a column makes of a field of a format that knows no types, such as CSV.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Means {
    /// What it looks like: the column is still to be made from its values, or may be widened.
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
    /// Its name.
    pub name: Name,
    /// Its type, as the database calls it.
    pub type_name: Box<str>,
    /// Its values are always made by the database: none can be given.
    pub generated: bool,
    /// A row that does not name it gets something else than NULL there.
    pub defaults: bool,
    /// What it makes of a field.
    pub means: Means,
}
