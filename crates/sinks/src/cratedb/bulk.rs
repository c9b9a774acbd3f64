//! A step of writes: one bulk, and what is set apart when it fails.
//!
//! A bulk tells row by row what became of it. Where the server refuses it as a whole, because a
//! value in it cannot be read, nothing of it is stored, and it is halved until the row is found
//! that is to blame; all others are written together.

use std::sync::Arc;

use windrow_core::{Done, Fault, Op, Rung, Write};

use super::answer::{Entry, Failure, Reply};
use super::encode;
use super::executor::{Connection, Stop, again};
use super::fault::{MISSING, meaning};
use super::lookup::returned;
use super::statement::Statement;
use crate::web::{Answer, Batch, Loss, Meaning};

/// The most bytes of values in one request. CrateDB takes 100 MiB (`http.max_content_length`).
const REQUEST: usize = 16 << 20;

/// The most bytes of one row.
const ROW: usize = 96 << 20;

/// What came of a bulk.
enum Sent {
    /// Its rows are told one by one.
    Told(Vec<Entry>),
    /// None of its rows was written.
    Refused { fault: Fault, statement: bool },
    /// All of its rows have their verdicts.
    Concluded,
}

impl Connection {
    /// Executes writes of one statement. `alone`: each by itself, because it would spoil a bulk, or
    /// gives something back.
    pub(super) async fn write(
        &mut self,
        batch: &mut Batch<'_>,
        statement: &Arc<Statement>,
        items: Vec<usize>,
        alone: bool,
    ) -> Result<(), Stop> {
        let rung = if batch.len() == 1 {
            Rung::Solo
        } else {
            Rung::Grouped
        };
        if alone {
            for at in items {
                self.one(batch, statement, at, rung).await?;
            }
            return Ok(());
        }
        for chunk in chunks(batch, &items) {
            self.many(batch, statement, chunk, rung).await?;
        }
        Ok(())
    }

    async fn many(
        &mut self,
        batch: &mut Batch<'_>,
        statement: &Arc<Statement>,
        items: Vec<usize>,
        single: Rung,
    ) -> Result<(), Stop> {
        let mut work = vec![(items, false)];
        while let Some((items, isolated)) = work.pop() {
            if let [at] = items.as_slice() {
                let rung = if isolated { Rung::Isolated } else { single };
                self.one(batch, statement, *at, rung).await?;
                continue;
            }
            let rung = if isolated {
                Rung::Isolated
            } else {
                Rung::Fused
            };
            match self.send(batch, statement, &items, rung).await? {
                Sent::Concluded => {}
                Sent::Told(results) => {
                    self.absorb(batch, statement, &items, results, rung).await?;
                }
                Sent::Refused {
                    fault,
                    statement: true,
                } => {
                    self.forget(statement);
                    for at in items {
                        batch.fail(at, rung, fault.clone());
                    }
                }
                Sent::Refused { .. } => {
                    let (first, second) = items.split_at(items.len() / 2);
                    // The first half goes out first: rows whose keys are not known keep their
                    // order.
                    work.push((second.to_vec(), true));
                    work.push((first.to_vec(), true));
                }
            }
        }
        Ok(())
    }

    async fn send(
        &mut self,
        batch: &mut Batch<'_>,
        statement: &Arc<Statement>,
        items: &[usize],
        rung: Rung,
    ) -> Result<Sent, Stop> {
        let mut rows = Vec::new();
        for write in items.iter().filter_map(|at| batch.write(*at)) {
            rows.extend_from_slice(if rows.is_empty() { b"[" } else { b",[" });
            push_args(statement, write, &mut rows);
            rows.push(b']');
        }
        let heard = self
            .session
            .bulk(&statement.sql, &rows, &mut batch.tally)
            .await;
        let failure = match heard {
            Ok(Ok(answer)) => return Ok(results(batch, items, &answer, rung)),
            Ok(Err(failure)) => failure,
            Err(loss) => return Err(lost(batch, items, loss, rung)),
        };
        match meaning(&failure, &statement.table.name) {
            Meaning::Refused { fault, request } => Ok(Sent::Refused {
                fault,
                statement: request,
            }),
            Meaning::Conflict(fault) => Ok(Sent::Refused {
                fault,
                statement: false,
            }),
            Meaning::Away(fault) => {
                self.settle(batch, statement, items, &fault).await;
                Err(Stop(fault))
            }
            Meaning::Unsure(fault) => {
                unknown(batch, items, &fault.message, rung);
                Ok(Sent::Concluded)
            }
        }
    }

