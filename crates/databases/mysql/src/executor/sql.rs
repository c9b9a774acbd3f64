//! Writes the texts of statements.

use mysql_async::Value as Cell;

use windrow_database::quote::backtick::{push_ident, push_table};

use super::plan::{Action, Compiled};
use crate::catalog::table::Facts;
use crate::values::column::{Column, Kind};
use crate::values::literal;

/// The behaviour of an insert if a row with the key exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IfExists {
    /// The statement fails.
    Fail,
    /// The statement changes the row.
    Change,
    /// The statement warns, as for all other errors.
    Warn,
}

impl IfExists {
    /// Returns the behaviour of writes of an action.
    pub(crate) fn of(action: Action) -> Self {
        match action {
            Action::Upsert => Self::Change,
            _ => Self::Fail,
        }
    }
}

/// Writes an insert of so many rows that returns the columns `back`. Each of several rows has a
/// moment of its own if a unique key contains it.
pub(crate) fn insert(
    compiled: &Compiled,
    if_exists: IfExists,
    rows: usize,
    back: &[usize],
) -> String {
    let facts = &compiled.table.facts;
    let width = compiled.columns.len();
    let mut sql = String::with_capacity(96 + width * 24 + rows * (2 * width + 3));
    sql.push_str(match if_exists {
        IfExists::Warn => "INSERT IGNORE INTO ",
        IfExists::Fail | IfExists::Change => "INSERT INTO ",
    });
    push_table(&mut sql, &compiled.shape.table);
    sql.push_str(" (");
    push_columns(&mut sql, facts, &compiled.columns);
    let moments = if rows > 1 { &*compiled.moments } else { &[] };
    for place in moments {
        sql.push_str(", ");
        push_column(&mut sql, facts, *place);
    }
    sql.push_str(") VALUES ");
    for row in 0..rows {
        sql.push_str(if row > 0 { ",(" } else { "(" });
        push_marks(&mut sql, facts, &compiled.columns);
        for _ in moments {
            sql.push_str(&format!(",NOW(6) + INTERVAL {row} MICROSECOND"));
        }
        sql.push(')');
    }
    if if_exists == IfExists::Change {
        push_conflict(&mut sql, compiled);
    }
    push_returning(&mut sql, facts, back);
    sql
}

/// Appends the change of an existing row. The statement fails unless that row has the upsert's
/// key: the key is set to itself, under a condition that is a number out of range if the row was
/// found by another key.
fn push_conflict(sql: &mut String, compiled: &Compiled) {
    let facts = &compiled.table.facts;
    let Some(own) = compiled.key.first() else {
        return;
    };
    sql.push_str(" ON DUPLICATE KEY UPDATE ");
    push_column(sql, facts, *own);
    sql.push_str(" = IF(18446744073709551615 + (NOT (");
    for (number, place) in compiled.key.iter().enumerate() {
        sql.push_str(if number > 0 { " AND " } else { "" });
        push_column(sql, facts, *place);
        sql.push_str(" <=> VALUES(");
        push_column(sql, facts, *place);
        sql.push(')');
    }
    sql.push_str(")), ");
    push_columns(sql, facts, &[*own, *own]);
    sql.push(')');
    let others = compiled.columns.iter();
    for place in others.filter(|place| !compiled.key.contains(place)) {
        sql.push_str(", ");
        push_column(sql, facts, *place);
        sql.push_str(" = VALUES(");
        push_column(sql, facts, *place);
        sql.push(')');
    }
}

/// Writes an update of one row. `columns` change, in the order of their parameters.
pub(crate) fn update(compiled: &Compiled, columns: &[usize]) -> String {
    let facts = &compiled.table.facts;
    let mut sql = "UPDATE ".to_owned();
    push_table(&mut sql, &compiled.shape.table);
    sql.push_str(" SET ");
    for (number, place) in columns.iter().enumerate() {
        sql.push_str(if number > 0 { ", " } else { "" });
        push_column(&mut sql, facts, *place);
        sql.push_str(" = ");
        sql.push_str(stored_mark(facts, *place));
    }
    push_where(&mut sql, compiled);
    sql
}

