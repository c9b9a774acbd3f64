//! Executes units by themselves: each commits by itself in one round trip.

use std::sync::Arc;

use windrow_core::{Fault, Rung, Tally, Verdict};
use windrow_mysqlwire::{Reply, Success};

use super::answers::StepAnswer;
use super::client_batch::ClientBatch;
use super::client_connection::{ClientConnection, Stop};
use super::lane_session::success;
use super::meaning::Generates;
use super::steps::{ClientStep, single};
use super::table_look::TableLook;
use crate::fault::{Refusal, Scope, unknown};

/// Executes a unit by itself: it commits by itself.
pub(super) async fn lone(
    connection: &mut ClientConnection,
    batch: &mut ClientBatch<'_>,
    unit: u32,
    tally: &mut Tally,
) -> Result<(), Stop> {
    let Some(of) = batch.call(unit) else {
        return Ok(());
    };
    let mut step = single(&of, unit, connection.limits());
    connection.is_spoiled |= of.meaning.is_none();
    let meaning = of.meaning.cloned();
    let table = meaning.as_ref().map(|meaning| &meaning.table);
    let tables: Vec<_> = table
        .filter(|table| table.is_due())
        .cloned()
        .into_iter()
        .collect();
    // Later statements would hide the warnings.
    step.shows_warnings |= !tables.is_empty() || step.asks_id;
    let refused = connection
        .prepare(batch, std::slice::from_ref(&step))
        .await?;
    let is_solo = batch.len() == 1;
    tally.add(if is_solo { Rung::Solo } else { Rung::Isolated }, 1);
    let answered = match refused.get(&0) {
        Some(error) => Ok(Some(StepAnswer::refused(error))),
        None => lone_answer(connection, batch, &step, &tables).await,
    };
    let Some(answer) = known_answer(batch, unit, answered)? else {
        return Ok(());
    };
    let ok = match success(&answer.reply) {
        Ok(ok) => ok,
        Err(refusal) => {
            if let Some(meaning) = &meaning {
                meaning.note_failure();
            }
            return refused_alone(connection, batch, unit, *refusal, &answer);
        }
    };
    tally.commits += 1;
    if let Some(meaning) = &meaning {
        meaning.note_warnings(ok.warning_count > 0);
        if step.generates == Generates::Never && ok.insert_id != 0 {
            connection.catalog.retire_table(&meaning.table.name);
        }
    }
    if let Some(done) = answer.single(step.generates) {
        batch.finish(unit, Ok(done));
    }
    Ok(())
}

/// Returns the answer to a unit that was executed by itself. `None`: the unit has its verdict.
fn known_answer(
    batch: &mut ClientBatch<'_>,
    unit: u32,
    answered: Result<Option<StepAnswer>, Stop>,
) -> Result<Option<StepAnswer>, Stop> {
    match answered {
        Ok(None) => {
            let why = Fault::unavailable("the server refused SET autocommit");
            batch.conclude(unit, Verdict::RolledBack(why));
            Ok(None)
        }
        // The server may have executed the statement.
        Err(Stop::Lost(why)) => {
            batch.conclude(unit, Verdict::Final(Err(unknown(&why).into())));
            Err(Stop::Lost(why))
        }
        other => other,
    }
}

/// Sends a statement that commits by itself, and reads its answers. Returns `None` if the
/// statement did not commit.
async fn lone_answer(
    connection: &mut ClientConnection,
    batch: &mut ClientBatch<'_>,
    step: &ClientStep,
    tables: &[Arc<TableLook>],
) -> Result<Option<StepAnswer>, Stop> {
    let switches = !connection.session.has_autocommit;
    if switches {
        connection.session.put_query(b"SET autocommit = 1").await?;
    }
    connection.put_step(batch, step, None).await?;
    connection.put_guards(tables).await?;
    connection.session.send().await?;
    connection.session.count_trip();
    let mut is_on = true;
    if switches {
        is_on = success(&connection.session.reply().await?).is_ok();
    }
    let mut answer = connection.step_answer(step, false, false).await?;
    if answer.needs_warnings() {
        // If the connection is lost now, the warnings' texts are lost with it.
        let shown = connection.session.ask("SHOW WARNINGS").await;
        answer.warnings = Some(shown.unwrap_or(Reply::Ok(Success::default())));
    }
    let stale = connection.stale(tables).await?;
    connection.retire(&stale);
    if !is_on {
        connection.roll_back(batch).await?;
        return Ok(None);
    }
    Ok(Some(answer))
}

/// Concludes a unit whose statement was refused: nothing was written.
fn refused_alone(
    connection: &mut ClientConnection,
    batch: &mut ClientBatch<'_>,
    unit: u32,
    refusal: Refusal,
    answer: &StepAnswer,
) -> Result<(), Stop> {
    let fault = answer
        .failure(refusal.fault.clone())
        .unwrap_or(refusal.fault);
    match refusal.scope {
        Scope::Connection => return Err(Stop::Ended(fault)),
        Scope::Transaction => batch.conclude(unit, Verdict::RolledBack(fault)),
        Scope::Lock => {
            connection.note_lock();
            connection.conclude_waiting(batch, vec![(unit, fault)]);
        }
        Scope::Statement => batch.finish(unit, Err(fault)),
    }
    Ok(())
}