    /// Tells each row what became of it.
    async fn absorb(
        &mut self,
        batch: &mut Batch<'_>,
        statement: &Arc<Statement>,
        items: &[usize],
        results: Vec<Entry>,
        rung: Rung,
    ) -> Result<(), Stop> {
        batch.tally.commits += 1;
        let mut silent = Vec::new();
        let mut duplicate = None;
        for (at, entry) in items.iter().zip(results) {
            if !entry.failed() {
                batch.done(*at, rung, Done::rows(count(statement, entry.rowcount)));
                continue;
            }
            let Some(told) = entry.error else {
                silent.push(*at);
                continue;
            };
            if told.code == MISSING && statement.op != Op::Insert {
                batch.done(*at, rung, Done::rows(0));
                continue;
            }
            match meaning(&Failure::from(told), &statement.table.name) {
                Meaning::Conflict(fault) | Meaning::Away(fault) => {
                    batch.conclude(*at, again(&fault));
                }
                Meaning::Unsure(fault) => unknown(batch, &[*at], &fault.message, rung),
                Meaning::Refused { fault, .. } => {
                    if &*fault.code == "23505" {
                        duplicate.get_or_insert_with(|| fault.clone());
                    }
                    batch.fail(*at, Rung::Isolated, fault);
                }
            }
        }
        if silent.is_empty() {
            return Ok(());
        }
        self.explain(batch, statement, &silent, duplicate).await
    }

    /// Executes one write by its own statement: what it is told is what it would have been told
    /// alone, for it was.
    pub(super) async fn one(
        &mut self,
        batch: &mut Batch<'_>,
        statement: &Arc<Statement>,
        at: usize,
        rung: Rung,
    ) -> Result<(), Stop> {
        let Some(write) = batch.write(at) else {
            return Ok(());
        };
        if write.bytes() > ROW {
            let message = format!(
                "a row of {} bytes is too large; CrateDB is sent at most {ROW}",
                write.bytes()
            );
            batch.fail(at, rung, Fault::too_large(message));
            return Ok(());
        }
        let mut args = Vec::new();
        push_args(statement, write, &mut args);
        let heard = self
            .session
            .single(&statement.sql, &args, &mut batch.tally)
            .await;
        let failure = match heard {
            Ok(Ok(answer)) => {
                batch.tally.commits += 1;
                match done(statement, &answer) {
                    Ok(done) => batch.done(at, rung, done),
                    Err(why) => unknown(batch, &[at], &why, rung),
                }
                return Ok(());
            }
            Ok(Err(failure)) => failure,
            Err(loss) => return Err(lost(batch, &[at], loss, rung)),
        };
        if failure.code == Some(MISSING) && statement.op != Op::Insert {
            batch.done(at, rung, Done::rows(0));
            return Ok(());
        }
        match meaning(&failure, &statement.table.name) {
            Meaning::Refused {
                fault,
                request: whole,
            } => {
                if whole {
                    self.forget(statement);
                }
                batch.fail(at, rung, fault);
            }
            Meaning::Conflict(fault) => batch.conclude(at, again(&fault)),
            Meaning::Unsure(fault) => unknown(batch, &[at], &fault.message, rung),
            Meaning::Away(fault) => {
                batch.conclude(at, again(&fault));
                return Err(Stop(fault));
            }
        }
        Ok(())
    }
}

