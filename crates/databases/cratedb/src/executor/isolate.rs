//! Executes a step of writes as bulks, and isolates rows that fail.
//!
//! A bulk that the server refuses as a whole is halved until the row is found that is the reason.
//! All other rows are written together.
//!
//! The server reports an error message for only the first ten failed rows of each shard. A failed
//! row was not written, so it may run again by itself for its true error. Many of them are settled
//! by one query for their keys, because reads by primary key see every answered write.

use std::collections::HashSet;

use windrow_core::{Fault, OnConflict, Op, Rung, WriteDone};
use windrow_database::web::{Batch, Stop};

use super::connection::Connection;
use super::lookup;
use super::send;
use super::send::BulkResult;
use super::settle;
use super::settle::FailedRows;
use super::sql::Statement;

/// Bytes of values in the largest bulk. CrateDB accepts 100 MiB (`http.max_content_length`).
const MAX_REQUEST_BYTES: usize = 16 << 20;

/// The number of rows that failed without a message up to which they run again without a query for
/// their keys.
const MAX_UNQUERIED: usize = 2;

/// Executes writes of one statement.
///
/// # Errors
/// The database accepts no writes now, or the connection was lost.
pub(super) async fn write(
    connection: &mut Connection,
    batch: &mut Batch<'_>,
    statement: &Statement,
    items: &[usize],
) -> Result<(), Stop> {
    let mut todo = batch.parts(items, MAX_REQUEST_BYTES, usize::MAX);
    while let Some(part) = todo.pop() {
        let (rung, items) = (batch.rung(&part), &part.items);
        if let [at] = items.as_slice() {
            send::one(connection, batch, statement, *at, rung).await?;
            continue;
        }
        match send::bulk(connection, batch, statement, items, rung).await? {
            BulkResult::Concluded => {}
            BulkResult::Rows(entries) => {
                let failed = settle::rows(batch, statement, items, rung, entries);
                explain(connection, batch, statement, failed).await?;
            }
            BulkResult::Unavailable(fault) => {
                settle_unavailable(connection, batch, statement, items, &fault).await;
                return Err(Stop(fault));
            }
            // The first half is sent first: rows whose keys are not known keep their order.
            BulkResult::Refused => todo.extend(part.halves()),
        }
    }
    Ok(())
}

/// Finds the true errors of rows that failed without a message.
async fn explain(
    connection: &mut Connection,
    batch: &mut Batch<'_>,
    statement: &Statement,
    failed: FailedRows,
) -> Result<(), Stop> {
    let FailedRows {
        silent,
        mut duplicate,
    } = failed;
    let is_plain = statement.op != Op::Insert || statement.on_conflict == OnConflict::Error;
    let existing = match is_plain && silent.len() > MAX_UNQUERIED {
        true => lookup::existing(connection, batch, statement, &silent).await?,
        false => None,
    };
    for at in silent {
        let exists = existing.as_ref().map(|existing| existing.contains(&at));
        match (statement.op, exists, &duplicate) {
            (Op::Insert, Some(true), Some(fault)) => {
                batch.fail(at, Rung::Isolated, fault.clone());
            }
            (Op::Update | Op::Delete, Some(false), _) => {
                batch.done(at, Rung::Isolated, WriteDone::rows(0));
            }
            _ => {
                send::one(connection, batch, statement, at, Rung::Isolated).await?;
                let fault = batch.fault(at).filter(|fault| &*fault.code == "23505");
                duplicate = duplicate.or_else(|| fault.cloned());
            }
        }
    }
    Ok(())
}

/// Concludes a bulk that the database could not execute as a whole. Other shards may have executed
/// their rows, and all requests of the bulk have ended, so a query shows which rows exist.
async fn settle_unavailable(
    connection: &mut Connection,
    batch: &mut Batch<'_>,
    statement: &Statement,
    items: &[usize],
    fault: &Fault,
) {
    let upserts = statement.op == Op::Insert && statement.on_conflict == OnConflict::Update;
    if upserts || statement.op == Op::Update {
        // Written again, the same values change nothing.
        batch.retry(items, fault);
        return;
    }
    let existing: Option<HashSet<usize>> = lookup::existing(connection, batch, statement, items)
        .await
        .ok()
        .flatten();
    let deletes = statement.op == Op::Delete;
    let is_untouched = |at: &&usize| {
        let existing = existing.as_ref();
        existing.is_some_and(|existing| existing.contains(at) == deletes)
    };
    let (untouched, unknown): (Vec<usize>, Vec<usize>) = items.iter().partition(is_untouched);
    batch.retry(&untouched, fault);
    batch.unknown(&unknown, Rung::Isolated, &fault.message);
}
