//! Tables and columns that are made, and widened, from the rows that name them.
//!
//! Each change is one transaction that locks the table, looks at it again and does only what is
//! still to be done: two connections that want the same change do not hinder each other. Only what
//! Windrow made is ever given another type. Where a database cannot alter a table within a
//! transaction, tables and columns are added by themselves, and keep their types.

use std::borrow::Cow;

use windrow_core::{Fault, Holds, Name, TableName};
use windrow_database::demand::Demand;
use windrow_database::infer::{self, Change, Existing};
use windrow_database::quote::{push_ident, push_idents, push_table};

use super::column::{Column, Kind, oid};
use super::schema;
use super::table::{Facts, NO_VALUE_YET, OURS};
use crate::dialect::Dialect;
use windrow_pgwire::wire::{Broken, ServerError, Wire};

/// Whether rows ask anything of a table, by a description that may be old.
pub(crate) fn asks_of(demand: &Demand, facts: Option<&Facts>) -> bool {
    match facts {
        None => demand.new.is_wanted(),
        Some(facts) => !changes(facts, demand).is_empty(),
    }
}

/// How often a change that somebody else makes at the same time is looked at again.
const TRIES: usize = 3;

/// How long a change waits for those who use the table.
const LOCK_WAIT: &str = "SET LOCAL lock_timeout = '5s'";

/// Makes the table, or what it lacks.
///
/// # Errors
/// Outside: the connection is lost. Inside: the server refuses, in its own words.
pub(crate) async fn grow(
    wire: &mut Wire,
    dialect: &'static Dialect,
    name: &TableName,
    demand: &Demand,
) -> Result<Result<(), Fault>, Broken> {
    let mut last = None;
    for _ in 0..TRIES {
        match attempt(wire, dialect, name, demand).await? {
            Ok(()) => return Ok(Ok(())),
            Err(error) => {
                // Whatever it says of a transaction that has ended by itself does not matter.
                drop(wire.simple("ROLLBACK").await?);
                let raced = matches!(
                    error.code.as_str(),
                    "42P07" | "42710" | "42701" | "23505" | "42P01"
                );
                last = Some(error);
                if !raced {
                    break;
                }
            }
        }
    }
    Ok(match last {
        Some(error) => Err(refused(name, error)),
        None => Ok(()),
    })
}

fn refused(name: &TableName, error: ServerError) -> Fault {
    let mut fault = Fault::from(error);
    fault.message = format!(
        "the table {name} cannot be fitted to its rows: {}",
        fault.message
    )
    .into();
    fault
}

async fn attempt(
    wire: &mut Wire,
    dialect: &'static Dialect,
    name: &TableName,
    demand: &Demand,
) -> Result<Result<(), ServerError>, Broken> {
    let known = match schema::read_unproven(wire, name, dialect).await? {
        Ok(facts) => facts,
        Err(error) => return Ok(Err(error)),
    };
    let there = known.is_some();
    if !there && !demand.new.is_wanted() {
        return Ok(Ok(()));
    }
    if !dialect.alters {
        // Each change by itself; one that somebody else was faster with is looked at again.
        let statements = known.map_or_else(
            || creation(name, demand, dialect),
            |facts| changes(&facts, demand),
        );
        return change(wire, &statements).await;
    }
    let lock = format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", quoted(name));
    let mut first = vec!["BEGIN".to_owned(), LOCK_WAIT.to_owned()];
    first.extend(there.then(|| lock.clone()));
    if let Err(error) = run(wire, &first).await? {
        return Ok(Err(error));
    }
    let mut facts = schema::read_unproven(wire, name, dialect).await?;
    if !there && matches!(facts, Ok(Some(_))) {
        // Somebody else was faster. What is seen without the lock may be wider by the time it is
        // changed.
        if let Err(error) = run(wire, &[lock]).await? {
            return Ok(Err(error));
        }
        facts = schema::read_unproven(wire, name, dialect).await?;
    }
    let facts = match facts {
        Ok(facts) => facts,
        Err(error) => return Ok(Err(error)),
    };
    let mut statements = match facts {
        Some(facts) => changes(&facts, demand),
        None => creation(name, demand, dialect),
    };
    statements.push("COMMIT".to_owned());
    change(wire, &statements).await
}

