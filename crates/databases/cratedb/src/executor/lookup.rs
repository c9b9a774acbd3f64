//! Reads rows by their keys.
//!
//! A read by primary key is answered from the shard itself and sees every write that was answered
//! before; any other search sees the state of the table's last refresh
//! (<https://cratedb.com/docs/crate/reference/en/latest/general/dql/refresh.html>). The server
//! recognizes a read by primary key in comparisons with parameters that are joined by OR. It
//! executes `= ANY(?)` as a search, because its extractor of keys needs a literal there
//! (`EqualityExtractor.java`).

use std::collections::{HashMap, HashSet};

use serde_json::value::RawValue;
use windrow_core::{Fault, FaultClass, Name, Rung, Value, Write};
use windrow_database::quote::{push_idents, push_table};
use windrow_database::web::{Answer, Batch, Loss, Refusal, Scope, Stop};

use super::connection::Connection;
use super::key;
use super::key::RowKey;
use super::session::unreadable;
use super::sql::{Statement, push_match};
use crate::answer::Reply;
use crate::catalog::table::Facts;
use crate::fault::refusal;
use crate::values::column::Kind;
use crate::values::encode;

/// Returns the number of keys that one statement reads. The server tries every combination of a
/// key's parts, and gives up after 10,000 of them.
fn keys_at_once(parts: usize) -> usize {
    match parts {
        0 | 1 => 128,
        2 => 44,
        3 => 11,
        4 => 5,
        _ => 1,
    }
}

/// The result of a read.
enum LookupReply {
    Answer(Answer),
    /// The server refused the statement, or a value in it.
    Refused(Fault),
    /// The reason may be one of the keys, or their number.
    TooMany(Fault),
}

/// Returns the keys of writes, if all of them are known.
fn keys(batch: &Batch<'_>, statement: &Statement, items: &[usize]) -> Option<Vec<(usize, String)>> {
    let key = |at: &usize| {
        let write = batch.write(*at)?;
        match key::find(&statement.table, &statement.key, write.row()) {
            RowKey::Row(key) => Some((*at, key)),
            RowKey::NoRow | RowKey::Unknown => None,
        }
    };
    items.iter().map(key).collect()
}

/// Executes a step of reads.
///
/// # Errors
/// The database cannot be reached, or the connection was lost.
pub(super) async fn read(
    connection: &mut Connection,
    batch: &mut Batch<'_>,
    statement: &Statement,
    items: &[usize],
) -> Result<(), Stop> {
    let known = |at: &usize| keys(batch, statement, &[*at]).is_some();
    let (known, unknown): (Vec<usize>, Vec<usize>) = items.iter().copied().partition(known);
    let rung = match batch.is_single() {
        true => Rung::Solo,
        false => Rung::Fused,
    };
    let size = keys_at_once(statement.table.primary.len());
    let mut todo = batch.parts(&known, usize::MAX, size);
    while let Some(part) = todo.pop() {
        let Some(wanted) = keys(batch, statement, &part.items) else {
            continue;
        };
        let (sql, args) = by_keys(&statement.sql, statement, writes(batch, &part.items));
        match query(connection, batch, statement, &sql, &args).await? {
            LookupReply::Answer(answer) => settle(batch, statement, &wanted, &answer, rung),
            LookupReply::TooMany(_) if part.items.len() > 1 => todo.extend(part.halves()),
            LookupReply::Refused(fault) | LookupReply::TooMany(fault) => {
                batch.fail_all(&part.items, rung, &fault);
            }
        }
    }
    for at in unknown {
        search(connection, batch, statement, at).await?;
    }
    Ok(())
}

/// Reads by other columns than the primary key, or by a key that cannot be derived from the
/// write.
async fn search(
    connection: &mut Connection,
    batch: &mut Batch<'_>,
    statement: &Statement,
    at: usize,
) -> Result<(), Stop> {
    let Some(write) = batch.write(at) else {
        return Ok(());
    };
    let first = statement.slots.len() - statement.key_slots;
    let slots = statement.slots.get(first..).unwrap_or_default();
    let names: Vec<Name> = slots.iter().map(|slot| slot.column.name.clone()).collect();
    let mut sql = format!("{} WHERE ", statement.sql);
    push_match(&mut sql, &names);
    let mut args = Vec::new();
    for slot in slots {
        push_value(slot.column.kind, write.row().get(slot.place), &mut args);
    }
    let rung = batch.rung_of_one();
    let answer = match query(connection, batch, statement, &sql, &args).await? {
        LookupReply::Answer(answer) => answer,
        LookupReply::Refused(fault) | LookupReply::TooMany(fault) => {
            batch.fail(at, rung, fault);
            return Ok(());
        }
    };
    match serde_json::from_slice::<Reply<'_>>(&answer.body) {
        Ok(reply) => {
            let rows = reply.rows.unwrap_or_default();
            let rows = rows.iter().map(|row| wanted(statement, row)).collect();
            batch.done(at, rung, statement.gave(rows));
        }
        Err(error) => batch.fail(at, rung, unreadable(&error)),
    }
    Ok(())
}

