//! A step of writes: one bulk, and what is set apart when it fails.
//!
//! A bulk tells row by row what became of it. Where the server refuses it as a whole, because a
//! value in it cannot be read, nothing of it is stored, and it is halved until the row is found
//! that is to blame; all others are written together.

use std::sync::Arc;

use windrow_core::{Fault, Op, RowDone, RowWrite, Rung, Work as _};
use windrow_database::web::{Answer, Batch, Meaning};

use super::connection::{Connection, Stop, retry};
use super::single::{count, lost, push_args, unknown};
use super::statement::Statement;
use crate::answer::{Entry, Failure, Reply};
use crate::fault::{MISSING, meaning};

/// The most bytes of values in one request. CrateDB takes 100 MiB (`http.max_content_length`).
const REQUEST: usize = 16 << 20;

/// The result of a bulk request.
enum Sent {
    /// The server returned a result for each row.
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
        let rung = if batch.is_single() {
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
                    self.tell_rows(batch, statement, &items, results, rung)
                        .await?;
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
        let answered = self
            .session
            .bulk(&statement.sql, &rows, &mut batch.tally)
            .await;
        let failure = match answered {
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
    async fn tell_rows(
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
                batch.done(*at, rung, RowDone::rows(count(statement, entry.rowcount)));
                continue;
            }
            let Some(error) = entry.error else {
                silent.push(*at);
                continue;
            };
            if error.code == MISSING && statement.op != Op::Insert {
                batch.done(*at, rung, RowDone::rows(0));
                continue;
            }
            match meaning(&Failure::from(error), &statement.table.name) {
                Meaning::Conflict(fault) | Meaning::Away(fault) => {
                    batch.conclude(*at, retry(&fault));
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
}

/// Pieces of a step that fit into one request each.
fn chunks(batch: &Batch<'_>, items: &[usize]) -> Vec<Vec<usize>> {
    let mut chunks: Vec<Vec<usize>> = Vec::new();
    let mut size = 0;
    for at in items {
        let bytes = batch.write(*at).map_or(0, RowWrite::bytes);
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
        let error = entry.error.as_ref();
        error.is_some_and(|error| error.code == first.code && error.message == first.message)
    };
    let whole = results.len() > 1 && results.iter().all(same);
    (whole && [4000, 4003].contains(&first.code)).then(|| Fault::invalid(first.message.clone()))
}
