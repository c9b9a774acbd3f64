//! Executes units in one transaction: sends all statements, reads all answers, and commits or rolls
//! back. Nothing is concluded by answers of a transaction that was rolled back, except for units
//! that must run elsewhere.

use std::collections::HashSet;
use std::sync::Arc;

use windrow_core::{Fault, FaultClass, Rung, Tally, Verdict, WriteDone};
use windrow_mysqlwire::Reply;

use super::answers::StepAnswer;
use super::client_batch::ClientBatch;
use super::client_connection::{ClientConnection, Stop};
use super::lane_session::success;
use super::meaning::Generates;
use super::steps::ClientStep;
use super::table_look::TableLook;
use crate::fault::{INTERRUPTED, NOT_UNDONE, Scope, refusal_of, unknown};

/// The end of an attempt.
#[derive(Debug)]
pub(super) enum Attempted {
    /// The units of the attempt have their verdicts.
    Committed,
    /// Nothing was written. The units that have no verdict run again.
    RolledBack {
        /// The statements whose rows are executed one by one from now on.
        singles: HashSet<u64>,
    },
}

/// A unit's part of an answer.
type UnitAnswer = (u32, Result<WriteDone, Fault>);

/// The judgement of a transaction's answers.
#[derive(Default)]
struct Judgement {
    answered: Vec<UnitAnswer>,
    /// Units whose statements met another session's lock and were undone.
    waiting: Vec<(u32, Fault)>,
    singles: HashSet<u64>,
    /// True if a statement warned and its warnings were not asked for.
    has_unshown_warnings: bool,
    /// True if a statement met another session's lock.
    has_met_lock: bool,
    /// The error by which the server ended the transaction.
    ended: Option<Fault>,
}

/// Executes the statements of a batch in one transaction.
///
/// # Errors
/// The connection cannot be used any more; nothing was written.
pub(super) async fn attempt(
    connection: &mut ClientConnection,
    batch: &mut ClientBatch<'_>,
    steps: &[ClientStep],
    is_isolated: bool,
    tally: &mut Tally,
) -> Result<Attempted, Stop> {
    connection.begin().await?;
    let refused = connection.prepare(batch, steps).await?;
    let tables = untrusted(batch, steps);
    for (at, step) in steps.iter().enumerate() {
        if !refused.contains_key(&at) {
            connection.put_step(batch, step).await?;
        }
    }
    connection.put_guards(&tables).await?;
    connection.session.send().await?;
    connection.session.count_trip();
    let mut answers: Vec<StepAnswer> = Vec::with_capacity(steps.len());
    let mut has_met_lock = false;
    for (at, step) in steps.iter().enumerate() {
        has_met_lock |= answers.last().is_some_and(StepAnswer::met_lock);
        answers.push(match refused.get(&at) {
            Some(error) => StepAnswer {
                reply: Reply::Error(error.clone()),
                warnings: None,
                id: None,
            },
            None => connection.step_answer(step, has_met_lock).await?,
        });
    }
    let stale = connection.stale(&tables).await?;
    let judgement = judge(connection, batch, steps, &answers)?;
    connection.absorb_kill().await?;
    if let Some(fault) = judgement.ended {
        connection.roll_back().await?;
        batch.conclude_rest(&Verdict::RolledBack(fault));
        return Ok(Attempted::Committed);
    }
    if !stale.is_empty() {
        return undo_stale(connection, batch, &stale).await;
    }
    if judgement.has_met_lock {
        connection.note_lock();
    }
    let must_undo = !judgement.singles.is_empty() || judgement.has_unshown_warnings;
    if must_undo || is_overtaken(batch, &judgement) || connection.has_lost_all(&judgement.waiting) {
        connection.roll_back().await?;
        if !must_undo {
            connection.conclude_waiting(batch, judgement.waiting);
        }
        return Ok(Attempted::RolledBack {
            singles: judgement.singles,
        });
    }
    commit(connection, batch, judgement, tally).await?;
    count(batch, steps, is_isolated, tally);
    Ok(Attempted::Committed)
}

/// Returns the tables of the statements that were not checked lately.
fn untrusted(batch: &ClientBatch<'_>, steps: &[ClientStep]) -> Vec<Arc<TableLook>> {
    let mut tables: Vec<Arc<TableLook>> = Vec::new();
    for unit in steps.iter().filter_map(|step| step.units.first()) {
        let meaning = batch.call(*unit).and_then(|of| of.meaning);
        let Some(table) = meaning.map(|meaning| &meaning.table) else {
            continue;
        };
        if !table.is_trusted() && !tables.iter().any(|known| Arc::ptr_eq(known, table)) {
            tables.push(Arc::clone(table));
        }
    }
    tables
}

/// Judges the answers to the statements of a transaction.
///
/// # Errors
/// The server ends the connection.
fn judge(
    connection: &ClientConnection,
    batch: &ClientBatch<'_>,
    steps: &[ClientStep],
    answers: &[StepAnswer],
) -> Result<Judgement, Stop> {
    let mut judgement = Judgement::default();
    for (step, answer) in steps.iter().zip(answers) {
        if let Err(mut refusal) = success(&answer.reply) {
            if connection.has_killed && refusal.number == INTERRUPTED {
                refusal.scope = Scope::Lock;
                refusal.fault = Fault::new(FaultClass::Conflict, "55P03", "it waits for a lock");
            }
            judgement.has_met_lock |= refusal.scope == Scope::Lock;
            match refusal.scope {
                Scope::Connection => return Err(Stop::Ended(refusal.fault)),
                Scope::Transaction => {
                    judgement.ended.get_or_insert(refusal.fault);
                }
                Scope::Lock | Scope::Statement => judgement.refused(batch, step, &refusal.fault),
            }
            continue;
        }
        judgement.succeeded(connection, batch, step, answer);
    }
    Ok(judgement)
}