/// Writes a delete of so many rows that returns the columns `back`.
pub(crate) fn delete(compiled: &Compiled, back: &[usize], rows: usize) -> String {
    let mut sql = String::with_capacity(128 + rows * 3 * compiled.key.len());
    sql.push_str("DELETE FROM ");
    push_table(&mut sql, &compiled.shape.table);
    push_rows(&mut sql, compiled, rows);
    push_returning(&mut sql, &compiled.table.facts, back);
    sql
}

/// Writes a read of so many rows, followed by its locking clause.
pub(crate) fn select(compiled: &Compiled, columns: &[usize], rows: usize, lock: &str) -> String {
    let mut sql = String::with_capacity(128 + rows * 3 * compiled.key.len());
    push_select(&mut sql, compiled, columns);
    push_rows(&mut sql, compiled, rows);
    sql.push_str(lock);
    sql
}

/// Appends the condition that finds rows by their keys.
fn push_rows(sql: &mut String, compiled: &Compiled, rows: usize) {
    match rows {
        1 => push_where(sql, compiled),
        _ => push_in(sql, compiled, rows),
    }
}

/// Writes an update of many rows with its values in the text: the columns of a derived table have
/// the types of its literals, while the server would guess those of parameters before the values
/// are known. `rows` are the new values, followed by the key's.
pub(crate) fn update_many(compiled: &Compiled, mariadb: bool, rows: &[&[Cell]]) -> String {
    let facts = &compiled.table.facts;
    let mut sql = "UPDATE (".to_owned();
    for (number, row) in rows.iter().enumerate() {
        sql.push_str(match number {
            0 => "SELECT ",
            1 if mariadb => " UNION ALL VALUES (",
            1 => " UNION ALL VALUES ROW(",
            _ if mariadb => ",(",
            _ => ",ROW(",
        });
        for (at, (cell, place)) in row.iter().zip(&compiled.row).enumerate() {
            let binary = facts
                .columns
                .get(*place)
                .is_some_and(|c| c.kind.is_binary());
            sql.push_str(if at > 0 { "," } else { "" });
            literal::push(&mut sql, cell, binary);
            if number == 0 {
                sql.push_str(&format!(" AS w{at}"));
            }
        }
        sql.push_str(if number > 0 { ")" } else { "" });
    }
    sql.push_str(") AS w STRAIGHT_JOIN ");
    push_table(&mut sql, &compiled.shape.table);
    sql.push_str(" AS t ON ");
    let given = compiled.columns.len();
    for (number, place) in compiled.key.iter().enumerate() {
        sql.push_str(if number > 0 { " AND t." } else { "t." });
        push_column(&mut sql, facts, *place);
        sql.push_str(" = ");
        push_joined(&mut sql, facts.columns.get(*place), given + number);
    }
    sql.push_str(" SET ");
    for (number, place) in compiled.columns.iter().enumerate() {
        sql.push_str(if number > 0 { ", t." } else { "t." });
        push_column(&mut sql, facts, *place);
        sql.push_str(&format!(" = w.w{number}"));
    }
    sql
}

/// Appends a column of the derived table with the type and collation of the column that it is
/// compared with: the server uses an index only if both are equal.
fn push_joined(sql: &mut String, column: Option<&Column>, number: usize) {
    let name = format!("w.w{number}");
    match column {
        Some(column) if matches!(column.kind, Kind::Text | Kind::Char | Kind::Enum) => {
            sql.push_str(&format!("CONVERT({name} USING "));
            push_word(sql, &column.charset);
            sql.push_str(") COLLATE ");
            push_word(sql, &column.collation);
        }
        Some(column) => match column.kind {
            Kind::Decimal(digits, scale) => {
                sql.push_str(&format!("CAST({name} AS DECIMAL({digits},{scale}))"));
            }
            Kind::Date => sql.push_str(&format!("CAST({name} AS DATE)")),
            Kind::DateTime | Kind::Timestamp => {
                sql.push_str(&format!("CAST({name} AS DATETIME({}))", column.length));
            }
            _ => sql.push_str(&name),
        },
        None => sql.push_str(&name),
    }
}

