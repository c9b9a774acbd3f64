//! Executes units by themselves: each commits by itself in one round trip.

use std::sync::Arc;

use windrow_core::{Fault, Rung, Tally, Verdict};
use windrow_mysqlwire::Reply;

use super::answers::StepAnswer;
use super::client_batch::ClientBatch;
use super::client_connection::{ClientConnection, Stop};
use super::command::is_prepared;
use super::lane_session::success;
use super::meaning::Generates;
use super::steps::{ClientStep, single};
use super::table_look::TableLook;
use crate::fault::{Refusal, Scope, unknown};

/// Executes a unit by itself: it commits by itconnection.
pub(super) async fn lone(
    connection: &mut ClientConnection,
    batch: &mut ClientBatch<'_>,
    unit: u32,
    tally: &mut Tally,
) -> Result<(), Stop> {
    let limits = connection.limits();
    let Some(of) = batch.call(unit) else {
        return Ok(());
    };
    let mut step = single(&of, unit, limits);
    connection.is_spoiled |= of.meaning.is_none();
    let generates = of
        .meaning
        .map_or(Generates::Unknown, |m| m.generates(of.call));
    let meaning = of.meaning.cloned();
    let table = meaning.as_ref().map(|meaning| &meaning.table);
    let tables: Vec<_> = table
        .filter(|t| !t.is_trusted())
        .cloned()
        .into_iter()
        .collect();
    // Later statements would hide the warnings.
    step.shows_warnings |= !tables.is_empty() || step.asks_id;
    if is_prepared(of.call) {
        let errors = connection
            .prepare(batch, std::slice::from_ref(&step))
            .await?;
        if let Some(error) = errors.into_values().next() {
            let refusal = crate::fault::refusal_of(&error);
            return refused(connection, batch, unit, refusal).await;
        }
    }
    tally.add(
        if batch.len() == 1 {
            Rung::Solo
        } else {
            Rung::Isolated
        },
        1,
    );
    let answered = lone_answer(connection, batch, &step, &tables).await;
    let mut answer = match answered {
        Ok(Some(answer)) => answer,
        Ok(None) => {
            let why = Fault::unavailable("the server refused SET autocommit");
            batch.conclude(unit, Verdict::RolledBack(why));
            return Ok(());
        }
        // The server may have executed the statement.
        Err(Stop::Lost(why)) => {
            batch.conclude(unit, Verdict::Final(Err(unknown(&why).into())));
            connection.session.give_up();
            return Err(Stop::Lost(why));
        }
        Err(ended) => return Err(ended),
    };
    if let Err(refusal) = success(&answer.reply) {
        return refused(connection, batch, unit, *refusal).await;
    }
    tally.commits += 1;
    let has_warned = success(&answer.reply).is_ok_and(|ok| ok.warning_count > 0);
    if let Some(meaning) = &meaning {
        meaning.note_warnings(has_warned);
    }
    if has_warned && answer.warnings.is_none() {
        // If the connection is lost now, the warnings' texts are lost with it.
        let shown = connection.session.ask("SHOW WARNINGS").await;
        let none = Reply::Ok(Default::default());
        answer.warnings = Some(shown.unwrap_or(none));
    }
    if let Some(done) = answer.single(generates) {
        batch.finish(unit, Ok(done));
    }
    Ok(())
}

/// Sends a statement that commits by itself, and reads its answers. Returns `None` if the
/// statement did not commit.
async fn lone_answer(
    connection: &mut ClientConnection,
    batch: &ClientBatch<'_>,
    step: &ClientStep,
    tables: &[Arc<TableLook>],
) -> Result<Option<StepAnswer>, Stop> {
    let switches = !connection.session.has_autocommit;
    if switches {
        connection.session.put_query(b"SET autocommit = 1").await?;
    }
    connection.put_step(batch, step).await?;
    connection.put_guards(tables).await?;
    connection.session.send().await?;
    connection.session.count_trip();
    let mut is_on = true;
    if switches {
        is_on = success(&connection.session.reply().await?).is_ok();
    }
    let answer = connection.step_answer(step, false).await?;
    for table in connection.stale(tables).await? {
        connection.catalog.retire_table(&table.name);
    }
    if !is_on {
        connection.roll_back().await?;
        return Ok(None);
    }
    Ok(Some(answer))
}

/// Concludes a unit whose statement was refused: nothing was written.
async fn refused(
    connection: &mut ClientConnection,
    batch: &mut ClientBatch<'_>,
    unit: u32,
    refusal: Refusal,
) -> Result<(), Stop> {
    match refusal.scope {
        Scope::Connection => return Err(Stop::Ended(refusal.fault)),
        Scope::Transaction => batch.conclude(unit, Verdict::RolledBack(refusal.fault)),
        Scope::Lock => {
            connection.note_lock();
            connection.conclude_waiting(batch, vec![(unit, refusal.fault)]);
        }
        Scope::Statement => batch.finish(unit, Err(refusal.fault)),
    }
    Ok(())
}
