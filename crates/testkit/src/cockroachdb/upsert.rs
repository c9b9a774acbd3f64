//! `UPSERT` in PostgreSQL's words: an insert whose conflict is the primary key, and which sets
//! every other column that is named (<https://www.cockroachlabs.com/docs/stable/upsert>).

use std::sync::Arc;

use anyhow::{Context, Result};

use super::shared::Upstream;
use crate::postgres;

const WORD: &str = "UPSERT INTO ";

/// Returns true if a statement has an `UPSERT`.
pub(super) fn is_one(sql: &str) -> bool {
    sql.contains(WORD)
}

/// Returns the same statement for PostgreSQL.
///
/// # Errors
/// It has another form than `UPSERT INTO table (columns) ..`, or the table has no primary key.
pub(super) async fn translate(sql: &str, upstream: &Arc<Upstream>) -> Result<String> {
    let (before, rest) = sql.split_once(WORD).context("no UPSERT")?;
    let (table, rest) = rest.split_once(" (").context("no columns are named")?;
    let (columns, rest) = rest.split_once(')').context("the columns have no end")?;
    let (source, behind) = match rest.split_once(" RETURNING ") {
        Some((source, behind)) => (source, format!(" RETURNING {behind}")),
        None => (rest, String::new()),
    };
    let asked = format!(
        "select string_agg('\"' || a.attname || '\"', ', ' order by a.attnum) from pg_index i \
         join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey) \
         where i.indisprimary and i.indrelid = to_regclass('{}')",
        table.replace('\'', "''")
    );
    let url = upstream.url.clone();
    let key = tokio::task::spawn_blocking(move || postgres::psql(&url, &asked)).await??;
    anyhow::ensure!(!key.is_empty(), "{table} has no primary key");
    let keys: Vec<&str> = key.split(", ").collect();
    let others: Vec<&str> = columns
        .split(", ")
        .filter(|column| !keys.contains(column))
        .collect();
    let set = if others.is_empty() { &keys } else { &others };
    let set: Vec<String> = set
        .iter()
        .map(|column| format!("{column} = excluded.{column}"))
        .collect();
    Ok(format!(
        "{before}INSERT INTO {table} ({columns}){source} ON CONFLICT ({key}) DO UPDATE SET {}{behind}",
        set.join(", ")
    ))
}
