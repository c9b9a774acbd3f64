//! The names of columns that a file gives.

use windrow_core::Name;
use windrow_core::name::check_column;

/// # Errors
/// What to tell the user: a name that cannot be one, or that occurs twice.
pub(super) fn check(names: &[Name]) -> Result<(), String> {
    for (name, column) in names.iter().zip(1_usize..) {
        check_column(name).map_err(|fault| format!("column {column}: {}", fault.message))?;
    }
    let mut sorted: Vec<&Name> = names.iter().collect();
    sorted.sort_unstable();
    let twice = sorted.windows(2).find(|pair| pair.first() == pair.last());
    match twice.and_then(|pair| pair.first()) {
        Some(name) => Err(format!("the column {name:?} occurs twice")),
        None => Ok(()),
    }
}
