//! Turns answers into verdicts.

use windrow_core::{Fault, Op, Rung, WriteDone};
use windrow_database::web::{Answer, Batch, Refusal, Scope, Stop};

use super::connection::Connection;
use super::session::unreadable;
use super::sql::Statement;
use crate::answer::{Entry, Failure, Reply};
use crate::fault::{DUPLICATE, MISSING, refusal};

/// Rows of a bulk that failed.
#[derive(Debug, Default)]
pub(super) struct FailedRows {
    /// Rows that failed without a message.
    pub(super) silent: Vec<usize>,
    /// The fault of a row whose key exists already.
    pub(super) duplicate: Option<Fault>,
}

/// Concludes a write that was answered.
pub(super) fn answered(
    batch: &mut Batch<'_>,
    statement: &Statement,
    at: usize,
    rung: Rung,
    answer: &Answer,
) {
    batch.tally.commits += 1;
    match done(statement, answer) {
        Ok(done) => batch.done(at, rung, done),
        Err(fault) => batch.unknown(&[at], rung, &fault.message),
    }
}

fn done(statement: &Statement, answer: &Answer) -> Result<WriteDone, Fault> {
    let reply: Reply<'_> =
        serde_json::from_slice(&answer.body).map_err(|error| unreadable(&error))?;
    let Some(wanted) = &statement.returned else {
        let rows = reply.rowcount.unwrap_or_default();
        return Ok(WriteDone::rows(statement.count(rows)));
    };
    let rows = reply.rows.unwrap_or_default();
    let rows = rows.iter().map(|row| wanted.values(row)).collect();
    Ok(statement.gave(rows))
}

/// Concludes a write that was sent by itself and failed.
///
/// # Errors
/// The database accepts no writes now.
pub(super) fn refused(
    connection: &Connection,
    batch: &mut Batch<'_>,
    statement: &Statement,
    at: usize,
    rung: Rung,
    failure: &Failure,
) -> Result<(), Stop> {
    if failure.code == Some(MISSING) && statement.op != Op::Insert {
        batch.done(at, rung, WriteDone::rows(0));
        return Ok(());
    }
    let Refusal { fault, scope } = refusal(failure, &statement.table.name);
    match scope {
        Scope::Write if fault.may_retry() => batch.retry(&[at], &fault),
        Scope::Write => batch.fail(at, rung, fault),
        Scope::Request => {
            connection.forget(statement);
            batch.fail(at, rung, fault);
        }
        Scope::Unknown => batch.unknown(&[at], rung, &fault.message),
        Scope::Database => {
            batch.retry(&[at], &fault);
            return Err(Stop(fault));
        }
    }
    Ok(())
}

/// Concludes the rows of a bulk, except for those that failed without a message.
pub(super) fn rows(
    batch: &mut Batch<'_>,
    statement: &Statement,
    items: &[usize],
    rung: Rung,
    entries: Vec<Entry>,
) -> FailedRows {
    batch.tally.commits += 1;
    let mut failed = FailedRows::default();
    for (at, entry) in items.iter().zip(entries) {
        if !entry.failed() {
            let rows = statement.count(entry.rowcount);
            batch.done(*at, rung, WriteDone::rows(rows));
            continue;
        }
        let Some(error) = entry.error else {
            failed.silent.push(*at);
            continue;
        };
        let is_duplicate = error.code == DUPLICATE;
        if error.code == MISSING && statement.op != Op::Insert {
            batch.done(*at, rung, WriteDone::rows(0));
            continue;
        }
        let Refusal { fault, scope } = refusal(&Failure::from(error), &statement.table.name);
        match scope {
            Scope::Database => batch.retry(&[*at], &fault),
            Scope::Write if fault.may_retry() => batch.retry(&[*at], &fault),
            Scope::Unknown => batch.unknown(&[*at], rung, &fault.message),
            Scope::Write | Scope::Request => {
                if is_duplicate {
                    failed.duplicate.get_or_insert_with(|| fault.clone());
                }
                batch.fail(*at, Rung::Isolated, fault);
            }
        }
    }
    failed
}
