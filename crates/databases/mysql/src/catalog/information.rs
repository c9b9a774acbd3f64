//! Writes queries of the information schema.

use windrow_core::TableName;

use crate::values::literal::push_text;

/// Writes a query of a view of the information schema for a table. On servers with case-sensitive
/// names the table must have exactly this name.
pub(crate) fn about(view: &str, what: &str, of: &str, name: &TableName, more: &str) -> String {
    let (schema_column, table_column) = match of {
        "CONSTRAINT" => ("CONSTRAINT_SCHEMA", "TABLE_NAME"),
        "REFERENCED" => ("UNIQUE_CONSTRAINT_SCHEMA", "REFERENCED_TABLE_NAME"),
        "EVENT_OBJECT" => ("EVENT_OBJECT_SCHEMA", "EVENT_OBJECT_TABLE"),
        _ => ("TABLE_SCHEMA", "TABLE_NAME"),
    };
    let mut sql =
        format!("SELECT {what} FROM information_schema.{view} x WHERE {schema_column} = ");
    match &name.schema {
        Some(schema) => push_text(&mut sql, schema),
        None => sql.push_str("DATABASE()"),
    }
    sql.push_str(&format!(" AND {table_column} = "));
    push_text(&mut sql, &name.table);
    sql.push_str(&format!(
        " AND (@@lower_case_table_names > 0 OR BINARY {table_column} = BINARY "
    ));
    push_text(&mut sql, &name.table);
    sql.push(')');
    sql.push_str(more);
    sql
}
