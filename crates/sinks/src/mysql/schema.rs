//! Reading a table's description from the information schema.

use mysql_async::prelude::FromValue;
use mysql_async::{Column as ResultColumn, Row};
use windrow_core::TableName;

use super::column::{Column, Kind};
use super::fault::{Scope, Trouble};
use super::line::Line;
use super::literal::push_text;
use super::table::{Facts, NO_VALUE_YET, OURS, Unique};
use crate::sql::quote::backtick::push_table;

/// Reads a table; `None`: there is none of that name. A read of no rows comes first: its lock keeps the table as it is until
/// all has been read.
///
/// # Errors
/// As the server refuses, or the connection is lost.
pub(super) async fn read(line: &mut Line, name: &TableName) -> Result<Option<Facts>, Trouble> {
    let mut held = "START TRANSACTION; ".to_owned();
    push_guard(&mut held, name);
    let (results, ended) = line.results(&held).await;
    let print = match ended {
        Ok(()) => results.first().map(|columns| print(columns)),
        Err(Trouble::Refused(refusal)) if refusal.scope == Scope::Statement => {
            match refusal.number {
                // No such table, or no such database.
                1146 | 1049 => {
                    line.say("ROLLBACK").await?;
                    return Ok(None);
                }
                // Who may insert but not select gets no guard.
                1142 | 1143 => None,
                _ => {
                    line.say("ROLLBACK").await?;
                    return Err(Trouble::Refused(refusal));
                }
            }
        }
        Err(trouble) => return Err(trouble),
    };
    let facts = describe(line, name, print).await;
    line.say("ROLLBACK").await?;
    facts
}

/// Appends a query for no row of a table, with all of its columns.
pub(super) fn push_guard(sql: &mut String, name: &TableName) {
    sql.push_str("SELECT * FROM ");
    push_table(sql, name);
    sql.push_str(" LIMIT 0");
}

/// What a result's columns look like: it changes with the names, types and keys of the table's columns.
pub(super) fn print(columns: &[ResultColumn]) -> Box<str> {
    let mut print = String::new();
    for column in columns {
        print.push_str(&format!(
            "{}:{:?}:{}:{}:{}:{};",
            column.name_str(),
            column.column_type(),
            column.flags().bits(),
            column.character_set(),
            column.column_length(),
            column.decimals()
        ));
    }
    print.into()
}

async fn describe(
    line: &mut Line,
    name: &TableName,
    print: Option<Box<str>>,
) -> Result<Option<Facts>, Trouble> {
    let table = line.rows(&about("TABLES", "TABLE_TYPE, TABLE_COMMENT, (SELECT e.TRANSACTIONS FROM information_schema.ENGINES e WHERE e.ENGINE = x.ENGINE)", "TABLE", name, "")).await?;
    let Some(table) = table.first() else {
        return Ok(None);
    };
    let columns = line
        .rows(&about(
            "COLUMNS",
            COLUMNS,
            "TABLE",
            name,
            " ORDER BY ORDINAL_POSITION",
        ))
        .await?;
    let mut columns: Vec<Column> = columns.iter().map(column).collect();
    if line.server.mariadb {
        let checks = "CHECK_CLAUSE";
        let rows = line
            .rows(&about("CHECK_CONSTRAINTS", checks, "CONSTRAINT", name, ""))
            .await?;
        mark_json(&mut columns, &rows);
    }
    let indexes = line
        .rows(&about(
            "STATISTICS",
            INDEXES,
            "TABLE",
            name,
            " AND NON_UNIQUE = 0 ORDER BY INDEX_NAME <> 'PRIMARY', INDEX_NAME, SEQ_IN_INDEX",
        ))
        .await?;
    let more = line
        .rows(&format!(
            "SELECT EXISTS ({}), EXISTS ({})",
            about("TRIGGERS", "1", "EVENT_OBJECT", name, ""),
            about(
                "KEY_COLUMN_USAGE",
                "1",
                "TABLE",
                name,
                " AND REFERENCED_TABLE_NAME = TABLE_NAME AND REFERENCED_TABLE_SCHEMA = TABLE_SCHEMA"
            ),
        ))
        .await?;
    let has_triggers = more.first().is_some_and(|row| number(row, 0) > 0);
    let own_parent = more.first().is_some_and(|row| number(row, 1) > 0);
    let transactional = text(table, 2) == "YES";
    let plain = text(table, 0) == "BASE TABLE";
    let (uniques, hidden_unique) = uniques(&columns, &indexes);
    Ok(Some(Facts {
        name: name.clone(),
        columns,
        uniques,
        hidden_unique,
        transactional: transactional || !plain,
        fuses: plain && transactional && !has_triggers && !own_parent,
        has_triggers,
        ours: text(table, 1) == OURS,
        print,
    }))
}

