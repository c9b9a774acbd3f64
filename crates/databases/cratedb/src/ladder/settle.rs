//! Finds the outcome of rows that failed in a bulk without an error message.
//!
//! The server reports an error message for only the first ten failed rows of each shard. A failed
//! row was not written, so it may run again alone for its true error. Many of them are settled by
//! one query for their keys, because reads by primary key see every answered write.

use std::collections::HashSet;
use std::sync::Arc;

use windrow_core::{Fault, OnConflict, Op, RowDone, Rung};
use windrow_database::web::Batch;

use super::connection::{Connection, Stop, retry};
use super::single::unknown;
use super::statement::Statement;

/// Up to so many rows are run alone without a look before.
const FEW: usize = 2;

impl Connection {
    /// Finds the true errors of rows that failed without a message. `duplicate` is the error of
    /// another row of the bulk.
    pub(super) async fn explain(
        &mut self,
        batch: &mut Batch<'_>,
        statement: &Arc<Statement>,
        silent: &[usize],
        duplicate: Option<Fault>,
    ) -> Result<(), Stop> {
        let plain = statement.op != Op::Insert || statement.on_conflict == OnConflict::Error;
        let there = match plain && silent.len() > FEW {
            true => self.existing(batch, statement, silent).await?,
            false => None,
        };
        let mut duplicate = duplicate;
        for at in silent {
            let is_there = there.as_ref().map(|there| there.contains(at));
            match (statement.op, is_there, &duplicate) {
                (Op::Insert, Some(true), Some(fault)) => {
                    batch.fail(*at, Rung::Isolated, fault.clone());
                    continue;
                }
                (Op::Update | Op::Delete, Some(false), _) => {
                    batch.done(*at, Rung::Isolated, RowDone::rows(0));
                    continue;
                }
                _ => self.one(batch, statement, *at, Rung::Isolated).await?,
            }
            let fault = batch.fault(*at).filter(|fault| &*fault.code == "23505");
            duplicate = duplicate.or_else(|| fault.cloned());
        }
        Ok(())
    }

    /// A bulk found the database unable to take it; other shards may have taken their rows. All
    /// requests of the bulk have ended by now, so a look tells which rows are there.
    pub(super) async fn settle(
        &mut self,
        batch: &mut Batch<'_>,
        statement: &Arc<Statement>,
        items: &[usize],
        fault: &Fault,
    ) {
        let upserts = statement.op == Op::Insert && statement.on_conflict == OnConflict::Update;
        if upserts || statement.op == Op::Update {
            // The same values once more change nothing.
            for at in items {
                batch.conclude(*at, retry(fault));
            }
            return;
        }
        let there = self.existing(batch, statement, items).await.ok().flatten();
        for at in items {
            let untouched = there
                .as_ref()
                .is_some_and(|there| there.contains(at) == (statement.op == Op::Delete));
            if untouched {
                batch.conclude(*at, retry(fault));
            } else {
                unknown(batch, &[*at], &fault.message, Rung::Isolated);
            }
        }
    }

    /// Returns the writes whose rows are in the table; `None` if that is unknown.
    async fn existing(
        &mut self,
        batch: &mut Batch<'_>,
        statement: &Arc<Statement>,
        items: &[usize],
    ) -> Result<Option<HashSet<usize>>, Stop> {
        let Some(wanted) = super::lookup::keys(batch, statement, items) else {
            return Ok(None);
        };
        let Some(found) = self.find(batch, statement, &wanted).await? else {
            return Ok(None);
        };
        let there = wanted.iter().filter(|(_, key)| found.contains(key));
        Ok(Some(there.map(|(at, _)| *at).collect()))
    }
}
