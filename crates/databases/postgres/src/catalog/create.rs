//! Creates tables and columns for the rows that name them.
//!
//! Each change is one transaction that locks the table, reads its description again and does only
//! what is still missing: two connections that want the same change do not hinder each other. A
//! column that has held a value never gets another type, and a table that Windrow did not make gets
//! columns only if the operator allows it. If a database cannot alter a table within a transaction,
//! each table or column is added by a statement of its own.

use std::borrow::Cow;

use windrow_core::{Fault, Holds, Name, TableName};
use windrow_database::demand::Demand;
use windrow_database::infer;
use windrow_database::quote::{push_ident, push_table};

use super::column::{Column, Kind, oid};
use super::schema;
use super::table::{Facts, NO_VALUE_YET, OURS};
use crate::dialect::Dialect;
use windrow_pgwire::wire::{Broken, ServerError, Wire};

/// Returns true if rows need a change of the table, judged by a description that may be outdated.
pub(crate) fn asks_of(demand: &Demand, facts: Option<&Facts>) -> bool {
    match facts {
        None => demand.new.is_wanted(),
        Some(facts) => !changes(facts, demand).is_empty(),
    }
}

/// The reason why a table was not fitted to its rows.
enum Refusal {
    /// The server refused, with this error.
    Server(ServerError),
    /// Windrow did not create the table.
    NotExtended(Fault),
}

impl From<ServerError> for Refusal {
    fn from(error: ServerError) -> Self {
        Self::Server(error)
    }
}

/// The number of attempts at a change if another session makes the same change at the same time.
const TRIES: usize = 3;

/// Limits the time that a change waits for sessions that use the table.
const LOCK_WAIT: &str = "SET LOCAL lock_timeout = '5s'";

