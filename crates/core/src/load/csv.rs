//! Records of CSV that are passed to a database unchanged.

/// The style of a CSV file, as PostgreSQL's COPY reads it: a quote may stand anywhere in a field
/// and switches quoting on and off, a quote is doubled within quotes, and only a field without
/// quotes can be NULL (PostgreSQL's documentation, "COPY", "CSV Format").
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CsvStyle {
    /// The character between two fields, in ASCII.
    pub delimiter: u8,
    /// The quotation mark, in ASCII.
    pub quote: u8,
    /// The text that means NULL.
    pub null: Box<str>,
}

/// Returns the separator that a header without `delimiter` seems to use: a semicolon, a tab, a bar
/// or a comma. Such a header would otherwise be one column.
pub fn other_delimiter(header: &str, delimiter: u8) -> Option<char> {
    let mut candidates = [';', '\t', '|', ','].into_iter();
    let given = char::from(delimiter);
    candidates.find(|other| *other != given && header.contains(*other))
}

/// Whole records exactly as in their file, each with its line end. No record is empty or contains a
/// NUL, and no line begins with a backslash and a dot, which older releases of PostgreSQL read as
/// the end of all rows.
#[derive(Clone, Copy, Debug)]
pub struct CsvText<'a> {
    /// The style of the records.
    pub style: &'a CsvStyle,
    /// The records. They may have a wrong number of fields.
    pub text: &'a str,
    /// The number of records.
    pub records: usize,
}