/// Returns the keys that have a row; `None` if the server did not answer that.
async fn find(
    connection: &mut Connection,
    batch: &mut Batch<'_>,
    statement: &Statement,
    wanted: &[(usize, String)],
) -> Result<Option<HashSet<String>>, Stop> {
    let facts: &Facts = &statement.table;
    let mut head = String::from("SELECT ");
    push_idents(&mut head, facts.key().map(|column| &column.name));
    head.push_str(" FROM ");
    push_table(&mut head, &facts.name);
    let mut found = HashSet::new();
    for chunk in wanted.chunks(keys_at_once(facts.primary.len())) {
        let items: Vec<usize> = chunk.iter().map(|(at, _)| *at).collect();
        let (sql, args) = by_keys(&head, statement, writes(batch, &items));
        let LookupReply::Answer(answer) = query(connection, batch, statement, &sql, &args).await?
        else {
            return Ok(None);
        };
        let Ok(reply) = serde_json::from_slice::<Reply<'_>>(&answer.body) else {
            return Ok(None);
        };
        let rows = reply.rows.unwrap_or_default();
        found.extend(rows.iter().filter_map(|row| key_of(facts, row)));
    }
    Ok(Some(found))
}

/// Executes a statement that only reads, so that it may be repeated without an answer.
async fn query(
    connection: &mut Connection,
    batch: &mut Batch<'_>,
    statement: &Statement,
    sql: &str,
    args: &[u8],
) -> Result<LookupReply, Stop> {
    let session = &mut connection.session;
    let failure = match session.single(sql, args, &mut batch.tally).await {
        Ok(Ok(answer)) => return Ok(LookupReply::Answer(answer)),
        Ok(Err(failure)) => failure,
        Err(loss @ Loss::TooLarge(_)) => return Ok(LookupReply::TooMany(loss.harmless())),
        Err(loss) => return Err(Stop(loss.harmless())),
    };
    let Refusal { fault, scope } = refusal(&failure, &statement.table.name);
    match scope {
        Scope::Database => Err(Stop(fault)),
        Scope::Write if !fault.may_retry() => Ok(LookupReply::TooMany(fault)),
        Scope::Request => {
            connection.forget(statement);
            Ok(LookupReply::Refused(fault))
        }
        Scope::Write | Scope::Unknown => {
            let read = Fault::new(FaultClass::Other, "58000", fault.message.clone());
            Ok(LookupReply::Refused(read.with_detail(fault.detail())))
        }
    }
}

/// Returns the writes whose rows are in the table; `None` if that is unknown.
pub(super) async fn existing(
    connection: &mut Connection,
    batch: &mut Batch<'_>,
    statement: &Statement,
    items: &[usize],
) -> Result<Option<HashSet<usize>>, Stop> {
    let Some(wanted) = keys(batch, statement, items) else {
        return Ok(None);
    };
    let Some(found) = find(connection, batch, statement, &wanted).await? else {
        return Ok(None);
    };
    let there = wanted.iter().filter(|(_, key)| found.contains(key));
    Ok(Some(there.map(|(at, _)| *at).collect()))
}

fn writes<'b>(batch: &'b Batch<'_>, items: &'b [usize]) -> impl Iterator<Item = &'b Write> {
    items.iter().filter_map(|at| batch.write(*at))
}

/// Returns a statement that finds rows by their primary keys, and its parameters.
fn by_keys<'w>(
    head: &str,
    statement: &Statement,
    writes: impl Iterator<Item = &'w Write>,
) -> (String, Vec<u8>) {
    let names: Vec<Name> = statement
        .table
        .key()
        .map(|column| column.name.clone())
        .collect();
    let mut sql = format!("{head} WHERE ");
    let mut args = Vec::new();
    for (place, write) in writes.enumerate() {
        sql.push_str(if place > 0 { " OR (" } else { "(" });
        push_match(&mut sql, &names);
        sql.push(')');
        for (column, place) in statement.table.key().zip(&statement.key) {
            push_value(column.kind, write.row().get(*place), &mut args);
        }
    }
    (sql, args)
}

fn push_value(kind: Kind, value: Option<&Value>, args: &mut Vec<u8>) {
    if !args.is_empty() {
        args.push(b',');
    }
    // Values that cannot be written were refused by `plan`.
    if encode::push(kind, value.unwrap_or(&Value::Null), args).is_err() {
        args.extend_from_slice(b"null");
    }
}

fn key_of(facts: &Facts, row: &[&RawValue]) -> Option<String> {
    key::of_answer(facts, row.iter().map(|raw| raw.get()))
}

/// Returns the requested columns of a row. They come after the key, or after one column if there is
/// no key.
fn wanted(statement: &Statement, row: &[&RawValue]) -> Box<[Value]> {
    let behind = statement.table.primary.len().max(1);
    match &statement.returned {
        Some(wanted) => wanted.values(row.get(behind..).unwrap_or_default()),
        None => Box::default(),
    }
}

/// Gives each read its row.
fn settle(
    batch: &mut Batch<'_>,
    statement: &Statement,
    reads: &[(usize, String)],
    answer: &Answer,
    rung: Rung,
) {
    let reply: Reply<'_> = match serde_json::from_slice(&answer.body) {
        Ok(reply) => reply,
        Err(error) => {
            let fault = unreadable(&error);
            reads.iter().for_each(|(at, _)| batch.retry(&[*at], &fault));
            return;
        }
    };
    let rows = reply.rows.unwrap_or_default();
    let rows = rows
        .iter()
        .filter_map(|row| Some((key_of(&statement.table, row)?, wanted(statement, row))));
    let rows: HashMap<String, Box<[Value]>> = rows.collect();
    for (at, key) in reads {
        let found = rows.get(key).cloned().into_iter().collect();
        batch.done(*at, rung, statement.gave(found));
    }
}
