//! The names of columns that a file gives.

use windrow_core::Name;

/// Checks the names of a file's columns. One that is too long for a table is cut where it is
/// matched with the table.
///
/// # Errors
/// What to tell the user: a name that cannot be one, or that occurs twice.
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
