//! A write that is sent by itself.

use std::sync::Arc;

use windrow_core::{Fault, Op, RowDone, RowWrite, Rung, Work as _};
use windrow_database::web::{Answer, Batch, Loss, Meaning};

use super::connection::{Connection, Stop, retry};
use super::lookup::{gave, returned};
use super::session::unreadable;
use super::statement::Statement;
use crate::answer::Reply;
use crate::fault::{MISSING, meaning};
use crate::values::encode;

/// The most bytes of one row.
const ROW: usize = 96 << 20;

impl Connection {
    /// Executes one write as its own statement, so that its outcome is the one it has alone.
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
        let answered = self
            .session
            .single(&statement.sql, &args, &mut batch.tally)
            .await;
        let failure = match answered {
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
            batch.done(at, rung, RowDone::rows(0));
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
            Meaning::Conflict(fault) => batch.conclude(at, retry(&fault)),
            Meaning::Unsure(fault) => unknown(batch, &[at], &fault.message, rung),
            Meaning::Away(fault) => {
                batch.conclude(at, retry(&fault));
                return Err(Stop(fault));
            }
        }
        Ok(())
    }
}

/// The values of a row, in the order of the statement's parameters.
pub(super) fn push_args(statement: &Statement, write: &RowWrite, out: &mut Vec<u8>) {
    for (place, slot) in statement.slots.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        let value = write
            .row
            .get(slot.place)
            .unwrap_or(&windrow_core::Value::Null);
        // What cannot be written was refused when the write was bound.
        if encode::push(slot.column.kind, value, out).is_err() {
            out.extend_from_slice(b"null");
        }
    }
}

/// Returns the number of rows of a statement.
pub(super) fn count(statement: &Statement, rows: i64) -> u64 {
    let rows = u64::try_from(rows).unwrap_or_default();
    if statement.counts_one { 1 } else { rows }
}

fn done(statement: &Statement, answer: &Answer) -> Result<RowDone, String> {
    let reply: Reply<'_> = serde_json::from_slice(&answer.body)
        .map_err(|error| unreadable(&error).message.to_string())?;
    let Some(wanted) = &statement.returned else {
        return Ok(RowDone::rows(count(
            statement,
            reply.rowcount.unwrap_or_default(),
        )));
    };
    let rows = reply.rows.unwrap_or_default();
    let rows = rows.iter().map(|row| returned(wanted, row)).collect();
    Ok(gave(statement, rows))
}

/// There is no answer. What left may have been written.
pub(super) fn lost(batch: &mut Batch<'_>, items: &[usize], loss: Loss, rung: Rung) -> Stop {
    match loss {
        Loss::NotSent(fault) => Stop(fault),
        Loss::Unanswered(why) | Loss::TooLarge(why) => {
            unknown(batch, items, &why, rung);
            Stop(Fault::unavailable(why))
        }
    }
}

/// Concludes writes whose outcome is unknown.
pub(super) fn unknown(batch: &mut Batch<'_>, items: &[usize], why: &str, rung: Rung) {
    let message = format!("it cannot be known whether this was written: {why}");
    for at in items {
        batch.fail(*at, rung, Fault::unknown(message.clone()));
    }
}
