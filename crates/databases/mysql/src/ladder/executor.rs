//! One batch: which transactions it takes, what runs again.

use std::sync::Arc;

use async_trait::async_trait;
use windrow_core::{
    Canceller, Executor, Fault, FaultClass, Report, RowDone, RowWrite, Tally, Unit, Verdict,
};

use super::batch::Batch;
use super::connection::Connection;
use super::settle::{Break, Mode, Transaction};
use crate::fault::unavailable;

/// How often a batch begins anew because a table was changed meanwhile.
const MOST_CHANGES: usize = 8;

/// Units that run in one transaction, and how.
struct Work {
    units: Vec<u32>,
    mode: Mode,
    isolated: bool,
}

impl Connection {
    /// Runs transactions until every unit has its verdict.
    async fn drive(&mut self, batch: &mut Batch<'_>, tally: &mut Tally) -> Result<(), Break> {
        self.begin(batch, false).await?;
        let mut changes = 0;
        let mut todo = vec![Work {
            units: batch.pending(),
            mode: Mode::Sets,
            isolated: false,
        }];
        while let Some(mut work) = todo.pop() {
            batch.hold();
            work.units.retain(|unit| is_open(batch, *unit));
            if work.units.is_empty() || split(batch, &mut work, &mut todo) {
                continue;
            }
            match self.run(batch, &work, tally).await {
                Ok(()) => {}
                Err(Break::Stale) => {
                    changes += 1;
                    if changes > MOST_CHANGES {
                        batch.conclude_rest(&Verdict::RolledBack(keeps_changing()));
                    }
                    self.begin(batch, true).await?;
                    todo.push(work);
                }
                Err(other) => self.broken(batch, work, other, &mut todo)?,
            }
        }
        Ok(())
    }

    /// What a transaction that failed means for its units.
    fn broken(
        &mut self,
        batch: &mut Batch<'_>,
        work: Work,
        why: Break,
        todo: &mut Vec<Work>,
    ) -> Result<(), Break> {
        let Work { units, mode, .. } = work;
        // What unproven code does besides may not be undone, so it is told what it would have been
        // told alone.
        let unproven = mode == Mode::Once && units.iter().any(|unit| batch.runs_unproven(*unit));
        let again = |units, mode| Work {
            units,
            mode,
            isolated: true,
        };
        let mut all = |verdict: &Verdict<RowDone>| {
            for unit in &units {
                batch.conclude(*unit, verdict.clone());
            }
        };
        match why {
            Break::Isolate => todo.push(again(units, Mode::Isolated)),
            Break::Unsure => todo.push(again(units, Mode::Grouped)),
            Break::Gone(fault) if unproven => all(&Verdict::Final(Err(fault.into()))),
            Break::Gone(fault) => all(&Verdict::RolledBack(fault)),
            Break::Overtaken(waiting) => {
                for (unit, verdict) in waiting {
                    batch.conclude(unit, verdict);
                }
                todo.push(again(units, Mode::Sets));
            }
            Break::Unknown(fault) => all(&Verdict::Final(Err(fault.into()))),
            Break::Locked(table, fault) => {
                let verdict = self.waits(fault);
                batch.conclude_table(&table, &verdict);
                todo.push(again(units, Mode::Sets));
            }
            other => return Err(other),
        }
        Ok(())
    }

    async fn run(
        &mut self,
        batch: &mut Batch<'_>,
        work: &Work,
        tally: &mut Tally,
    ) -> Result<(), Break> {
        let unproven = work.units.iter().any(|unit| batch.runs_unproven(*unit));
        if unproven && self.numbered {
            self.session.renew().await?;
        }
        self.numbered = !unproven && (self.numbered || batch.takes_numbers(&work.units));
        let may_be_one = matches!(work.mode, Mode::Sets | Mode::Once);
        let ended = match may_be_one && self.run_as_one_statement(batch, &work.units, tally).await?
        {
            true => Ok(()),
            false => {
                let (session, verified) = (&mut self.session, &mut self.verified);
                let purpose = self.purpose;
                Transaction::new(session, batch, purpose, verified, tally, work.isolated)
                    .run(&work.units, work.mode)
                    .await
            }
        };
        let renewed = match unproven && self.session.is_usable() {
            true => self.session.renew().await,
            false => Ok(()),
        };
        ended.and(renewed.map_err(Break::from))
    }
}

fn is_open(batch: &Batch<'_>, unit: u32) -> bool {
    batch
        .verdicts
        .get(unit as usize)
        .is_some_and(Option::is_none)
}

/// What shares no transaction with others gets work of its own. True where the work was split.
fn split(batch: &mut Batch<'_>, work: &mut Work, todo: &mut Vec<Work>) -> bool {
    let Some(at) = work.units.iter().position(|unit| batch.is_apart(*unit)) else {
        return false;
    };
    if let [unit] = work.units.as_slice() {
        work.mode = Mode::Once;
        let unit = *unit;
        if batch.is_single(unit) || batch.undoes(unit) {
            return false;
        }
        let message = "the storage engine of the table knows no transactions, so several writes cannot be all or nothing";
        let fault = Fault::new(FaultClass::Unsupported, "0A000", message);
        batch.conclude(unit, Verdict::Final(Err(fault.into())));
        return true;
    }
    let behind = work.units.split_off(at + 1);
    let apart = work.units.split_off(at);
    for units in [behind, apart, std::mem::take(&mut work.units)] {
        todo.push(Work {
            units,
            mode: work.mode,
            isolated: work.isolated,
        });
    }
    true
}

fn keeps_changing() -> Fault {
    Fault::new(
        FaultClass::Conflict,
        "55006",
        "the table was altered again and again while this write was under way",
    )
}

#[async_trait]
impl Executor<RowWrite> for Connection {
    async fn execute(&mut self, units: &[Unit<RowWrite>]) -> Report<RowDone> {
        let mut batch = Batch::new(units);
        let mut tally = Tally::default();
        match self.drive(&mut batch, &mut tally).await {
            Ok(()) => {}
            // Whatever had no verdict was not committed.
            Err(Break::Lost(why)) => {
                self.session.give_up();
                batch.conclude_rest(&Verdict::RolledBack(unavailable(&why)));
            }
            Err(
                Break::Gone(fault)
                | Break::Ended(fault)
                | Break::Locked(_, fault)
                | Break::Unknown(fault),
            ) => {
                self.session.give_up();
                batch.conclude_rest(&Verdict::RolledBack(fault));
            }
            Err(Break::Isolate | Break::Unsure | Break::Stale | Break::Overtaken(_)) => {
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
