//! A batch without transactions: one write a unit, and the steps in which the writes go out.

use smallvec::smallvec;
use windrow_core::{
    Dones, Fault, FaultClass, Report, RowDone, RowWrite, Rung, Tally, Unit, UnitFault, Verdict,
};

use crate::plan::{Fence, Item, plan};
use crate::sources::Sources;

/// The units of a batch, and what each is told.
#[derive(Debug)]
pub struct Batch<'a> {
    units: &'a [Unit<RowWrite>],
    sources: Sources,
    /// Sources with a write that is to run again.
    held: Vec<u32>,
    verdicts: Vec<Option<Verdict<RowDone>>>,
    /// What it took, as far as it is known.
    pub tally: Tally,
}

impl<'a> Batch<'a> {
    /// Units that need a transaction are refused at once; `database` is the name that the message
    /// has for it.
    pub fn new(units: &'a [Unit<RowWrite>], database: &str) -> Self {
        let verdict = |unit: &Unit<RowWrite>| match unit.work() {
            [] => Some(Verdict::Final(Ok(Dones::new()))),
            [_] => None,
            _ => Some(failed(unsupported(format!(
                "{database} has no transactions: {} writes cannot be all or nothing; send them without atomic",
                unit.rows()
            )))),
        };
        Self {
            units,
            sources: Sources::of(units),
            held: Vec::new(),
            verdicts: units.iter().map(verdict).collect(),
            tally: Tally::default(),
        }
    }

    /// Whether one unit is all that there is.
    pub fn is_single(&self) -> bool {
        self.units.len() == 1
    }

    /// The writes that have no verdict yet, with their places.
    pub fn pending(&self) -> impl Iterator<Item = (usize, &'a RowWrite)> {
        let units = self.units.iter().zip(&self.verdicts).enumerate();
        units.filter_map(|(at, (unit, verdict))| match verdict {
            None => Some((at, unit.work().first()?)),
            Some(_) => None,
        })
    }

    /// The write at a place.
    pub fn write(&self, at: usize) -> Option<&'a RowWrite> {
        self.units.get(at)?.work().first()
    }

    /// The write succeeded.
    pub fn done(&mut self, at: usize, rung: Rung, done: RowDone) {
        self.conclude(at, Verdict::Final(Ok(smallvec![done])));
        self.tally.add(rung, 1);
    }

    /// The write failed.
    pub fn fail(&mut self, at: usize, rung: Rung, fault: Fault) {
        self.conclude(at, failed(fault));
        self.tally.add(rung, 1);
    }

    /// The write gets its verdict.
    pub fn conclude(&mut self, at: usize, verdict: Verdict<RowDone>) {
        if matches!(verdict, Verdict::RolledBack(_) | Verdict::WaitsForLock(_)) {
            self.held.extend(self.source(at));
        }
        if let Some(slot) = self.verdicts.get_mut(at) {
            *slot = Some(verdict);
        }
    }

    fn source(&self, at: usize) -> Option<u32> {
        self.sources.of_unit(u32::try_from(at).ok()?)
    }

    /// Of the writes of a step, those that may go; the others follow one of their source that is to
    /// run again.
    pub fn not_held(&mut self, items: Vec<usize>) -> Vec<usize> {
        if self.held.is_empty() {
            return items;
        }
        let held = |at: &usize| self.source(*at).is_some_and(|s| self.held.contains(&s));
        let (held, free): (Vec<usize>, Vec<usize>) = items.into_iter().partition(held);
        for at in held {
            self.conclude(at, Verdict::NotTried);
        }
        free
    }

    /// What the write at a place was told, if it failed.
    pub fn fault(&self, at: usize) -> Option<&Fault> {
        match self.verdicts.get(at) {
            Some(Some(Verdict::Final(Err(failed)))) => Some(&failed.fault),
            _ => None,
        }
    }

    /// All writes without a verdict were not sent: they are given back.
    pub fn retry_rest(&mut self, fault: &Fault) {
        for slot in &mut self.verdicts {
            slot.get_or_insert_with(|| Verdict::RolledBack(fault.clone()));
        }
    }

    /// What is said of the batch.
    pub fn report(self, usable: bool) -> Report<RowDone> {
        let defect = || failed(Fault::internal("a unit got no verdict"));
        let verdicts = self.verdicts.into_iter();
        Report {
            verdicts: verdicts.map(|v| v.unwrap_or_else(defect)).collect(),
            tally: self.tally,
            usable,
        }
    }
}

fn failed(fault: Fault) -> Verdict<RowDone> {
    Verdict::Final(Err(UnitFault::from(fault)))
}

fn unsupported(message: String) -> Fault {
    Fault::new(FaultClass::Unsupported, "0A000", message)
}

/// One write, joined with its table.
#[derive(Clone, Debug)]
pub struct BoundWrite {
    /// Its unit.
    pub at: usize,
    /// Writes of one group may go out together.
    pub group: u32,
    /// The place of its table among those of the batch.
    pub table: u32,
    /// A hash of the row that it touches, where that is known.
    pub key: Option<u64>,
    /// It reads, and changes nothing.
    pub reads: bool,
    /// What of the batch has to be done before it.
    pub fence: Fence,
}

impl BoundWrite {
    /// Groups of units that go out together, in the order in which they do.
    pub fn steps(batch: &Batch<'_>, bound: &[Self]) -> Vec<(u32, Vec<usize>)> {
        let items = (0_u32..).zip(bound).map(|(unit, bound)| Item {
            group: bound.group,
            unit,
            source: batch.source(bound.at),
            table: bound.table,
            keys: bound.key.as_slice(),
            reads: bound.reads,
            fence: bound.fence,
            free: false,
            bonds: None,
        });
        let at = |item: u32| bound.get(item as usize).map(|bound| bound.at);
        plan(items)
            .into_iter()
            .map(|step| (step.group, step.items.into_iter().filter_map(at).collect()))
            .collect()
    }
}
