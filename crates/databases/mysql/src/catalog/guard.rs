//! Checks that a table is as described, before statements that rely on it.

use mysql_async::Column;
use windrow_core::TableName;
use windrow_database::quote::backtick::push_table;

use super::information::about;
use super::table::Print;
use crate::session::QueryResult;
use crate::values::cell::text;

/// Appends queries for a table's columns and its definition. The lock of the first one prevents
/// changes of the table until the end of the transaction.
pub(crate) fn push(sql: &mut String, name: &TableName) {
    sql.push_str("SELECT * FROM ");
    push_table(sql, name);
    sql.push_str(" LIMIT 0; SHOW CREATE TABLE ");
    push_table(sql, name);
}

/// The number of results of [`push`].
pub(crate) const RESULTS: usize = 2;

/// Appends the queries of [`push`], and one for the table's triggers.
pub(crate) fn push_all(sql: &mut String, name: &TableName) {
    push(sql, name);
    let what = "TRIGGER_NAME, EVENT_MANIPULATION, ACTION_STATEMENT, SQL_MODE, ACTION_TIMING";
    let order = " ORDER BY TRIGGER_NAME";
    sql.push_str("; ");
    sql.push_str(&about("TRIGGERS", what, "EVENT_OBJECT", name, order));
}

/// Returns the fingerprint of a table, from the results of [`push_all`].
pub(crate) fn print(seen: &[QueryResult]) -> Option<Print> {
    let triggers = seen.get(RESULTS)?;
    let rows = triggers
        .rows
        .iter()
        .flat_map(|row| (0..5).map(|at| text(row, at) + "\n"));
    Some(Print {
        table: table(seen)?.into(),
        triggers: rows.collect::<String>().into(),
    })
}

/// Returns true if a table is as described, by the results of [`push`] or of [`push_all`].
pub(crate) fn holds(expected: &Print, seen: &[QueryResult]) -> bool {
    match seen.len() {
        RESULTS => table(seen).as_deref() == Some(&*expected.table),
        _ => print(seen).as_ref() == Some(expected),
    }
}

fn table(seen: &[QueryResult]) -> Option<String> {
    let (columns, definition) = (seen.first()?, seen.get(1)?.rows.first()?);
    let definition = text(definition, 1);
    // The next AUTO_INCREMENT value is no change.
    let counted = definition.rsplit_once(" AUTO_INCREMENT=");
    let definition = match counted {
        Some((before, behind)) => {
            let rest = behind.trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{before}{rest}")
        }
        None => definition,
    };
    Some(columns.columns.iter().map(column).collect::<String>() + &definition)
}

/// Returns a text that changes with the name, type and keys of a column.
fn column(column: &Column) -> String {
    format!(
        "{}:{:?}:{}:{}:{}:{};",
        column.name_str(),
        column.column_type(),
        column.flags().bits(),
        column.character_set(),
        column.column_length(),
        column.decimals()
    )
}
