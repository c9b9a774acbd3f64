//! Writes the text of the tables that Windrow creates.

use windrow_database::quote::{push_ident, push_idents};

use crate::values::column::ColumnType;

/// The mark of tables that Windrow created, before the first column. SQLite keeps it in
/// `sqlite_schema`, also if the table is altered.
const MARK: &str = "(/* windrow */ ";

/// The type and default of the column for the moment of each row.
const MOMENT: &str = " TIMESTAMPTZ DEFAULT (strftime('%Y-%m-%dT%H:%M:%f000+00:00', 'now'))";

/// Returns the text of a table that Windrow creates. `moment`: the column for the moment of each
/// row.
pub(crate) fn definition<'a>(
    table: &str,
    columns: impl Iterator<Item = (&'a str, ColumnType)>,
    moment: Option<&str>,
    primary: &[&str],
) -> String {
    let mut sql = String::from("CREATE TABLE ");
    push_ident(&mut sql, table);
    sql.push(' ');
    sql.push_str(MARK);
    for (i, (name, column_type)) in columns.enumerate() {
        sql.push_str(if i == 0 { "" } else { ", " });
        push_ident(&mut sql, name);
        // Without a declared type values are stored as they come.
        if column_type != ColumnType::Any {
            sql.push(' ');
            sql.push_str(column_type.sql());
        }
        // A single INTEGER is the row's own number, which SQLite assigns if it is NULL.
        let numbers_itself = primary.len() == 1 && column_type == ColumnType::Integer;
        if primary.contains(&name) && !numbers_itself {
            sql.push_str(" NOT NULL");
        }
    }
    if let Some(moment) = moment {
        sql.push_str(", ");
        push_ident(&mut sql, moment);
        sql.push_str(MOMENT);
    }
    if !primary.is_empty() {
        sql.push_str(", PRIMARY KEY (");
        push_idents(&mut sql, primary);
        sql.push(')');
    }
    sql.push(')');
    sql
}

/// Returns true for the text of a table that Windrow created, as SQLite keeps it.
pub(crate) fn is_marked(table: &str, sql: &str) -> bool {
    let mut made = String::from("CREATE TABLE ");
    push_ident(&mut made, table);
    made.push(' ');
    made.push_str(MARK);
    sql.starts_with(&made)
}