/// Appends a word of the server's own, such as a collation: letters, digits and underscores.
fn push_word(sql: &mut String, word: &str) {
    sql.extend(
        word.chars()
            .filter(|c| c.is_ascii_alphanumeric() || *c == '_'),
    );
}

fn push_select(sql: &mut String, compiled: &Compiled, columns: &[usize]) {
    sql.push_str("SELECT ");
    if columns.is_empty() {
        sql.push('1');
    }
    push_columns(sql, &compiled.table.facts, columns);
    sql.push_str(" FROM ");
    push_table(sql, &compiled.shape.table);
}

fn push_where(sql: &mut String, compiled: &Compiled) {
    for (number, place) in compiled.key.iter().enumerate() {
        sql.push_str(if number > 0 { " AND " } else { " WHERE " });
        push_column(sql, &compiled.table.facts, *place);
        sql.push_str(" = ");
        sql.push_str(&mark(compiled.table.columns.get(*place)));
    }
}

fn push_in(sql: &mut String, compiled: &Compiled, rows: usize) {
    let several = compiled.key.len() > 1;
    sql.push_str(if several { " WHERE (" } else { " WHERE " });
    push_columns(sql, &compiled.table.facts, &compiled.key);
    sql.push_str(if several { ") IN (" } else { " IN (" });
    let marks = compiled
        .key
        .iter()
        .map(|place| mark(compiled.table.columns.get(*place)));
    let marks = marks.collect::<Vec<_>>().join(",");
    for row in 0..rows {
        sql.push_str(if row > 0 { "," } else { "" });
        sql.push_str(if several { "(" } else { "" });
        sql.push_str(&marks);
        sql.push_str(if several { ")" } else { "" });
    }
    sql.push(')');
}

/// Returns the parameter of a value that is compared with a column. The server would compare text
/// with exact numbers as doubles.
fn mark(column: Option<&Column>) -> String {
    match column.map(|column| column.kind) {
        Some(Kind::Decimal(digits, scale)) => format!("CAST(? AS DECIMAL({digits},{scale}))"),
        _ => "?".to_owned(),
    }
}

fn push_returning(sql: &mut String, facts: &Facts, back: &[usize]) {
    if !back.is_empty() {
        sql.push_str(" RETURNING ");
        push_columns(sql, facts, back);
    }
}

fn push_marks(sql: &mut String, facts: &Facts, places: &[usize]) {
    for (number, place) in places.iter().enumerate() {
        sql.push_str(if number > 0 { "," } else { "" });
        sql.push_str(stored_mark(facts, *place));
    }
}

/// Returns the parameter of a value that is stored. All parameters have the connection's character
/// set.
///
/// MySQL gives a parameter another type where a value asks for it, and keeps that type: behind the
/// text `1e30` all digits of a DECIMAL go through a double, and behind a number the bytes `1e1` are
/// stored as `10`. A parameter of CAST keeps the type that is named.
fn stored_mark(facts: &Facts, place: usize) -> &'static str {
    match facts.columns.get(place).map(|column| column.kind) {
        Some(Kind::Vector) => "CAST(? AS BINARY)",
        Some(kind) if facts.retypes && kind.is_binary() => "CAST(? AS BINARY)",
        Some(kind) if facts.retypes && kind.is_numeric() => "CAST(? AS CHAR)",
        _ => "?",
    }
}

fn push_columns(sql: &mut String, facts: &Facts, places: &[usize]) {
    for (number, place) in places.iter().enumerate() {
        sql.push_str(if number > 0 { ", " } else { "" });
        push_column(sql, facts, *place);
    }
}

fn push_column(sql: &mut String, facts: &Facts, place: usize) {
    push_ident(
        sql,
        facts.columns.get(place).map_or("", |column| &column.name),
    );
}
