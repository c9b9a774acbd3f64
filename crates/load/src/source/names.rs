//! Checks the names of a file's columns.

use windrow_core::Name;

/// Checks the names of a file's columns. A name that is too long for a table is cut when it is
/// matched with the table.
///
/// # Errors
/// A message for the user: a name is invalid or occurs twice.
pub(super) fn check(names: &[Name]) -> Result<(), String> {
    for (name, column) in names.iter().zip(1_usize..) {
        if name.is_empty() {
            return Err(format!("column {column} has no name"));
        }
        if name.contains('\0') {
            return Err(format!("the name of column {column} has a NUL character"));
        }
    }
    let mut sorted: Vec<&Name> = names.iter().collect();
    sorted.sort_unstable();
    let twice = sorted.windows(2).find(|pair| pair.first() == pair.last());
    match twice.and_then(|pair| pair.first()) {
        Some(name) => Err(format!("the column {name:?} occurs twice")),
        None => Ok(()),
    }
}
