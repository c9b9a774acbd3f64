//! Tables and columns that are made, and widened, from the rows that name them.
//!
//! Each change is one statement, which MySQL commits by itself. Two connections that want the same
//! change do not hinder each other: who comes second finds it done. Only what Windrow made is ever
//! given another type, and only where every value that is there stays what it is.

use std::borrow::Cow;

use windrow_core::{Fault, Holds, Name, TableName};
use windrow_database::demand::Demand;
use windrow_database::infer::{self, Change, Existing, SeenColumn, Times};
use windrow_database::quote::backtick::{push_ident, push_table};

use super::schema;
use super::table::{Facts, NO_VALUE_YET, OURS};
use crate::fault::Trouble;
use crate::session::Session;
use crate::values::column::{Column, Kind};
use crate::values::literal::push_text;

/// How often a change is tried that somebody else is making too.
const TRIES: usize = 3;

/// Makes or changes a table.
///
/// # Errors
/// As the server refuses, or the connection is lost.
pub(crate) async fn grow(
    session: &mut Session,
    name: &TableName,
    demand: &Demand,
) -> Result<(), Trouble> {
    // DDL is its own transaction, so that a lock of the table would not last from the look to the
    // change: another connection could have widened the column in between, and this one would
    // make it narrower.
    let lock = lock_name(name);
    session.say(&format!("DO GET_LOCK({lock}, 5)")).await?;
    let grown = grow_locked(session, name, demand).await;
    if session.is_usable() {
        session.say(&format!("DO RELEASE_LOCK({lock})")).await?;
    }
    grown
}

/// The name of the lock under which connections change a table, as SQL: names of locks are short.
fn lock_name(name: &TableName) -> String {
    let mut sql = "CONCAT('windrow ', LEFT(SHA2(".to_owned();
    push_text(&mut sql, &name.to_string());
    sql.push_str(", 256), 40))");
    sql
}

async fn grow_locked(
    session: &mut Session,
    name: &TableName,
    demand: &Demand,
) -> Result<(), Trouble> {
    let mut tries = TRIES;
    loop {
        tries -= 1;
        match attempt(session, name, demand).await {
            // The table or the column is there, or gone, already.
            Err(Trouble::Refused(refusal))
                if matches!(refusal.number, 1050 | 1060 | 1091 | 1146) && tries > 0 => {}
            Err(Trouble::Refused(mut refusal)) => {
                refusal.fault.message = format!(
                    "the table {name} cannot be fitted to its rows: {}",
                    refusal.fault.message
                )
                .into();
                return Err(Trouble::Refused(refusal));
            }
            other => return other,
        }
    }
}

async fn attempt(session: &mut Session, name: &TableName, demand: &Demand) -> Result<(), Trouble> {
    let sql = match schema::read(session, name).await? {
        None if !demand.new.is_wanted() => return Ok(()),
        None => match creation(name, demand, session.server.mariadb) {
            Some(sql) => sql,
            None => return Err(Trouble::of(untyped(name))),
        },
        Some(facts) => {
            let changes = changes(&facts, demand);
            if changes.is_empty() {
                return Ok(());
            }
            let mut sql = "ALTER TABLE ".to_owned();
            push_table(&mut sql, name);
            sql.push(' ');
            sql.push_str(&changes.join(", "));
            sql
        }
    };
    session.say(&sql).await?;
    tracing::info!(sql, "changed");
    Ok(())
}

fn untyped(name: &TableName) -> Fault {
    Fault::new(
        windrow_core::FaultClass::NoTable,
        "42P01",
        format!("no such table: {name}; it cannot be created from a row that names no column"),
    )
}

fn creation(name: &TableName, demand: &Demand, mariadb: bool) -> Option<String> {
    let columns = demand.seen_columns.columns();
    if columns.is_empty() {
        return None;
    }
    let primary = demand.new.primary(&demand.seen_columns);
    let mut sql = "CREATE TABLE ".to_owned();
    push_table(&mut sql, name);
    sql.push_str(" (");
    for (place, seen_column) in columns.iter().enumerate() {
        sql.push_str(if place > 0 { ", " } else { "" });
        push_definition(&mut sql, seen_column, primary.contains(&seen_column.name));
    }
    for (place, name) in primary.iter().enumerate() {
        sql.push_str(if place > 0 { ", " } else { ", PRIMARY KEY (" });
        push_ident(&mut sql, name);
    }
    sql.push_str(if primary.is_empty() { "" } else { ")" });
    // What is equal is the same: neither case nor blanks at the end make two keys one.
    let collation = if mariadb {
        "utf8mb4_nopad_bin"
    } else {
        "utf8mb4_0900_bin"
    };
    sql.push_str(&format!(
        ") ENGINE = InnoDB, CHARACTER SET utf8mb4, COLLATE {collation}, COMMENT '{OURS}'"
    ));
    Some(sql)
}

fn push_definition(sql: &mut String, seen_column: &SeenColumn, in_key: bool) {
    push_ident(sql, &seen_column.name);
    sql.push(' ');
    sql.push_str(&match seen_column.kind {
        // No index takes texts without a limit.
        Some(infer::Kind::Text | infer::Kind::Json) if in_key => "VARCHAR(255)".into(),
        Some(infer::Kind::Bytes) if in_key => "VARBINARY(255)".into(),
        kind => type_of(kind, seen_column.double),
    });
    if seen_column.kind.is_none() {
        sql.push_str(" COMMENT '");
        sql.push_str(NO_VALUE_YET);
        sql.push('\'');
    }
}

