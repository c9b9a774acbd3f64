//! The statements whose meaning was recently found to be unchanged. Only their calls may become row
//! writes, which no server checks before they are acknowledged.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::statement::{Describer, Statement};
use crate::fault::Fault;

/// The time for which an answer counts. After it the database is asked again in the background,
/// while calls go on.
const MAX_ANSWER_AGE: Duration = Duration::from_secs(5);

/// The most statements kept: beyond it, all are asked for again.
const MAX_STATEMENTS: usize = 10_000;

/// Statements by their numbers, each with the epoch of the catalog in which it was checked, and the
/// time.
#[derive(Debug, Default)]
pub struct CurrentStatements(Mutex<HashMap<u64, (u64, Instant)>>);

impl CurrentStatements {
    /// Returns true if the meaning of a statement is unchanged. `asking`: locked while the database
    /// is asked. `epoch`: the newest state of the catalog that was seen. After a change that was
    /// seen, asks the database before it answers. Changes by others are noticed a moment later, so
    /// that no session waits for a database that is away. Cancel safe.
    ///
    /// # Errors
    /// The database is away, and the statement was never checked.
    pub async fn has(
        &self,
        (describer, asking): (&Arc<dyn Describer>, &tokio::sync::Mutex<()>),
        statement: &Arc<Statement>,
        epoch: u64,
    ) -> Result<bool, Fault> {
        if statement.is_retired() {
            return Ok(false);
        }
        let known = self.with(|all| all.get(&statement.id()).copied());
        let looked = known.filter(|(then, _)| *then == epoch);
        match looked {
            Some((_, at)) if at.elapsed() < MAX_ANSWER_AGE => Ok(true),
            Some(_) => {
                self.note(statement, epoch);
                let (describer, statement) = (Arc::clone(describer), Arc::clone(statement));
                tokio::spawn(async move { describer.is_current(&statement).await });
                Ok(true)
            }
            None => {
                let _turn = asking.lock().await;
                let known = self.with(|all| all.get(&statement.id()).copied());
                if known.is_some_and(|(then, _)| then == epoch) {
                    return Ok(!statement.is_retired());
                }
                match describer.is_current(statement).await {
                    Ok(true) => {
                        self.note(statement, epoch);
                        Ok(true)
                    }
                    Ok(false) => Ok(false),
                    // A spool is meant for a database that is away: the earlier result counts.
                    Err(_) if known.is_some() => Ok(!statement.is_retired()),
                    Err(fault) => Err(fault),
                }
            }
        }
    }

    fn note(&self, statement: &Statement, epoch: u64) {
        self.with(|all| {
            if all.len() >= MAX_STATEMENTS {
                all.clear();
            }
            all.insert(statement.id(), (epoch, Instant::now()));
        });
    }

    fn with<T>(&self, with: impl FnOnce(&mut HashMap<u64, (u64, Instant)>) -> T) -> T {
        with(&mut self.0.lock())
    }
}
