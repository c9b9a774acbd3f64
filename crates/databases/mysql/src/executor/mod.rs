//! Executes a batch: the loop of transactions that ends when every unit has its verdict.
//!
//! | module | what it does |
//! | --- | --- |
//! | `plan`, `sql` | plan: a shape joined with its table; the texts of its statements |
//! | `bind`, `batch`, `cache` | plan: the writes of a batch joined with their tables |
//! | `send` | send: one write, or many writes, by one statement; assigns returned rows to writes |
//! | `settle`, `autocommit` | settle: a transaction, or one statement without BEGIN, and the verdicts |
//! | `isolate` | isolate: savepoints and smaller statements after a failure |
//! | `connection` | a lane's connection |

mod autocommit;
pub(crate) mod batch;
mod bind;
pub(crate) mod cache;
pub(crate) mod connection;
mod isolate;
pub(crate) mod plan;
mod send;
pub(crate) mod settle;
mod sql;

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{Canceller, Executor, Fault, FaultClass, Report, Tally, Unit, Verdict};
use windrow_database::shape_faults::keeps_changing;

use self::batch::Batch;
use self::connection::Connection;
use self::settle::{Break, Transaction};
use crate::fault::unavailable;

/// The number of times that a batch begins again because a table was changed meanwhile.
const MAX_CHANGES: usize = 8;

/// Units that run in one transaction.
struct Part {
    units: Vec<u32>,
    /// True if a transaction with these units has failed. Savepoints isolate them now.
    is_isolated: bool,
}

impl Connection {
    /// Runs transactions until every unit has its verdict.
    async fn drive(&mut self, batch: &mut Batch<'_>, tally: &mut Tally) -> Result<(), Break> {
        self.begin(batch, false).await?;
        let mut changes = 0;
        let mut todo = vec![Part {
            units: batch.pending(),
            is_isolated: false,
        }];
        while let Some(mut part) = todo.pop() {
            batch.hold();
            part.units.retain(|unit| batch.is_open(*unit));
            if part.units.is_empty() || split(batch, &mut part, &mut todo) {
                continue;
            }
            match self.run(batch, &part, tally).await {
                Ok(()) => {}
                Err(Break::Stale) => {
                    changes += 1;
                    if changes > MAX_CHANGES {
                        batch.conclude_rest(&Verdict::RolledBack(keeps_changing()));
                    }
                    self.begin(batch, true).await?;
                    todo.push(part);
                }
                Err(why) => self.broken(batch, part.units, why, &mut todo)?,
            }
        }
        Ok(())
    }

    /// Settles the units of a transaction that failed, or has them run again.
    fn broken(
        &mut self,
        batch: &mut Batch<'_>,
        units: Vec<u32>,
        why: Break,
        todo: &mut Vec<Part>,
    ) -> Result<(), Break> {
        let verdict = match why {
            // Effects of unproven code may not have been undone, so the unit does not run again.
            Break::RolledBack(fault) if batch.any_runs_unproven(&units) => {
                Some(Verdict::Final(Err(fault.into())))
            }
            Break::RolledBack(fault) => Some(Verdict::RolledBack(fault)),
            Break::Unknown(fault) => Some(Verdict::Final(Err(fault.into()))),
            Break::Isolate => None,
            Break::Concluded(verdicts) => {
                for (unit, verdict) in verdicts {
                    batch.conclude(unit, verdict);
                }
                None
            }
            Break::Locked(table, fault) => {
                let verdict = self.waits(fault);
                batch.conclude_table(&table, &verdict);
                None
            }
            Break::Lost(_) | Break::Ended(_) | Break::Stale => return Err(why),
        };
        match verdict {
            Some(verdict) => units
                .iter()
                .for_each(|unit| batch.conclude(*unit, verdict.clone())),
            None => todo.push(Part {
                units,
                is_isolated: true,
            }),
        }
        Ok(())
    }

    async fn run(
        &mut self,
        batch: &mut Batch<'_>,
        part: &Part,
        tally: &mut Tally,
    ) -> Result<(), Break> {
        let is_unproven = batch.any_runs_unproven(&part.units);
        if is_unproven && self.is_numbered {
            self.session.renew().await?;
        }
        self.is_numbered = !is_unproven && (self.is_numbered || batch.takes_numbers(&part.units));
        let ended =
            match !part.is_isolated && autocommit::run(self, batch, &part.units, tally).await? {
                true => Ok(()),
                false => {
                    let (session, verified) = (&mut self.session, &mut self.verified);
                    let purpose = self.purpose;
                    Transaction::new(session, batch, purpose, verified, tally, part.is_isolated)
                        .run(&part.units)
                        .await
                }
            };
        let renewed = match is_unproven && self.session.is_usable() {
            true => self.session.renew().await,
            false => Ok(()),
        };
        ended.and(renewed.map_err(Break::from))
    }
}

/// Separates a unit that shares no transaction with others. Returns true if the part does not run
/// as it is.
fn split(batch: &mut Batch<'_>, part: &mut Part, todo: &mut Vec<Part>) -> bool {
    let Some(at) = part.units.iter().position(|unit| batch.is_apart(*unit)) else {
        return false;
    };
    if let [unit] = part.units.as_slice() {
        let unit = *unit;
        if batch.is_single(unit) || batch.undoes(unit) {
            return false;
        }
        let message = "the storage engine of the table knows no transactions, so several writes cannot be all or nothing";
        let fault = Fault::new(FaultClass::Unsupported, "0A000", message);
        batch.conclude(unit, Verdict::Final(Err(fault.into())));
        return true;
    }
    let after = part.units.split_off(at + 1);
    let apart = part.units.split_off(at);
    for units in [after, apart, std::mem::take(&mut part.units)] {
        todo.push(Part { units, ..*part });
    }
    true
}

#[async_trait]
impl Executor for Connection {
    async fn execute(&mut self, units: &[Unit]) -> Report {
        let mut batch = Batch::new(units);
        let mut tally = Tally::default();
        match self.drive(&mut batch, &mut tally).await {
            Ok(()) => {}
            // Units without a verdict were not committed.
            Err(Break::Lost(why)) => {
                self.session.give_up();
                batch.conclude_rest(&Verdict::RolledBack(unavailable(&why)));
            }
            Err(
                Break::RolledBack(fault)
                | Break::Ended(fault)
                | Break::Locked(_, fault)
                | Break::Unknown(fault),
            ) => {
                self.session.give_up();
                batch.conclude_rest(&Verdict::RolledBack(fault));
            }
            Err(Break::Isolate | Break::Stale | Break::Concluded(_)) => {
                self.session.give_up();
                batch.conclude_rest(&Verdict::RolledBack(keeps_changing()));
            }
        }
        let defect = Verdict::Final(Err(Fault::internal("a unit got no verdict").into()));
        batch.conclude_rest(&defect);
        self.session.settle(&mut tally);
        Report {
            verdicts: batch.verdicts.into_iter().flatten().collect(),
            tally,
            usable: self.session.is_usable() && !self.interrupt.was_asked(),
        }
    }

    fn canceller(&self) -> Option<Arc<dyn Canceller>> {
        Some(Arc::clone(&self.interrupt) as Arc<dyn Canceller>)
    }

    async fn close(self: Box<Self>) {
        self.session.close().await;
    }
}