/// Creates the table, or adds missing columns. `extends`: also to a table that Windrow did not
/// create.
///
/// # Errors
/// Outer: the connection is lost. Inner: the server's error, or the table may not be extended
/// because Windrow did not create it.
pub(crate) async fn grow(
    wire: &mut Wire,
    dialect: &'static Dialect,
    name: &TableName,
    demand: &Demand,
    extends: bool,
) -> Result<Result<(), Fault>, Broken> {
    let mut last = None;
    for _ in 0..TRIES {
        match attempt(wire, dialect, name, demand, extends).await? {
            Ok(()) => return Ok(Ok(())),
            Err(Refusal::NotExtended(fault)) => {
                drop(wire.simple("ROLLBACK").await?);
                return Ok(Err(fault));
            }
            Err(Refusal::Server(error)) => {
                // The server's answer for a transaction that has already ended does not matter.
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
    extends: bool,
) -> Result<Result<(), Refusal>, Broken> {
    let known = match schema::read_unproven(wire, name, dialect).await? {
        Ok(facts) => facts,
        Err(error) => return Ok(Err(error.into())),
    };
    let there = known.is_some();
    if !there && !demand.new.is_wanted() {
        return Ok(Ok(()));
    }
    if let Some(fault) = known
        .as_ref()
        .and_then(|facts| demand.refusal(&facts.name, facts, facts.ours || extends))
    {
        return Ok(Err(Refusal::NotExtended(fault)));
    }
    if !dialect.alters {
        // Each change is a transaction of its own. If another session made the same change first,
        // the description is read again.
        let statements = known.map_or_else(
            || creation(name, demand, dialect),
            |facts| changes(&facts, demand),
        );
        return Ok(change(wire, &statements).await?.map_err(Refusal::from));
    }
    let lock = format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", quoted(name));
    let mut first = vec!["BEGIN".to_owned(), LOCK_WAIT.to_owned()];
    first.extend(there.then(|| lock.clone()));
    if let Err(error) = run(wire, &first).await? {
        return Ok(Err(error.into()));
    }
    let mut facts = schema::read_unproven(wire, name, dialect).await?;
    if !there && matches!(facts, Ok(Some(_))) {
        // Another session was faster. Facts that were read without the lock may have changed by the
        // time the table is locked.
        if let Err(error) = run(wire, &[lock]).await? {
            return Ok(Err(error.into()));
        }
        facts = schema::read_unproven(wire, name, dialect).await?;
    }
    let facts = match facts {
        Ok(facts) => facts,
        Err(error) => return Ok(Err(error.into())),
    };
    let mut statements = match facts {
        Some(facts) => match demand.refusal(&facts.name, &facts, facts.ours || extends) {
            Some(fault) => return Ok(Err(Refusal::NotExtended(fault))),
            None => changes(&facts, demand),
        },
        None => creation(name, demand, dialect),
    };
    statements.push("COMMIT".to_owned());
    Ok(change(wire, &statements).await?.map_err(Refusal::from))
}

async fn run(wire: &mut Wire, statements: &[String]) -> Result<Result<(), ServerError>, Broken> {
    for sql in statements {
        if let Err(error) = wire.simple(sql).await? {
            return Ok(Err(error));
        }
    }
    Ok(Ok(()))
}

/// Runs the statements, and logs those that created or added something.
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
    let moment = "timestamptz DEFAULT now()";
    demand.new.push_end(&mut sql, &demand.seen_columns, moment);
    if !dialect.alters {
        comments.clear();
    }
    comments.insert(0, sql);
    comments
}

/// Returns the statements that add what an existing table lacks. A column that has had no value yet
/// gets its type with its first value.
fn changes(facts: &Facts, demand: &Demand) -> Vec<String> {
    let table = quoted(&facts.name);
    let mut statements = Vec::new();
    for seen in demand.seen_columns.columns() {
        let place = facts.place_of(&seen.name);
        let column = place.and_then(|place| facts.columns.get(place));
        match (column, seen.kind) {
            (None, Some(kind)) => statements.push(addition(&table, &seen.name, Some(kind))),
            (None, None) => {
                statements.push(addition(&table, &seen.name, None));
                if facts.dialect.alters {
                    statements.push(comment(&table, &seen.name));
                }
            }
            (Some(column), Some(kind)) if column.no_value_yet && facts.dialect.alters => {
                statements.push(settlement(&table, &seen.name, kind));
            }
            (Some(_), _) => {}
        }
    }
    statements
}

/// Returns the kind of a column's content in a table that Windrow created, if Windrow checks the
/// column's values itself.
pub(crate) fn judged(facts: &Facts, column: &Column) -> Option<infer::Kind> {
    if !facts.ours || column.no_value_yet || column.type_oid != column.base_oid {
        return None;
    }
    Some(match column.kind {
        Kind::Bool => infer::Kind::Bool,
        Kind::Int8 => infer::Kind::Int,
        Kind::Numeric if column.narrowed < 0 => infer::Kind::Number,
        Kind::Jsonb => infer::Kind::Json,
        Kind::Bytea => infer::Kind::Bytes,
        _ if column.narrowed >= 0 => return None,
        Kind::Date => infer::Kind::Own(Holds::Date),
        Kind::Timestamp => infer::Kind::Own(Holds::Timestamp),
        Kind::Timestamptz => infer::Kind::Own(Holds::Timestamptz),
        Kind::Other if column.base_oid == oid::TIME => infer::Kind::Own(Holds::Time),
        _ => return None,
    })
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

/// Returns the statement that gives a type to a column that holds nothing but NULL: the column is
/// made again, which rewrites no row. If another session has written a value there, the column
/// stays as it is.
fn settlement(table: &str, name: &Name, kind: infer::Kind) -> String {
    let mut ident = String::new();
    push_ident(&mut ident, name);
    let type_name = type_of(Some(kind));
    let body = format!(
        "BEGIN IF EXISTS (SELECT 1 FROM {table} WHERE {ident} IS NOT NULL) \
         THEN COMMENT ON COLUMN {table}.{ident} IS NULL; \
         ELSE ALTER TABLE {table} DROP COLUMN {ident}, ADD COLUMN {ident} {type_name}; END IF; END"
    );
    // Makes sure that no name can end the quoted text.
    let mut quote = String::from("$w$");
    while body.contains(&quote) {
        quote.insert(1, 'w');
    }
    format!("DO LANGUAGE plpgsql {quote}{body}{quote}")
}

fn comment(table: &str, name: &Name) -> String {
    let mut sql = format!("COMMENT ON COLUMN {table}.");
    push_ident(&mut sql, name);
    sql.push_str(" IS '");
    sql.push_str(NO_VALUE_YET);
    sql.push('\'');
    sql
}
