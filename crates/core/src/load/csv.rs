//! Records of CSV that go to a database word for word.

/// The style of a CSV file, as PostgreSQL's COPY reads it: a quote may stand anywhere in a field
/// and switches quoting on and off, a quote is doubled within quotes, and only a field without
/// quotes can be NULL (PostgreSQL's documentation, "COPY", "CSV Format").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvStyle {
    /// Between two fields; an ASCII character.
    pub delimiter: u8,
    /// Around fields; an ASCII character.
    pub quote: u8,
    /// The text that means NULL.
    pub null: Box<str>,
}

/// Finds what may stand between the columns of a header that has no `delimiter` and would be one
/// column so: a semicolon, a tab, a bar or a comma.
pub fn other_delimiter(header: &str, delimiter: u8) -> Option<char> {
    let mut candidates = [';', '\t', '|', ','].into_iter();
    let given = char::from(delimiter);
    candidates.find(|other| *other != given && header.contains(*other))
}

/// Whole records as they stand in their file, each with its line end. None of them is empty, there
/// is no NUL in them, and none of their lines begins with a backslash and a dot, which earlier
/// releases of PostgreSQL take for the end of all rows.
#[derive(Clone, Copy, Debug)]
pub struct CsvText<'a> {
    /// The style of the records.
    pub style: &'a CsvStyle,
    /// They. Whether each has the right number of fields is not known.
    pub text: &'a str,
    /// The number of records.
    pub records: usize,
}