impl Judgement {
    fn refused(&mut self, batch: &ClientBatch<'_>, step: &ClientStep, fault: &Fault) {
        match step.units.as_slice() {
            [unit] if fault.class == FaultClass::Conflict => {
                self.waiting.push((*unit, fault.clone()));
            }
            [unit] => self.answered.push((*unit, Err(fault.clone()))),
            units => self.run_singly(batch, units),
        }
    }

    fn run_singly(&mut self, batch: &ClientBatch<'_>, units: &[u32]) {
        let of = units.first().and_then(|unit| batch.call(*unit));
        self.singles.extend(of.map(|of| of.call.statement.id()));
    }

    fn succeeded(
        &mut self,
        connection: &ClientConnection,
        batch: &ClientBatch<'_>,
        step: &ClientStep,
        answer: &StepAnswer,
    ) {
        let first = step.units.first().and_then(|unit| batch.call(*unit));
        let Some(of) = first else {
            return;
        };
        let has_warned = success(&answer.reply).is_ok_and(|ok| ok.warning_count > 0);
        if let Some(meaning) = of.meaning {
            meaning.note_warnings(has_warned);
        }
        match step.units.as_slice() {
            [unit] => {
                let generates = of
                    .meaning
                    .map_or(Generates::Unknown, |m| m.generates(of.call));
                match answer.single(generates) {
                    Some(done) => self.answered.push((*unit, Ok(done))),
                    None => self.has_unshown_warnings = true,
                }
            }
            units => match answer.rows(units.len(), connection.session.increment) {
                Some(dones) => {
                    let dones = dones.into_iter().map(Ok);
                    self.answered.extend(units.iter().copied().zip(dones));
                }
                None => self.run_singly(batch, units),
            },
        }
    }
}

/// Returns true if a unit was written whose source has an earlier unit that waits for a lock.
fn is_overtaken(batch: &ClientBatch<'_>, judgement: &Judgement) -> bool {
    let answered = |unit: u32| judgement.answered.iter().any(|(other, _)| *other == unit);
    let mut waiting = judgement.waiting.iter();
    waiting.any(|(unit, _)| batch.sources.followers(*unit).any(answered))
}

/// Rolls back a transaction with a table that is not as described.
async fn undo_stale(
    connection: &mut ClientConnection,
    batch: &mut ClientBatch<'_>,
    stale: &[Arc<TableLook>],
) -> Result<Attempted, Stop> {
    let replies = connection
        .session
        .replies(&["ROLLBACK", "SHOW WARNINGS"])
        .await?;
    let is_undone = success(replies.first().unwrap_or(&Reply::Error(Default::default()))).is_ok();
    let kept = replies
        .get(1)
        .map(super::lane_session::text_rows)
        .unwrap_or_default();
    let number = NOT_UNDONE.to_string();
    let kept = kept
        .iter()
        .any(|row| row.get(1) == Some(&Some(number.clone())));
    for table in stale {
        connection.catalog.retire_table(&table.name);
    }
    if kept || !is_undone {
        // The table has an engine without transactions by now.
        let fault = unknown("a table's engine was changed");
        batch.conclude_rest(&Verdict::Final(Err(fault.into())));
    }
    Ok(Attempted::RolledBack {
        singles: HashSet::new(),
    })
}

async fn commit(
    connection: &mut ClientConnection,
    batch: &mut ClientBatch<'_>,
    judgement: Judgement,
    tally: &mut Tally,
) -> Result<(), Stop> {
    let committed = connection.session.ask("COMMIT").await;
    let fault = match committed {
        Ok(Reply::Error(error)) => {
            let refusal = refusal_of(&error);
            match refusal.scope {
                // Another node of a cluster committed first, or held a lock.
                Scope::Transaction | Scope::Lock => {
                    connection.roll_back().await?;
                    batch.conclude_rest(&Verdict::RolledBack(refusal.fault));
                    return Ok(());
                }
                Scope::Statement | Scope::Connection => unknown(&refusal.fault.message),
            }
        }
        Ok(_) => {
            tally.commits += 1;
            connection.conclude_waiting(batch, judgement.waiting);
            for (unit, outcome) in judgement.answered {
                batch.finish(unit, outcome);
            }
            return Ok(());
        }
        Err(lost) => unknown(&lost.0),
    };
    connection.session.give_up();
    batch.conclude_rest(&Verdict::Final(Err(fault.into())));
    Ok(())
}

fn count(batch: &ClientBatch<'_>, steps: &[ClientStep], is_isolated: bool, tally: &mut Tally) {
    for step in steps {
        let rung = match step.units.as_slice() {
            [_] if batch.len() == 1 => Rung::Solo,
            [_] if is_isolated => Rung::Isolated,
            [_] => Rung::Grouped,
            _ => Rung::Fused,
        };
        tally.add(rung, step.units.len());
    }
}
