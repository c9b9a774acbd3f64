//! Executes units in one transaction: sends all statements, reads all answers, and commits or rolls
//! back. Nothing is concluded by answers of a transaction that was rolled back, except for units
//! that must run elsewhere.

use std::collections::HashSet;

use windrow_core::{Tally, Verdict};
use windrow_mysqlwire::Reply;

use super::client_batch::ClientBatch;
use super::client_connection::{ClientConnection, Stop};
use super::judgement::Judgement;
use super::lane_session::LostConnection;
use super::round::{TableLooks, execute};
use super::steps::{smaller, steps};
use crate::fault::{Scope, refusal_of, unknown};

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

/// Executes units in one transaction. `singles`: the statements whose rows are executed one by one.
///
/// # Errors
/// The connection cannot be used any more; nothing was written.
pub(super) async fn attempt(
    connection: &mut ClientConnection,
    batch: &mut ClientBatch<'_>,
    units: &[u32],
    singles: &HashSet<u64>,
    tally: &mut Tally,
) -> Result<Attempted, Stop> {
    connection.set_lock_wait().await?;
    let mut judgement = Judgement::default();
    let mut round = steps(batch, units, singles, connection.limits());
    let mut looks = TableLooks::of(batch, &round);
    let mut stale = Vec::new();
    loop {
        let hurries = judgement.has_met_lock || connection.hurries();
        let answers = execute(connection, batch, &round, &looks, hurries).await?;
        // The connection may be lost between the commit and the answers to the checks.
        let found = connection.stale(&std::mem::take(&mut looks).checked).await;
        judgement.take(connection, batch, &round, &answers.steps)?;
        if let Some(closed) = answers.closed {
            let stale = found.as_deref().unwrap_or_default();
            connection.is_spoiled |= !stale.is_empty();
            connection.retire(stale);
            committed(connection, batch, judgement, Ok(closed), tally).await?;
            return found.map(|_| Attempted::Committed);
        }
        stale.extend(found?);
        connection.absorb_kill().await?;
        let undone = std::mem::take(&mut judgement.undone);
        if undone.is_empty() || judgement.must_undo() || !stale.is_empty() {
            break;
        }
        // InnoDB has undone a statement that failed, and nothing else.
        let units = undone.iter().flat_map(|step| &step.units);
        if judgement.answered_behind(batch, units.copied()) {
            judgement.run_singly(batch, &undone);
            break;
        }
        if judgement.has_met_lock {
            connection.note_lock();
            connection.set_lock_wait().await?;
        }
        round = smaller(batch, &undone, connection.limits());
    }
    if let Some(fault) = judgement.ended {
        connection.roll_back(batch).await?;
        batch.conclude_rest(&Verdict::RolledBack(fault));
        return Ok(Attempted::Committed);
    }
    if !stale.is_empty() {
        connection.retire(&stale);
        connection.roll_back(batch).await?;
        return Ok(Attempted::RolledBack {
            singles: HashSet::new(),
        });
    }
    end(connection, batch, judgement, tally).await
}

/// Commits, or rolls back if the answers cannot be given as they are.
async fn end(
    connection: &mut ClientConnection,
    batch: &mut ClientBatch<'_>,
    judgement: Judgement,
    tally: &mut Tally,
) -> Result<Attempted, Stop> {
    if judgement.has_met_lock {
        connection.note_lock();
    }
    let must_undo = judgement.must_undo();
    let waiting = judgement.waiting.iter().map(|(unit, _)| *unit);
    let is_overtaken = judgement.answered_behind(batch, waiting);
    if must_undo || is_overtaken || connection.has_lost_all(&judgement.waiting) {
        connection.roll_back(batch).await?;
        if !must_undo {
            connection.conclude_waiting(batch, judgement.waiting);
        }
        return Ok(Attempted::RolledBack {
            singles: judgement.singles,
        });
    }
    let commit = connection.session.ask("COMMIT").await;
    committed(connection, batch, judgement, commit, tally).await?;
    Ok(Attempted::Committed)
}

/// Concludes units by the server's answer to the commit.
async fn committed(
    connection: &mut ClientConnection,
    batch: &mut ClientBatch<'_>,
    judgement: Judgement,
    commit: Result<Reply, LostConnection>,
    tally: &mut Tally,
) -> Result<(), Stop> {
    let fault = match commit {
        Ok(Reply::Error(error)) => {
            let refusal = refusal_of(&error);
            match refusal.scope {
                // Another node of a cluster committed first, or held a lock.
                Scope::Transaction | Scope::Lock => {
                    connection.roll_back(batch).await?;
                    batch.conclude_rest(&Verdict::RolledBack(refusal.fault));
                    return Ok(());
                }
                Scope::Statement | Scope::Connection => unknown(&refusal.fault.message),
            }
        }
        Ok(_) => {
            tally.commits += 1;
            connection.conclude_waiting(batch, judgement.waiting);
            for (rung, writes) in judgement.rungs {
                tally.add(rung, writes);
            }
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
