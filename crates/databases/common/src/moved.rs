//! Texts and faults of moves, shared by all databases.

use windrow_core::{Fault, FaultClass, TableName};

/// Appends ` WHERE (filter)`, the operator's condition. A line break ends a comment that it may
/// contain.
pub fn push_filter(sql: &mut String, filter: Option<&str>) {
    if let Some(filter) = filter {
        sql.push_str(" WHERE (");
        sql.push_str(filter);
        sql.push_str("\n)");
    }
}

/// Returns the fault of a source that does not exist.
pub fn no_source(table: &TableName) -> Fault {
    let message = format!("there is no table {table}");
    Fault::new(FaultClass::NoTable, "42P01", message)
}

/// Returns the fault of a destination that does not exist.
pub fn no_destination(table: &TableName) -> Fault {
    let message = format!(
        "there is no table {table}; create it, or let it be made like the source by --create"
    );
    Fault::new(FaultClass::NoTable, "42P01", message).with_table(Some(&*table.table))
}

/// Returns the fault of a destination that is the source.
pub fn into_source(table: &TableName) -> Fault {
    Fault::invalid(format!(
        "{table} is the source itself; rows cannot be moved into it"
    ))
}