fn type_of(kind: Option<infer::Kind>, double: bool) -> Cow<'static, str> {
    Cow::Borrowed(match kind {
        Some(infer::Kind::Bool) => "BOOLEAN",
        Some(infer::Kind::Int) => "BIGINT",
        Some(infer::Kind::Number) if double => "DOUBLE",
        Some(infer::Kind::Number) => "DECIMAL(65,30)",
        Some(infer::Kind::Json) => "JSON",
        Some(infer::Kind::Bytes) => "LONGBLOB",
        Some(infer::Kind::Text) | None => "LONGTEXT",
        Some(infer::Kind::Own(holds)) => return own_type(holds),
    })
}

fn own_type(holds: Holds) -> Cow<'static, str> {
    Cow::Borrowed(match holds {
        Holds::Bool => "BOOLEAN",
        Holds::Int2 => "SMALLINT",
        Holds::Int4 => "INT",
        Holds::Int8 => "BIGINT",
        // A FLOAT is shown with six digits.
        Holds::Float4 | Holds::Float8 => "DOUBLE",
        Holds::Decimal(digits @ ..=65, scale @ ..=30) => {
            return Cow::Owned(format!("DECIMAL({digits},{scale})"));
        }
        Holds::Text | Holds::Decimal(..) => "LONGTEXT",
        Holds::Json => "JSON",
        Holds::Bytes => "LONGBLOB",
        Holds::Date => "DATE",
        Holds::Time => "TIME(6)",
        // In UTC where there was a zone; a TIMESTAMP ends in 2038.
        Holds::Timestamp | Holds::Timestamptz => "DATETIME(6)",
        Holds::Uuid => "CHAR(36)",
    })
}

/// What an existing table lacks, as the parts of one ALTER TABLE.
pub(crate) fn changes(facts: &Facts, demand: &Demand) -> Vec<String> {
    let column = |name: &Name| {
        facts
            .place_of(name)
            .and_then(|place| facts.columns.get(place))
    };
    let mut changes = Vec::new();
    for seen_column in demand.seen_columns.columns() {
        if seen_column.kind.is_none() && column(&seen_column.name).is_none() {
            changes.push(addition("ADD COLUMN", seen_column));
        }
        // Whole numbers are among those that a double rounds.
        let rounds = column(&seen_column.name).is_some_and(|c| c.kind == Kind::Double)
            && !seen_column.double;
        if facts.ours
            && rounds
            && matches!(
                seen_column.kind,
                Some(infer::Kind::Int | infer::Kind::Number)
            )
        {
            changes.push(modification(&seen_column.name, "DECIMAL(65,30)"));
        }
    }
    let existing = |name: &Name| {
        let seen_column = demand
            .seen_columns
            .columns()
            .iter()
            .find(|s| s.name == *name);
        let zoned = seen_column.is_some_and(|s| s.times == Times::All(Holds::Timestamptz));
        match existing(facts, column(name)) {
            // A zone is no matter of the column's.
            Existing::Of(infer::Kind::Own(Holds::Timestamp)) if zoned => Existing::Fixed,
            existing => existing,
        }
    };
    for change in demand.seen_columns.changes(existing) {
        match change {
            Change::Add(name, kind) => {
                let seen_column = demand
                    .seen_columns
                    .columns()
                    .iter()
                    .find(|s| s.name == name);
                let double = seen_column.is_some_and(|s| s.double);
                let verb = if column(&name).is_some() {
                    "MODIFY COLUMN"
                } else {
                    "ADD COLUMN"
                };
                let seen_column = SeenColumn {
                    name,
                    kind: Some(kind),
                    double,
                    times: Times::Nothing,
                };
                changes.push(addition(verb, &seen_column));
            }
            Change::Widen(name, kind) => {
                let exact = match (column(&name).map(|c| c.kind), kind) {
                    (Some(Kind::Int), infer::Kind::Number) => Some("DECIMAL(65,30)"),
                    (
                        Some(Kind::Int | Kind::Json | Kind::Date | Kind::DateTime | Kind::Time),
                        infer::Kind::Text,
                    ) => Some("LONGTEXT"),
                    _ => None,
                };
                changes.extend(exact.map(|to| modification(&name, to)));
            }
        }
    }
    changes
}

/// What a column holds that may be given a wider type.
pub(crate) fn grows(facts: &Facts, column: &Column) -> Option<infer::Kind> {
    match existing(facts, Some(column)) {
        Existing::Of(kind) => Some(kind),
        Existing::Missing | Existing::Fixed => None,
    }
}

/// What may be done to a column. One that holds nothing yet counts as missing.
fn existing(facts: &Facts, column: Option<&Column>) -> Existing {
    let Some(column) = column.filter(|column| !column.no_value_yet) else {
        return Existing::Missing;
    };
    let in_key = facts.place_of(&column.name);
    let in_key = facts
        .uniques
        .iter()
        .any(|u| in_key.is_some_and(|p| u.columns.contains(&p)));
    match column.kind {
        _ if !facts.ours || in_key => Existing::Fixed,
        Kind::Int => Existing::Of(infer::Kind::Int),
        Kind::Json => Existing::Of(infer::Kind::Json),
        Kind::Date => Existing::Of(infer::Kind::Own(Holds::Date)),
        Kind::Time => Existing::Of(infer::Kind::Own(Holds::Time)),
        Kind::DateTime => Existing::Of(infer::Kind::Own(Holds::Timestamp)),
        _ => Existing::Fixed,
    }
}

fn addition(verb: &str, seen_column: &SeenColumn) -> String {
    let mut sql = format!("{verb} ");
    push_definition(&mut sql, seen_column, false);
    sql
}

fn modification(name: &Name, to: &str) -> String {
    let mut sql = "MODIFY COLUMN ".to_owned();
    push_ident(&mut sql, name);
    sql.push(' ');
    sql.push_str(to);
    sql
}
