//! Rows by their keys.
//!
//! A read by primary key is answered from the shard itself and sees every write that was answered
//! before; any other search sees what the last refresh of the table has shown (<https://cratedb.com/docs/crate/reference/en/latest/general/dql/refresh.html>).
//! The server finds out whether it is one from comparisons with parameters that are joined by OR;
//! `= ANY(?)` it takes for a search, because its extractor of keys wants a literal there
//! (`EqualityExtractor.java`).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::value::RawValue;
use windrow_core::{Fault, FaultClass, Name, RowDone, RowWrite, Rung, Value};
use windrow_database::quote::{push_idents, push_table};
use windrow_database::web::{Answer, Batch, Loss, Meaning};

use super::connection::{Connection, Stop, retry};
use super::key;
use super::key::Found;
use super::statement::{Returned, Statement, push_match};
use crate::answer::Reply;
use crate::catalog::table::Facts;
use crate::fault::meaning;
use crate::values::encode;

/// Keys that one statement asks for. The server tries every combination of a key's parts, and gives
/// up after 10,000 of them.
fn keys_at_once(parts: usize) -> usize {
    match parts {
        0 | 1 => 128,
        2 => 44,
        3 => 11,
        4 => 5,
        _ => 1,
    }
}

/// The answer to a read.
enum LookupReply {
    Answer(Answer),
    Refused { fault: Fault, statement: bool },
    TooLarge(Fault),
}

/// The keys of writes, if all of them are known.
pub(super) fn keys(
    batch: &Batch<'_>,
    statement: &Statement,
    items: &[usize],
) -> Option<Vec<(usize, String)>> {
    let key = |at: &usize| {
        let write = batch.write(*at)?;
        match key::find(&statement.table, &statement.key, &write.row) {
            Found::Row(key) => Some((*at, key)),
            Found::Nothing | Found::Unknown => None,
        }
    };
    items.iter().map(key).collect()
}

/// Returns the outcome of a read that finds no row.
pub(super) fn none(statement: &Statement) -> RowDone {
    gave(statement, Vec::new())
}

/// Returns the outcome of a statement with these rows.
pub(super) fn gave(statement: &Statement, rows: Vec<Box<[Value]>>) -> RowDone {
    let count = rows.len() as u64;
    let returned = statement.returned.as_ref().map(|wanted| {
        Box::new(windrow_core::Returned {
            columns: wanted.names.clone(),
            rows,
        })
    });
    RowDone {
        rows: count,
        returned,
    }
}

/// The values of a row.
pub(super) fn returned(wanted: &Returned, row: &[&RawValue]) -> Box<[Value]> {
    let values = wanted.kinds.iter().zip(row);
    values
        .map(|(kind, raw)| crate::values::decode::value(*kind, raw.get()))
        .collect()
}

impl Connection {
    /// A step of reads.
    pub(super) async fn read(
        &mut self,
        batch: &mut Batch<'_>,
        statement: &Arc<Statement>,
        items: &[usize],
    ) -> Result<(), Stop> {
        let known = |at: &usize| keys(batch, statement, &[*at]).is_some();
        let (known, unknown): (Vec<usize>, Vec<usize>) = items.iter().copied().partition(known);
        let rung = if batch.is_single() {
            Rung::Solo
        } else {
            Rung::Fused
        };
        let size = keys_at_once(statement.table.primary.len());
        let mut work: Vec<Vec<usize>> = known.chunks(size).map(<[usize]>::to_vec).rev().collect();
        while let Some(items) = work.pop() {
            let Some(wanted) = keys(batch, statement, &items) else {
                continue;
            };
            let (sql, args) = by_keys(&statement.sql, statement, writes(batch, &items));
            match self.question(batch, statement, &sql, &args).await? {
                LookupReply::Answer(answer) => tell(batch, statement, &wanted, &answer, rung),
                LookupReply::Refused {
                    statement: false, ..
                }
                | LookupReply::TooLarge(_)
                    if items.len() > 1 =>
                {
                    let (first, second) = items.split_at(items.len() / 2);
                    work.push(second.to_vec());
                    work.push(first.to_vec());
                }
                LookupReply::Refused { fault, .. } | LookupReply::TooLarge(fault) => {
                    items
                        .iter()
                        .for_each(|at| batch.fail(*at, rung, fault.clone()));
                }
            }
        }
        for at in unknown {
            self.search(batch, statement, at).await?;
        }
        Ok(())
    }

