//! The text of the tables that Windrow makes.

use windrow_database::quote::{push_ident, push_idents};

use super::table::Table;
use crate::values::column::ColumnType;

/// Stands in the text of tables that Windrow made; SQLite keeps it in `sqlite_schema`.
const MARK: &str = "/* windrow */";

/// The text of a table that Windrow makes. SQLite stores it as it is, adds a column where
/// [`definition_of`] expects it, and so [`Table::made`] can tell by comparing whether somebody else
/// has altered it.
pub(crate) fn definition<'a>(
    table: &str,
    columns: impl Iterator<Item = (&'a str, ColumnType)>,
    primary: &[&str],
) -> String {
    let mut sql = String::from("CREATE TABLE ");
    push_ident(&mut sql, table);
    sql.push_str(" (");
    sql.push_str(MARK);
    for (i, (name, column_type)) in columns.enumerate() {
        sql.push_str(if i == 0 { " " } else { ", " });
        push_ident(&mut sql, name);
        sql.push(' ');
        sql.push_str(column_type.sql());
        // A single INTEGER is the row's own number, which SQLite assigns where it is NULL.
        let numbers_itself = primary.len() == 1 && column_type == ColumnType::Integer;
        if primary.contains(&name) && !numbers_itself {
            sql.push_str(" NOT NULL");
        }
    }
    if !primary.is_empty() {
        sql.push_str(", PRIMARY KEY (");
        push_idents(&mut sql, primary);
        sql.push(')');
    }
    sql.push(')');
    sql
}

/// The text that a table would have if Windrow had made it.
pub(crate) fn definition_of(table: &Table) -> String {
    let columns = table.columns.iter().map(|c| (&*c.name, c.column_type));
    let primary: Vec<&str> = table.primary_names().map(|n| &**n).collect();
    definition(&table.name, columns, &primary)
}