async fn run(wire: &mut Wire, statements: &[String]) -> Result<Result<(), ServerError>, Broken> {
    for sql in statements {
        if let Err(error) = wire.simple(sql).await? {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

/// Runs them, and says in the log what was made, added and widened.
async fn change(wire: &mut Wire, statements: &[String]) -> Result<Result<(), ServerError>, Broken> {
    let changed = run(wire, statements).await?;
    let made = |sql: &&String| !sql.starts_with("COMMENT") && *sql != "COMMIT";
    if changed.is_ok() {
        for sql in statements.iter().filter(made) {
            tracing::info!(sql, "changed");
        }
    }
    Ok(changed)
}

fn quoted(name: &TableName) -> String {
    let mut sql = String::new();
    push_table(&mut sql, name);
    sql
}

fn creation(name: &TableName, demand: &Demand, dialect: &Dialect) -> Vec<String> {
    let table = quoted(name);
    let mut sql = format!("CREATE TABLE {table} (");
    let mut comments = vec![format!("COMMENT ON TABLE {table} IS '{OURS}'")];
    for (place, seen) in demand.seen_columns.columns().iter().enumerate() {
        sql.push_str(if place > 0 { ", " } else { "" });
        push_ident(&mut sql, &seen.name);
        sql.push(' ');
        sql.push_str(&type_of(seen.kind));
        if seen.kind.is_none() {
            comments.push(comment(&table, &seen.name));
        }
    }
    let primary = demand.new.primary(&demand.seen_columns);
    if !primary.is_empty() {
        sql.push_str(", PRIMARY KEY (");
        push_idents(&mut sql, &primary);
        sql.push(')');
    }
    sql.push(')');
    if !dialect.alters {
        // Comments say what may be widened later.
        comments.clear();
    }
    comments.insert(0, sql);
    comments
}

/// What an existing table lacks.
fn changes(facts: &Facts, demand: &Demand) -> Vec<String> {
    let table = quoted(&facts.name);
    let column = |name: &Name| {
        facts
            .place_of(name)
            .and_then(|place| facts.columns.get(place))
    };
    let mut statements = Vec::new();
    for seen in demand.seen_columns.columns() {
        if seen.kind.is_none() && column(&seen.name).is_none() {
            statements.push(addition(&table, &seen.name, None));
            if facts.dialect.alters {
                statements.push(comment(&table, &seen.name));
            }
        }
    }
    for change in demand
        .seen_columns
        .changes(|name| existing(facts, column(name)))
    {
        statements.push(match change {
            Change::Add(name, kind) if column(&name).is_some() => replacement(&table, &name, kind),
            Change::Add(name, kind) => addition(&table, &name, Some(kind)),
            Change::Widen(name, kind) => {
                let from = column(&name).map(|c| &c.kind);
                widening(&table, &name, kind, from)
            }
        });
    }
    statements
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
    // Another type of a key would change the rows that are there, and who finds them.
    let in_key = facts.is_key(&column.name);
    let kind = match column.kind {
        _ if !facts.ours || in_key || column.type_oid != column.base_oid => return Existing::Fixed,
        Kind::Bool => infer::Kind::Bool,
        Kind::Int8 => infer::Kind::Int,
        Kind::Numeric if column.narrowed < 0 => infer::Kind::Number,
        Kind::Jsonb => infer::Kind::Json,
        Kind::Bytea => infer::Kind::Bytes,
        _ if column.narrowed >= 0 => return Existing::Fixed,
        Kind::Date => infer::Kind::Own(Holds::Date),
        Kind::Timestamp => infer::Kind::Own(Holds::Timestamp),
        Kind::Timestamptz => infer::Kind::Own(Holds::Timestamptz),
        Kind::Other if column.base_oid == oid::TIME => infer::Kind::Own(Holds::Time),
        _ => return Existing::Fixed,
    };
    Existing::Of(kind)
}

fn type_of(kind: Option<infer::Kind>) -> Cow<'static, str> {
    Cow::Borrowed(match kind {
        Some(infer::Kind::Bool) => "boolean",
        Some(infer::Kind::Int) => "bigint",
        Some(infer::Kind::Number) => "numeric",
        Some(infer::Kind::Json) => "jsonb",
        Some(infer::Kind::Bytes) => "bytea",
        Some(infer::Kind::Text) | None => "text",
        Some(infer::Kind::Own(holds)) => return own_type(holds),
    })
}

fn own_type(holds: Holds) -> Cow<'static, str> {
    Cow::Borrowed(match holds {
        Holds::Bool => "boolean",
        Holds::Int2 => "smallint",
        Holds::Int4 => "integer",
        Holds::Int8 => "bigint",
        Holds::Float4 => "real",
        Holds::Float8 => "double precision",
        Holds::Decimal(digits, scale) => return Cow::Owned(format!("numeric({digits}, {scale})")),
        Holds::Text => "text",
        Holds::Json => "jsonb",
        Holds::Bytes => "bytea",
        Holds::Date => "date",
        Holds::Time => "time",
        Holds::Timestamp => "timestamp",
        Holds::Timestamptz => "timestamptz",
        Holds::Uuid => "uuid",
    })
}

fn addition(table: &str, name: &Name, kind: Option<infer::Kind>) -> String {
    let mut sql = format!("ALTER TABLE {table} ADD COLUMN ");
    push_ident(&mut sql, name);
    sql.push(' ');
    sql.push_str(&type_of(kind));
    sql
}

/// A column of nothing but NULL gets its type by being made anew, which rewrites no row.
fn replacement(table: &str, name: &Name, kind: infer::Kind) -> String {
    let mut sql = format!("ALTER TABLE {table} DROP COLUMN ");
    push_ident(&mut sql, name);
    sql.push_str(", ADD COLUMN ");
    push_ident(&mut sql, name);
    sql.push(' ');
    sql.push_str(&type_of(Some(kind)));
    sql
}

fn widening(table: &str, name: &Name, kind: infer::Kind, from: Option<&Kind>) -> String {
    let mut ident = String::new();
    push_ident(&mut ident, name);
    let to = type_of(Some(kind));
    let using = match from {
        // As it was given: base64 without line breaks.
        Some(Kind::Bytea) => format!("replace(encode({ident}, 'base64'), E'\\n', '')"),
        _ => format!("{ident}::{to}"),
    };
    format!("ALTER TABLE {table} ALTER COLUMN {ident} TYPE {to} USING {using}")
}

fn comment(table: &str, name: &Name) -> String {
    let mut sql = format!("COMMENT ON COLUMN {table}.");
    push_ident(&mut sql, name);
    sql.push_str(" IS '");
    sql.push_str(NO_VALUE_YET);
    sql.push('\'');
    sql
}