const COLUMNS: &str = "COLUMN_NAME, DATA_TYPE, COLUMN_TYPE, IS_NULLABLE, EXTRA, COLUMN_DEFAULT, CHARACTER_SET_NAME, \
    COLLATION_NAME, COALESCE(CHARACTER_MAXIMUM_LENGTH, DATETIME_PRECISION, 0), COALESCE(NUMERIC_PRECISION, 0), \
    COALESCE(NUMERIC_SCALE, 0), COLUMN_COMMENT";

const INDEXES: &str = "INDEX_NAME, COLUMN_NAME, SUB_PART";

/// A query for what a view of the information schema says of a table. On servers that tell names apart by case only the one
/// spelled alike counts.
pub(super) fn about(view: &str, what: &str, of: &str, name: &TableName, more: &str) -> String {
    let (schema_column, table_column) = match of {
        "CONSTRAINT" => ("CONSTRAINT_SCHEMA", "TABLE_NAME"),
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

fn column(row: &Row) -> Column {
    let (data_type, column_type) = (text(row, 1), text(row, 2));
    let extra = text(row, 4).to_ascii_lowercase();
    let not_null = text(row, 3) == "NO";
    let default = get::<String>(row, 5).filter(|default| default != "NULL");
    let kind = Kind::of(&data_type, &column_type, number(row, 9), number(row, 10));
    let length = match kind {
        // Characters of TEXT are not counted, its bytes are: too few are no danger.
        Kind::Json | Kind::Blob => 0,
        _ => number(row, 8),
    };
    Column {
        name: text(row, 0).into(),
        kind,
        not_null,
        auto: extra.contains("auto_increment"),
        generated: extra.contains("virtual")
            || extra.contains("stored generated")
            || extra.contains("persistent"),
        null_by_default: !not_null && default.is_none(),
        charset: text(row, 6).into(),
        collation: text(row, 7).into(),
        length,
        no_value_yet: text(row, 11) == NO_VALUE_YET,
    }
}

/// MariaDB's JSON is text with a check.
fn mark_json(columns: &mut [Column], checks: &[Row]) {
    for check in checks {
        let clause = text(check, 0);
        let name = clause
            .strip_prefix("json_valid(`")
            .and_then(|rest| rest.strip_suffix("`)"));
        if let Some(column) = columns.iter_mut().find(|c| Some(&*c.name) == name) {
            column.kind = Kind::Json;
            column.length = 0;
        }
    }
}

fn uniques(columns: &[Column], rows: &[Row]) -> (Vec<Unique>, bool) {
    let mut indexes: Vec<(String, Option<Vec<usize>>)> = Vec::new();
    for row in rows {
        let name = text(row, 0);
        if indexes.last().is_none_or(|(last, _)| *last != name) {
            indexes.push((name, Some(Vec::new())));
        }
        let column = text(row, 1);
        let place = columns.iter().position(|c| *c.name == *column);
        let whole = get::<u64>(row, 2).is_none();
        if let Some((_, places)) = indexes.last_mut() {
            match (places.as_mut(), place.filter(|_| whole)) {
                (Some(places), Some(place)) => places.push(place),
                _ => *places = None,
            }
        }
    }
    let hidden = indexes.iter().any(|(_, places)| places.is_none());
    let unique = |(name, places): (String, Option<Vec<usize>>)| {
        Some(Unique {
            columns: places?.into(),
            primary: name == "PRIMARY",
            name: name.into(),
        })
    };
    (indexes.into_iter().filter_map(unique).collect(), hidden)
}

pub(super) fn get<T: FromValue>(row: &Row, place: usize) -> Option<T> {
    row.get_opt::<Option<T>, _>(place)?.ok().flatten()
}

fn text(row: &Row, place: usize) -> String {
    get(row, place).unwrap_or_default()
}

fn number(row: &Row, place: usize) -> usize {
    get(row, place).unwrap_or_default()
}
