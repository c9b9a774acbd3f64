//! Sends one write as its own statement, or many as a bulk.

use windrow_core::{Fault, Rung, Value, Write};
use windrow_database::web::{Answer, Batch, Refusal, Scope, Stop};

use super::connection::Connection;
use super::settle;
use super::sql::Statement;
use crate::answer::{Entry, Reply};
use crate::fault::{REFUSED, refusal};
use crate::values::encode;

/// Bytes of the largest row.
const MAX_ROW_BYTES: usize = 96 << 20;

/// The result of a bulk.
pub(super) enum BulkResult {
    /// The server returned a result for each row.
    Rows(Vec<Entry>),
    /// The server refused all rows because of one of them. None was written.
    Refused,
    /// The database accepts no writes now. Some of its shards may have written their rows.
    Unavailable(Fault),
    /// All rows have their verdicts.
    Concluded,
}

/// Executes one write as its own statement, so that its outcome is the one it has by itself.
///
/// # Errors
/// The database accepts no writes now, or the connection was lost.
pub(super) async fn one(
    connection: &mut Connection,
    batch: &mut Batch<'_>,
    statement: &Statement,
    at: usize,
    rung: Rung,
) -> Result<(), Stop> {
    let Some(write) = batch.write(at) else {
        return Ok(());
    };
    if write.bytes() > MAX_ROW_BYTES {
        let message = format!(
            "a row of {} bytes is too large; CrateDB is sent at most {MAX_ROW_BYTES}",
            write.bytes()
        );
        batch.fail(at, rung, Fault::too_large(message));
        return Ok(());
    }
    let mut args = Vec::new();
    push_args(statement, write, &mut args);
    let session = &mut connection.session;
    match session
        .single(&statement.sql, &args, &mut batch.tally)
        .await
    {
        Ok(Ok(answer)) => {
            settle::answered(batch, statement, at, rung, &answer);
            Ok(())
        }
        Ok(Err(failure)) => settle::refused(connection, batch, statement, at, rung, &failure),
        Err(loss) => Err(batch.lost(&[at], rung, loss)),
    }
}

/// Executes many writes of one statement as a bulk. The server reports a result for each row, and
/// nothing of the bulk is written if a value in it cannot be parsed.
///
/// # Errors
/// The connection was lost.
pub(super) async fn bulk(
    connection: &mut Connection,
    batch: &mut Batch<'_>,
    statement: &Statement,
    items: &[usize],
    rung: Rung,
) -> Result<BulkResult, Stop> {
    let mut rows = Vec::new();
    for write in items.iter().filter_map(|at| batch.write(*at)) {
        rows.extend_from_slice(if rows.is_empty() { b"[" } else { b",[" });
        push_args(statement, write, &mut rows);
        rows.push(b']');
    }
    let session = &mut connection.session;
    let failure = match session.bulk(&statement.sql, &rows, &mut batch.tally).await {
        Ok(Ok(answer)) => return Ok(entries(batch, items, rung, &answer)),
        Ok(Err(failure)) => failure,
        Err(loss) => return Err(batch.lost(items, rung, loss)),
    };
    let Refusal { fault, scope } = refusal(&failure, &statement.table.name);
    Ok(match scope {
        Scope::Write => BulkResult::Refused,
        Scope::Request => {
            connection.forget(statement);
            batch.fail_all(items, rung, &fault);
            BulkResult::Concluded
        }
        Scope::Database => BulkResult::Unavailable(fault),
        Scope::Unknown => {
            batch.unknown(items, rung, &fault.message);
            BulkResult::Concluded
        }
    })
}

fn entries(batch: &mut Batch<'_>, items: &[usize], rung: Rung, answer: &Answer) -> BulkResult {
    let reply: Result<Reply<'_>, _> = serde_json::from_slice(&answer.body);
    match reply.map(|reply| reply.results) {
        Ok(Some(results)) if results.len() == items.len() => match is_repeated(&results) {
            true => BulkResult::Refused,
            false => BulkResult::Rows(results),
        },
        _ => {
            let why = "the answer of CrateDB to a bulk is not one entry a row";
            batch.unknown(items, rung, why);
            BulkResult::Concluded
        }
    }
}

/// Returns true if all rows have the error of the one row for which the whole bulk was refused.
/// Servers before 5.10.11 answer so.
fn is_repeated(results: &[Entry]) -> bool {
    let Some(first) = results.first().and_then(|entry| entry.error.as_ref()) else {
        return false;
    };
    let same = |entry: &Entry| {
        let error = entry.error.as_ref();
        error.is_some_and(|error| error.code == first.code && error.message == first.message)
    };
    results.len() > 1 && REFUSED.contains(&first.code) && results.iter().all(same)
}

/// Appends the values of a row, in the order of the statement's parameters.
fn push_args(statement: &Statement, write: &Write, out: &mut Vec<u8>) {
    for (place, slot) in statement.slots.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        let value = write.row().get(slot.place).unwrap_or(&Value::Null);
        // Values that cannot be written were refused by `plan`.
        if encode::push(slot.column.kind, value, out).is_err() {
            out.extend_from_slice(b"null");
        }
    }
}