/// Pieces of a step that fit into one request each.
fn chunks(batch: &Batch<'_>, items: &[usize]) -> Vec<Vec<usize>> {
    let mut chunks: Vec<Vec<usize>> = Vec::new();
    let mut size = 0;
    for at in items {
        let bytes = batch.write(*at).map_or(0, Write::bytes);
        match chunks.last_mut() {
            Some(chunk) if size + bytes <= REQUEST => chunk.push(*at),
            _ => {
                size = 0;
                chunks.push(vec![*at]);
            }
        }
        size += bytes;
    }
    chunks
}

/// The values of a row, in the order of the statement's parameters.
fn push_args(statement: &Statement, write: &Write, out: &mut Vec<u8>) {
    for (place, slot) in statement.slots.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        let value = write
            .row
            .get(slot.place)
            .unwrap_or(&windrow_core::Value::Null);
        // What cannot be written was refused when the write was placed.
        if encode::push(slot.column.kind, value, out).is_err() {
            out.extend_from_slice(b"null");
        }
    }
}

/// Rows that a statement counts.
fn count(statement: &Statement, rows: i64) -> u64 {
    let rows = u64::try_from(rows).unwrap_or_default();
    if statement.counts_one { 1 } else { rows }
}

fn done(statement: &Statement, answer: &Answer) -> Result<Done, String> {
    let reply: Reply<'_> = serde_json::from_slice(&answer.body)
        .map_err(|error| super::session::unreadable(&error).message.to_string())?;
    let Some(wanted) = &statement.returned else {
        return Ok(Done::rows(count(
            statement,
            reply.rowcount.unwrap_or_default(),
        )));
    };
    let rows = reply.rows.unwrap_or_default();
    let rows = rows.iter().map(|row| returned(wanted, row)).collect();
    Ok(super::lookup::gave(statement, rows))
}

fn results(batch: &mut Batch<'_>, items: &[usize], answer: &Answer, rung: Rung) -> Sent {
    let reply: Result<Reply<'_>, _> = serde_json::from_slice(&answer.body);
    match reply.map(|reply| reply.results) {
        Ok(Some(results)) if results.len() == items.len() => match repeated(&results) {
            Some(fault) => Sent::Refused {
                fault,
                statement: false,
            },
            None => Sent::Told(results),
        },
        _ => {
            unknown(
                batch,
                items,
                "the answer of CrateDB to a bulk is not one entry a row",
                rung,
            );
            Sent::Concluded
        }
    }
}

/// Servers before 5.10.11 tell every row the error by which one of them had the whole bulk refused.
fn repeated(results: &[Entry]) -> Option<Fault> {
    let first = results.first()?.error.as_ref()?;
    let same = |entry: &Entry| {
        let told = entry.error.as_ref();
        told.is_some_and(|told| told.code == first.code && told.message == first.message)
    };
    let whole = results.len() > 1 && results.iter().all(same);
    (whole && [4000, 4003].contains(&first.code)).then(|| Fault::invalid(first.message.clone()))
}

/// There is no answer. What left may have been written.
fn lost(batch: &mut Batch<'_>, items: &[usize], loss: Loss, rung: Rung) -> Stop {
    match loss {
        Loss::NotSent(fault) => Stop(fault),
        Loss::Unanswered(why) | Loss::TooLarge(why) => {
            unknown(batch, items, &why, rung);
            Stop(Fault::unavailable(why))
        }
    }
}

/// It cannot be told whether the rows were written.
pub(super) fn unknown(batch: &mut Batch<'_>, items: &[usize], why: &str, rung: Rung) {
    let message = format!("it cannot be known whether this was written: {why}");
    for at in items {
        batch.fail(*at, rung, Fault::unknown(message.clone()));
    }
}
