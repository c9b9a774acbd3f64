//! The statements that were found lately to mean what they meant: this has to be known before their
//! calls become row writes, which no server sees for now.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::statement::{Describer, Statement};
use crate::fault::Fault;

/// The time for which an answer is relied on. After it the database is asked again, while calls go
/// on.
const MAX_ANSWER_AGE: Duration = Duration::from_secs(5);

/// Statements that are kept: beyond them all are asked for again.
const MAX_STATEMENTS: usize = 10_000;

/// Statements by their numbers: the state of the catalog in which they were looked at, and when.
#[derive(Debug, Default)]
pub struct CurrentStatements(Mutex<HashMap<u64, (u64, Instant)>>);

impl CurrentStatements {
    /// Returns true if a statement still means what it meant. `asking`: held by the one that asks.
    /// `epoch`: the newest state of the catalog that was seen. A change that was seen is asked for
    /// first. Changes by others are seen a moment later, so that no session waits for a database
    /// that is away. Cancel safe.
    ///
    /// # Errors
    /// The database is away, and nothing is known from before.
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
                    // A database that is away is what a spool is for: what was found before counts.
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
        // Each change is one insertion: whole at any moment.
        with(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
