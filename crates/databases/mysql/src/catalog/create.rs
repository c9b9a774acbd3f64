//! Creates tables and columns for rows that name them.
//!
//! Each change is one statement, which MySQL commits by itself. If two connections make the same
//! change, the second one finds it done. Once a column has held a value, its type never changes. A
//! table that Windrow did not create gets columns only if the operator allows it.

use std::borrow::Cow;

use windrow_core::value::is_number;
use windrow_core::{Fault, Holds, TableName, Value};
use windrow_database::decimal;
use windrow_database::demand::Demand;
use windrow_database::infer::{self, SeenColumn};
use windrow_database::quote::backtick::{push_ident, push_table};

use super::schema;
use super::table::{Facts, NO_VALUE_YET, OURS};
use crate::fault::Trouble;
use crate::session::Session;
use crate::values::column::{Column, Kind};
use crate::values::literal::push_text;

/// Attempts to make a change that another session makes too.
const TRIES: usize = 3;

/// Creates or changes a table. If `extends` is set, also one that Windrow did not create.
///
/// # Errors
/// The server refused the change, Windrow did not create the table, or the connection is lost.
pub(crate) async fn grow(
    session: &mut Session,
    name: &TableName,
    demand: &Demand,
    extends: bool,
) -> Result<(), Trouble> {
    // DDL commits by itself, so a lock of the table would not last until the change: another
    // session could give the column its type in between.
    let lock = lock_name(name);
    session.say(&format!("DO GET_LOCK({lock}, 5)")).await?;
    let grown = grow_locked(session, name, demand, extends).await;
    if session.is_usable() {
        session.say(&format!("DO RELEASE_LOCK({lock})")).await?;
    }
    grown
}

/// Returns the name of the lock that guards changes of a table, as SQL: names of locks are short.
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
    extends: bool,
) -> Result<(), Trouble> {
    let mut tries = TRIES;
    loop {
        tries -= 1;
        match attempt(session, name, demand, extends).await {
            // The table or the column exists, or is gone, already.
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

async fn attempt(
    session: &mut Session,
    name: &TableName,
    demand: &Demand,
    extends: bool,
) -> Result<(), Trouble> {
    let sql = match schema::read(session, name).await? {
        None if !demand.new.is_wanted() => return Ok(()),
        None => match creation(name, demand, session.server.mariadb) {
            Some(sql) => sql,
            None => return Err(Trouble::of(untyped(name))),
        },
        Some(facts) => {
            if let Some(fault) = demand.refusal(&facts.name, &facts, facts.ours || extends) {
                return Err(Trouble::of(fault));
            }
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
    if let Some(moment) = demand.new.moment_column(&demand.seen_columns) {
        sql.push_str(", ");
        push_ident(&mut sql, moment);
        sql.push_str(" TIMESTAMP(6) NULL DEFAULT CURRENT_TIMESTAMP(6)");
    }
    for (place, name) in primary.iter().enumerate() {
        sql.push_str(if place > 0 { ", " } else { ", PRIMARY KEY (" });
        push_ident(&mut sql, name);
    }
    sql.push_str(if primary.is_empty() { "" } else { ")" });
    // Keys that differ in case or in blanks at the end are different keys.
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
        // An index needs a limit for the length of its texts.
        Some(infer::Kind::Text | infer::Kind::Json) if in_key => "VARCHAR(255)".into(),
        Some(infer::Kind::Bytes) if in_key => "VARBINARY(255)".into(),
        // A double does not keep all of these numbers, and a decimal is returned with all its
        // zeros.
        Some(infer::Kind::Number) if seen_column.widened && !seen_column.double => "BIGINT".into(),
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
        // A FLOAT is returned with six digits.
        Holds::Float4 | Holds::Float8 => "DOUBLE",
        Holds::Decimal(digits @ ..=65, scale @ ..=30) => {
            return Cow::Owned(format!("DECIMAL({digits},{scale})"));
        }
        Holds::Text | Holds::Decimal(..) => "LONGTEXT",
        Holds::Json => "JSON",
        Holds::Bytes => "LONGBLOB",
        Holds::Date => "DATE",
        Holds::Time => "TIME(6)",
        // In UTC if there was a zone. A TIMESTAMP ends in 2038.
        Holds::Timestamp | Holds::Timestamptz => "DATETIME(6)",
        Holds::Uuid => "CHAR(36)",
    })
}

/// Returns what an existing table lacks, as the parts of one ALTER TABLE. A column without a value
/// gets its type with the first one. If another session has written a value that the type would not
/// keep, the server reports an error, because it is in strict mode.
pub(crate) fn changes(facts: &Facts, demand: &Demand) -> Vec<String> {
    let change = |seen: &SeenColumn| {
        let place = facts.place_of(&seen.name);
        match place.and_then(|place| facts.columns.get(place)) {
            None => Some(addition("ADD COLUMN", seen)),
            Some(column) if column.no_value_yet && seen.kind.is_some() => {
                Some(addition("MODIFY COLUMN", seen))
            }
            Some(_) => None,
        }
    };
    demand
        .seen_columns
        .columns()
        .iter()
        .filter_map(change)
        .collect()
}

/// Returns the kind of values that Windrow accepts for a column of a table that it created.
pub(crate) fn judged(facts: &Facts, column: &Column) -> Option<infer::Kind> {
    if !facts.ours || column.no_value_yet {
        return None;
    }
    Some(match column.kind {
        Kind::Bool => infer::Kind::Bool,
        Kind::Int => infer::Kind::Int,
        Kind::Double | Kind::Decimal(65, 30) => infer::Kind::Number,
        Kind::Json => infer::Kind::Json,
        Kind::Date => infer::Kind::Own(Holds::Date),
        Kind::Time => infer::Kind::Own(Holds::Time),
        // In UTC if there was a zone.
        Kind::DateTime => infer::Kind::Own(Holds::Timestamptz),
        _ => return None,
    })
}

/// Returns false if a column of this kind does not keep the value exactly. A double keeps only the
/// digits that it returns.
pub(crate) fn keeps(kind: infer::Kind, column: &Column, value: &Value) -> bool {
    let exact = match value {
        Value::Int(n) => decimal::int_is_double(*n),
        Value::Number(digits) => decimal::is_double(digits),
        Value::Text(digits) if is_number(digits.as_bytes()) => decimal::is_double(digits),
        _ => true,
    };
    (exact || column.kind != Kind::Double) && kind.takes_value(value)
}

fn addition(verb: &str, seen_column: &SeenColumn) -> String {
    let mut sql = format!("{verb} ");
    push_definition(&mut sql, seen_column, false);
    sql
}