    /// Reads by other columns than the primary key, or by a key that cannot be derived from the
    /// write.
    async fn search(
        &mut self,
        batch: &mut Batch<'_>,
        statement: &Arc<Statement>,
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
            push_value(slot.column.kind, write.row.get(slot.place), &mut args);
        }
        let rung = if batch.is_single() {
            Rung::Solo
        } else {
            Rung::Grouped
        };
        match self.question(batch, statement, &sql, &args).await? {
            LookupReply::Answer(answer) => {
                let reply: Result<Reply<'_>, _> = serde_json::from_slice(&answer.body);
                match reply {
                    Ok(reply) => {
                        let rows = reply.rows.unwrap_or_default();
                        let rows = rows.iter().map(|row| wanted(statement, row)).collect();
                        batch.done(at, rung, gave(statement, rows));
                    }
                    Err(error) => batch.fail(at, rung, super::session::unreadable(&error)),
                }
            }
            LookupReply::Refused { fault, .. } | LookupReply::TooLarge(fault) => {
                batch.fail(at, rung, fault);
            }
        }
        Ok(())
    }

    /// Which of the keys have a row. `None` where the server does not say.
    pub(super) async fn find(
        &mut self,
        batch: &mut Batch<'_>,
        statement: &Arc<Statement>,
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
            let LookupReply::Answer(answer) = self.question(batch, statement, &sql, &args).await?
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

    /// A statement that only reads: no answer means that it may be asked again.
    async fn question(
        &mut self,
        batch: &mut Batch<'_>,
        statement: &Arc<Statement>,
        sql: &str,
        args: &[u8],
    ) -> Result<LookupReply, Stop> {
        let failure = match self.session.single(sql, args, &mut batch.tally).await {
            Ok(Ok(answer)) => return Ok(LookupReply::Answer(answer)),
            Ok(Err(failure)) => failure,
            Err(loss @ Loss::TooLarge(_)) => return Ok(LookupReply::TooLarge(loss.harmless())),
            Err(loss) => return Err(Stop(loss.harmless())),
        };
        match meaning(&failure, &statement.table.name) {
            Meaning::Refused {
                fault,
                request: whole,
            } => {
                if whole {
                    self.forget(statement);
                }
                Ok(LookupReply::Refused {
                    fault,
                    statement: whole,
                })
            }
            Meaning::Away(fault) => Err(Stop(fault)),
            Meaning::Conflict(fault) | Meaning::Unsure(fault) => {
                let fault = Fault::new(FaultClass::Other, "58000", fault.message.clone())
                    .with_detail(fault.detail());
                Ok(LookupReply::Refused {
                    fault,
                    statement: true,
                })
            }
        }
    }
}

fn writes<'b>(batch: &'b Batch<'_>, items: &'b [usize]) -> impl Iterator<Item = &'b RowWrite> {
    items.iter().filter_map(|at| batch.write(*at))
}

/// A statement that looks for rows by their primary keys, and its parameters.
fn by_keys<'w>(
    head: &str,
    statement: &Statement,
    writes: impl Iterator<Item = &'w RowWrite>,
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
            push_value(column.kind, write.row.get(*place), &mut args);
        }
    }
    (sql, args)
}

fn push_value(kind: crate::values::column::Kind, value: Option<&Value>, args: &mut Vec<u8>) {
    if !args.is_empty() {
        args.push(b',');
    }
    // What cannot be written was refused when the write was bound.
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
        Some(wanted) => returned(wanted, row.get(behind..).unwrap_or_default()),
        None => Box::default(),
    }
}

fn tell(
    batch: &mut Batch<'_>,
    statement: &Statement,
    asked: &[(usize, String)],
    answer: &Answer,
    rung: Rung,
) {
    let reply: Reply<'_> = match serde_json::from_slice(&answer.body) {
        Ok(reply) => reply,
        Err(error) => {
            let fault = super::session::unreadable(&error);
            asked
                .iter()
                .for_each(|(at, _)| batch.conclude(*at, retry(&fault)));
            return;
        }
    };
    let rows = reply.rows.unwrap_or_default();
    let rows = rows
        .iter()
        .filter_map(|row| Some((key_of(&statement.table, row)?, wanted(statement, row))));
    let rows: HashMap<String, Box<[Value]>> = rows.collect();
    for (at, key) in asked {
        let found = rows.get(key).cloned().into_iter().collect();
        batch.done(*at, rung, gave(statement, found));
    }
}
