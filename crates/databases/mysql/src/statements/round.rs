//! Sends the statements of a transaction and reads their answers. Called by `attempt`; it commits
//! only as [`Closing`] says.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use windrow_core::Verdict;
use windrow_mysqlwire::Reply;

use super::answers::StepAnswer;
use super::client_batch::ClientBatch;
use super::client_connection::{ClientConnection, Stop};
use super::closing::Closing;
use super::lane_session::success;
use super::steps::ClientStep;
use super::table_look::TableLook;
use crate::fault::{Scope, unknown};

/// The tables of statements.
#[derive(Default)]
pub(super) struct TableLooks {
    /// The tables that are checked along with the statements.
    pub(super) checked: Vec<Arc<TableLook>>,
    /// True if all were checked a short time ago.
    pub(super) are_trusted: bool,
}

/// The answers to statements.
#[derive(Default)]
pub(super) struct RoundAnswers {
    pub(super) steps: Vec<StepAnswer>,
    /// The server's answer if it has committed, or failed to. `None` leaves the transaction open.
    pub(super) closed: Option<Reply>,
    /// True if the statements may have committed one by one.
    is_out_of_transaction: bool,
}

/// The statements that are sent together.
struct Round<'r> {
    steps: &'r [ClientStep],
    /// The errors of statements that cannot be prepared, by their places.
    refused: HashMap<usize, Bytes>,
    closing: Closing,
    /// True if no statement waits long for a lock.
    hurries: bool,
}

impl TableLooks {
    /// Returns the tables of statements.
    pub(super) fn of(batch: &ClientBatch<'_>, steps: &[ClientStep]) -> Self {
        let mut tables: Vec<&Arc<TableLook>> = Vec::new();
        for unit in steps.iter().filter_map(|step| step.units.first()) {
            let meaning = batch.call(*unit).and_then(|of| of.meaning);
            let table = meaning.map(|meaning| &meaning.table);
            tables.extend(table.filter(|table| !tables.iter().any(|t| Arc::ptr_eq(t, table))));
        }
        let are_trusted = tables.iter().all(|table| table.is_trusted());
        tables.retain(|table| table.is_due());
        Self {
            checked: tables.into_iter().cloned().collect(),
            are_trusted,
        }
    }
}

/// Sends statements and reads their answers. `hurries`: none of them waits long for a lock.
///
/// # Errors
/// The connection cannot be used any more. Units that may have been written have their verdict.
pub(super) async fn execute(
    connection: &mut ClientConnection,
    batch: &mut ClientBatch<'_>,
    steps: &[ClientStep],
    looks: &TableLooks,
    hurries: bool,
) -> Result<RoundAnswers, Stop> {
    let refused = connection.prepare(batch, steps).await?;
    // Beside the server a further round trip costs less than the outcomes that a lost connection
    // would leave unknown.
    let can_close = looks.are_trusted && !hurries && refused.is_empty();
    let closing = match can_close && connection.session.is_far() {
        true => Closing::along(steps),
        false => Closing::Apart,
    };
    let round = Round {
        steps,
        refused,
        closing,
        hurries,
    };
    let mut answers = RoundAnswers::default();
    let exchanged = exchange(connection, batch, &round, looks, &mut answers).await;
    if let Err(Stop::Lost(why)) = &exchanged
        && answers.may_be_committed(closing)
    {
        batch.conclude_rest(&Verdict::Final(Err(unknown(why).into())));
    }
    exchanged.map(|()| answers)
}

async fn exchange(
    connection: &mut ClientConnection,
    batch: &ClientBatch<'_>,
    round: &Round<'_>,
    looks: &TableLooks,
    answers: &mut RoundAnswers,
) -> Result<(), Stop> {
    let begin = round.closing.begin(connection.session.has_autocommit);
    let end = round.closing.end();
    if let Some(begin) = begin {
        connection.session.put_query(begin).await?;
    }
    for (at, step) in round.steps.iter().enumerate() {
        if !round.refused.contains_key(&at) {
            let count = round.closing.count(step);
            connection.put_step(batch, step, count).await?;
        }
    }
    if let Some(end) = &end {
        connection.session.put_query(end.as_bytes()).await?;
    }
    connection.put_guards(&looks.checked).await?;
    connection.session.send().await?;
    connection.session.count_trip();
    if begin.is_some() {
        begun(connection, answers).await?;
    }
    let mut has_met_lock = round.hurries;
    for (at, step) in round.steps.iter().enumerate() {
        has_met_lock |= answers.steps.last().is_some_and(StepAnswer::met_lock);
        let is_counted = round.closing.count(step).is_some();
        answers.steps.push(match round.refused.get(&at) {
            Some(error) => StepAnswer::refused(error),
            None => {
                connection
                    .step_answer(step, is_counted, has_met_lock)
                    .await?
            }
        });
    }
    if end.is_some() {
        let reply = connection.reply(has_met_lock).await?;
        let is_open = success(&reply).is_ok() && !connection.session.has_autocommit;
        answers.closed = (!is_open).then_some(reply);
    }
    Ok(())
}

/// Reads the answer to the beginning of the transaction.
async fn begun(connection: &mut ClientConnection, answers: &mut RoundAnswers) -> Result<(), Stop> {
    let reply = connection.session.reply().await?;
    let Err(refusal) = success(&reply) else {
        return Ok(());
    };
    if refusal.scope == Scope::Connection {
        return Err(Stop::Ended(refusal.fault));
    }
    answers.is_out_of_transaction = true;
    Err(Stop::Lost(refusal.fault.message.as_ref().into()))
}

impl RoundAnswers {
    /// Returns true if the server may have committed although the last answers are missing. It does
    /// not behind a statement that failed.
    fn may_be_committed(&self, closing: Closing) -> bool {
        let mut steps = self.steps.iter();
        let are_fine = steps.all(|step| success(&step.reply).is_ok());
        self.is_out_of_transaction || closing != Closing::Apart && are_fine
    }
}
