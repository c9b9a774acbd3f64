//! Faults of shapes and rows that do not fit their tables, in the same words for all databases.

use windrow_core::{Fault, FaultClass, Name, Shape, TableName};

/// Returns the fault of a table that does not exist.
pub fn no_table(table: &TableName) -> Fault {
    let message = format!("no such table: {table}");
    Fault::new(FaultClass::NoTable, "42P01", message).with_table(Some(&*table.table))
}

/// Returns the fault of a column that does not exist.
pub fn no_column(table: &TableName, column: &Name) -> Fault {
    let message = format!("table {table} has no column named {column}");
    Fault::new(FaultClass::NoColumn, "42703", message)
        .with_table(Some(&*table.table))
        .with_column(Some(&**column))
}

/// Returns the fault of a column that a shape names twice.
pub fn named_twice(column: &Name) -> Fault {
    let message = format!("column {column} is named twice");
    Fault::new(FaultClass::Invalid, "42701", message)
}

/// Returns the fault of a write whose table was altered at each attempt.
pub fn keeps_changing() -> Fault {
    Fault::new(
        FaultClass::Conflict,
        "55006",
        "the table was altered again and again while this write was under way",
    )
}

/// Returns the fault of a row with too many or too few values. `key` are the columns of the key.
pub fn wrong_length<'n>(
    shape: &Shape,
    table: &TableName,
    key: impl Iterator<Item = &'n Name>,
    given: usize,
) -> Fault {
    let columns = shape.columns.len();
    if shape.has_key_values() && given >= columns {
        let names: Vec<&str> = key.map(|name| &**name).collect();
        return Fault::invalid(format!(
            "the key of table {table} is ({}): {} values are needed, {} given",
            names.join(", "),
            names.len(),
            given - columns
        ));
    }
    Fault::invalid(format!(
        "a row for table {table} has {given} values for {columns} columns"
    ))
}
