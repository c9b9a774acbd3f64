//! The units of a batch, each with its call and its verdict.

use std::sync::Arc;

use windrow_core::{Fault, SqlCall, Unit, UnitFault, UnitOutcome, Verdict, WriteDone};
use windrow_database::sources::Sources;

use super::client_catalog::ClientCatalog;
use super::meaning::ClientMeaning;

/// A call of a unit, with the meaning of its statement. `None`: the statement was retired.
#[derive(Clone, Copy)]
pub(super) struct BatchCall<'b> {
    pub(super) call: &'b SqlCall,
    pub(super) meaning: Option<&'b Arc<ClientMeaning>>,
}

/// A call with the meaning of its statement, if that is known.
type KnownCall<'u> = (&'u SqlCall, Option<Arc<ClientMeaning>>);

/// The units of a batch.
pub(super) struct ClientBatch<'u> {
    calls: Vec<Option<KnownCall<'u>>>,
    verdicts: Vec<Option<Verdict>>,
    pub(super) sources: Sources,
}

impl<'u> ClientBatch<'u> {
    /// Looks up the statements of a batch. A unit that cannot be executed has its verdict.
    pub(super) fn new(units: &'u [Unit], catalog: &ClientCatalog) -> Self {
        let mut batch = Self {
            calls: Vec::with_capacity(units.len()),
            verdicts: Vec::with_capacity(units.len()),
            sources: Sources::of(units),
        };
        for unit in units {
            let (call, verdict) = match unit.writes() {
                [] => (
                    None,
                    Some(Verdict::Final(UnitOutcome::Ok(Default::default()))),
                ),
                [write] => (write.call(), None),
                _ => (None, None),
            };
            let fault = || Fault::internal("a lane of MySQL clients executes one call a unit");
            let refused = || Verdict::Final(Err(fault().into()));
            let is_open = call.is_some();
            batch
                .verdicts
                .push(verdict.or_else(|| (!is_open).then(refused)));
            let known = call.map(|call| (call, catalog.meaning(&call.statement)));
            batch.calls.push(known);
        }
        batch
    }

    /// Returns the units that have no verdict yet.
    pub(super) fn open_units(&self) -> Vec<u32> {
        let verdicts = (0_u32..).zip(&self.verdicts);
        let open = verdicts.filter(|(_, verdict)| verdict.is_none());
        open.map(|(unit, _)| unit).collect()
    }

    /// Returns the number of all units.
    pub(super) fn len(&self) -> usize {
        self.verdicts.len()
    }

    /// Returns a unit's call.
    pub(super) fn call(&self, unit: u32) -> Option<BatchCall<'_>> {
        let (call, meaning) = self.calls.get(unit as usize)?.as_ref()?;
        let meaning = meaning.as_ref().filter(|_| !call.statement.is_retired());
        Some(BatchCall { call, meaning })
    }

    /// Returns true if the unit's statement was retired: it shares no transaction.
    pub(super) fn is_retired(&self, unit: u32) -> bool {
        self.call(unit).is_none_or(|of| of.meaning.is_none())
    }

    /// Sets the verdict of a unit that has none. The units of its source that come after one that
    /// must run again are not tried.
    pub(super) fn conclude(&mut self, unit: u32, verdict: Verdict) {
        let must_run_again = matches!(verdict, Verdict::RolledBack(_) | Verdict::WaitsForLock(_));
        self.set(unit, verdict);
        if must_run_again {
            let followers: Vec<u32> = self.sources.followers(unit).collect();
            followers
                .iter()
                .for_each(|unit| self.set(*unit, Verdict::NotTried));
        }
    }

    fn set(&mut self, unit: u32, verdict: Verdict) {
        if let Some(slot @ None) = self.verdicts.get_mut(unit as usize) {
            *slot = Some(verdict);
        }
    }

    /// Sets the outcome of a unit.
    pub(super) fn finish(&mut self, unit: u32, outcome: Result<WriteDone, Fault>) {
        let outcome = match outcome {
            Ok(done) => Ok([done].into_iter().collect()),
            Err(fault) => Err(UnitFault::from(fault)),
        };
        self.set(unit, Verdict::Final(outcome));
    }

    /// Sets the verdict of all units that have none.
    pub(super) fn conclude_rest(&mut self, verdict: &Verdict) {
        for unit in self.open_units() {
            self.set(unit, verdict.clone());
        }
    }

    /// Returns the verdicts in the order of the units.
    pub(super) fn into_verdicts(self) -> Vec<Verdict> {
        self.verdicts.into_iter().flatten().collect()
    }
}
