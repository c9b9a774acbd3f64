//! Units whose writes are one statement, which is a transaction of its own.

use windrow_core::{Fault, Op, Rung, Tally, UnitFault, Verdict};
use windrow_database::plan;

use super::batch::{Batch, BoundWrite};
use super::connection::Connection;
use super::failed::Failed;
use super::send_many;
use super::send_one;
use super::settle::Break;
use crate::catalog::schema;
use crate::fault::{Refusal, Scope, Trouble, unknown};

impl Connection {
    /// Executes units by one statement that is a transaction of its own, where that is possible;
    /// false if it is not, or if the statement for several of them failed.
    pub(super) async fn run_as_one_statement(
        &mut self,
        batch: &mut Batch<'_>,
        units: &[u32],
        tally: &mut Tally,
    ) -> Result<bool, Break> {
        let Some(items) = self.one_statement(batch, units) else {
            return Ok(false);
        };
        let bound: Vec<&BoundWrite> = items
            .iter()
            .filter_map(|i| batch.bound.get(*i as usize))
            .collect();
        let Some(first) = bound.first() else {
            return Ok(false);
        };
        let (compiled, table) = (first.compiled.clone(), first.compiled.table.clone());
        let reads = first.compiled.shape.op == Op::Get;
        self.verify(&table).await?;
        let executed = match bound.as_slice() {
            [one] => send_one::execute(&mut self.session, one)
                .await
                .map(|done| vec![done]),
            many => send_many::execute(&mut self.session, many).await,
        };
        let answered = match executed {
            Ok(dones) => Ok(dones),
            Err(Failed::Unsure) if reads => return Ok(false),
            // It is committed, and that cannot be: nobody is told what may not be true.
            Err(Failed::Unsure) => Err(Trouble::Lost(
                "the server counted other rows than it was given".into(),
            )),
            Err(Failed::Trouble(trouble)) => Err(trouble),
        };
        let solo = batch.units.len() == 1;
        match answered {
            Ok(dones) => {
                tally.commits += u32::from(!reads);
                let rung = match items.len() {
                    1 if solo => Rung::Solo,
                    1 => Rung::Grouped,
                    _ => Rung::Fused,
                };
                tally.add(rung, items.len());
                for (item, done) in items.iter().zip(dones) {
                    if let Some(slot) = batch.done.get_mut(*item as usize) {
                        *slot = Some(done);
                    }
                }
                for unit in units {
                    batch.succeed(*unit);
                }
                Ok(true)
            }
            Err(Trouble::Lost(why)) if reads => Err(Break::Lost(why)),
            Err(Trouble::Lost(why)) => {
                let verdict = Verdict::Final(Err(unknown(&why).into()));
                units
                    .iter()
                    .for_each(|unit| batch.conclude(*unit, verdict.clone()));
                Ok(true)
            }
            // What it does depends on whether its own row is there, which takes a transaction.
            Err(Trouble::Refused(refusal)) if send_one::met_another(&compiled, &refusal) => {
                Ok(false)
            }
            Err(Trouble::Refused(refusal)) => {
                tally.add(
                    if solo { Rung::Solo } else { Rung::Isolated },
                    usize::from(units.len() == 1),
                );
                self.refused(batch, units, *refusal).await
            }
        }
    }

    /// A statement that is a transaction of its own was refused: nothing was written.
    async fn refused(
        &mut self,
        batch: &mut Batch<'_>,
        units: &[u32],
        refusal: Refusal,
    ) -> Result<bool, Break> {
        match (refusal.scope, units) {
            (Scope::Connection, _) => Err(Break::Ended(refusal.fault)),
            (Scope::Transaction, _) => Err(Break::Gone(refusal.fault)),
            (Scope::Lock, [unit]) => {
                let mut verdict = self.waits(refusal.fault.clone());
                // What is left of the first try would be written twice.
                if batch.is_apart(*unit) && !self.session.undid_all().await? {
                    verdict = Verdict::Final(Err(refusal.fault.into()));
                }
                batch.conclude(*unit, verdict);
                Ok(true)
            }
            (Scope::Statement, [unit]) => {
                batch.conclude(*unit, Verdict::Final(Err(UnitFault::from(refusal.fault))));
                Ok(true)
            }
            _ => self.undone(batch, units, refusal.fault).await,
        }
    }

    /// A statement for many was refused. If the table meanwhile has an engine that undoes nothing,
    /// nobody can say what of it was written.
    async fn undone(
        &mut self,
        batch: &mut Batch<'_>,
        units: &[u32],
        fault: Fault,
    ) -> Result<bool, Break> {
        for table in batch.tables_of(units) {
            self.verified.remove(&table.version);
            match self.verify(&table).await {
                Err(Break::Stale) => {}
                other => return other.map(|()| false),
            }
            let now = schema::read(&mut self.session, &table.name).await?;
            if now.is_none_or(|facts| facts.transactional) {
                return Err(Break::Stale);
            }
            let why = format!("the table's engine was changed; {}", fault.message);
            let verdict = Verdict::Final(Err(unknown(&why).into()));
            units
                .iter()
                .for_each(|unit| batch.conclude(*unit, verdict.clone()));
        }
        Ok(true)
    }

    /// The writes of these units, where they are one statement that needs no other.
    fn one_statement(&self, batch: &Batch<'_>, units: &[u32]) -> Option<Vec<u32>> {
        if !units.iter().all(|unit| batch.is_single(*unit)) {
            return None;
        }
        let mut steps = batch.steps(units);
        let step = steps.pop().filter(|_| steps.is_empty())?;
        let bound: Vec<&BoundWrite> = step
            .items
            .iter()
            .filter_map(|i| batch.bound.get(*i as usize))
            .collect();
        let server = &self.session.server;
        let fits = match bound.as_slice() {
            [one] => !send_one::needs_transaction(&one.compiled, &self.session),
            [first, ..] => {
                plan::shape_of(step.group).is_some()
                    && first.compiled.table.transactional
                    && send_many::is_possible(&first.compiled, server)
                    && !send_many::needs_transaction(&first.compiled, server)
                    && !bound.iter().any(|p| p.nothing)
                    && send_many::next_size(&bound, server) == bound.len()
            }
            [] => false,
        };
        fits.then_some(step.items)
    }
}
