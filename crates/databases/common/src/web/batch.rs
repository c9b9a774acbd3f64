//! A batch without transactions: units of one write each, and the steps in which they are sent.

use smallvec::smallvec;
use windrow_core::{
    Dones, Fault, FaultClass, Report, Rung, Tally, Unit, UnitFault, Verdict, Write, WriteDone,
};

use super::client::Loss;
use crate::plan::{Fence, Item, plan};
use crate::sources::Sources;

/// Ends a batch early: writes without a verdict were not sent.
#[derive(Debug)]
pub struct Stop(pub Fault);

/// Writes that are sent in one request.
#[derive(Clone, Debug)]
pub struct Part {
    /// Their positions in the batch.
    pub items: Vec<usize>,
    /// True if a failure has separated them from others.
    pub is_isolated: bool,
}

impl Part {
    /// Returns both halves, isolated. The first half comes last, because parts are kept on a stack.
    pub fn halves(mut self) -> [Self; 2] {
        let second = self.items.split_off(self.items.len() / 2);
        [second, self.items].map(|items| Self {
            items,
            is_isolated: true,
        })
    }
}

/// The units of a batch, and their verdicts.
#[derive(Debug)]
pub struct Batch<'a> {
    units: &'a [Unit],
    sources: Sources,
    /// Sources of writes that are to run again.
    held: Vec<u32>,
    verdicts: Vec<Option<Verdict>>,
    /// The cost of the batch so far.
    pub tally: Tally,
}

impl<'a> Batch<'a> {
    /// Returns a batch in which units that need a transaction are refused. `database` is the name
    /// in the message.
    pub fn new(units: &'a [Unit], database: &str) -> Self {
        let verdict = |unit: &Unit| match unit.writes() {
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

    /// True if the batch has one unit.
    pub fn is_single(&self) -> bool {
        self.units.len() == 1
    }

    /// Returns the writes that have no verdict yet, with their positions.
    pub fn pending(&self) -> impl Iterator<Item = (usize, &'a Write)> {
        let units = self.units.iter().zip(&self.verdicts).enumerate();
        units.filter_map(|(at, (unit, verdict))| match verdict {
            None => Some((at, unit.writes().first()?)),
            Some(_) => None,
        })
    }

    /// Returns the write at a position.
    pub fn write(&self, at: usize) -> Option<&'a Write> {
        self.units.get(at)?.writes().first()
    }

    /// Records a success.
    pub fn done(&mut self, at: usize, rung: Rung, done: WriteDone) {
        self.conclude(at, Verdict::Final(Ok(smallvec![done])));
        self.tally.add(rung, 1);
    }

    /// Records a failure.
    pub fn fail(&mut self, at: usize, rung: Rung, fault: Fault) {
        self.conclude(at, failed(fault));
        self.tally.add(rung, 1);
    }

    /// Records a verdict.
    pub fn conclude(&mut self, at: usize, verdict: Verdict) {
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

    /// Returns the writes of a step that may be sent. The others must wait for a write of their
    /// source that runs again.
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

    /// Returns the fault of a write that failed.
    pub fn fault(&self, at: usize) -> Option<&Fault> {
        match self.verdicts.get(at) {
            Some(Some(Verdict::Final(Err(failed)))) => Some(&failed.fault),
            _ => None,
        }
    }

    /// Returns writes to the lane, to be tried again: none of them was written.
    pub fn retry(&mut self, items: &[usize], fault: &Fault) {
        for at in items {
            self.conclude(*at, Verdict::RolledBack(fault.clone()));
        }
    }

    /// Records the same failure for several writes.
    pub fn fail_all(&mut self, items: &[usize], rung: Rung, fault: &Fault) {
        items
            .iter()
            .for_each(|at| self.fail(*at, rung, fault.clone()));
    }

    /// Records writes whose outcome is unknown.
    pub fn unknown(&mut self, items: &[usize], rung: Rung, why: &str) {
        let message = format!("it cannot be known whether this was written: {why}");
        self.fail_all(items, rung, &Fault::unknown(message));
    }

    /// Records that the answer to writes was lost, and ends the batch. Writes that may have been
    /// sent get an unknown outcome.
    pub fn lost(&mut self, items: &[usize], rung: Rung, loss: Loss) -> Stop {
        match loss {
            Loss::NotSent(fault) => Stop(fault),
            Loss::Unanswered(why) | Loss::TooLarge(why) => {
                self.unknown(items, rung, &why);
                Stop(Fault::unavailable(why))
            }
        }
    }

    /// Splits writes into parts of at most this many bytes and writes, the first part last.
    pub fn parts(&self, items: &[usize], max_bytes: usize, max_writes: usize) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        let mut size = 0;
        for at in items {
            let bytes = self.write(*at).map_or(0, Write::bytes);
            match parts.last_mut() {
                Some(part) if size + bytes <= max_bytes && part.items.len() < max_writes => {
                    part.items.push(*at);
                }
                _ => {
                    size = 0;
                    parts.push(Part {
                        items: vec![*at],
                        is_isolated: false,
                    });
                }
            }
            size += bytes;
        }
        parts.reverse();
        parts
    }

    /// Returns the rung of a write that is sent by itself and not after a failure.
    pub fn rung_of_one(&self) -> Rung {
        match self.is_single() {
            true => Rung::Solo,
            false => Rung::Grouped,
        }
    }

    /// Returns the rung of a part.
    pub fn rung(&self, part: &Part) -> Rung {
        match part.items.as_slice() {
            _ if part.is_isolated => Rung::Isolated,
            [_] => self.rung_of_one(),
            _ => Rung::Fused,
        }
    }

    /// Returns the report of the batch. After a stop, writes without a verdict go back to the lane:
    /// they were not sent. Otherwise a unit without a verdict is a defect.
    pub fn report(self, driven: Result<(), Stop>) -> Report {
        let usable = driven.is_ok();
        let rest = match driven {
            Ok(()) => failed(Fault::internal("a unit got no verdict")),
            Err(Stop(fault)) => Verdict::RolledBack(fault),
        };
        let verdicts = self.verdicts.into_iter();
        Report {
            verdicts: verdicts
                .map(|v| v.unwrap_or_else(|| rest.clone()))
                .collect(),
            tally: self.tally,
            usable,
        }
    }
}

fn failed(fault: Fault) -> Verdict {
    Verdict::Final(Err(UnitFault::from(fault)))
}

fn unsupported(message: String) -> Fault {
    Fault::new(FaultClass::Unsupported, "0A000", message)
}

/// One write, matched with its table.
#[derive(Clone, Debug)]
pub struct BoundWrite {
    /// The unit of the write.
    pub at: usize,
    /// The group of the write. Writes of one group may be sent together.
    pub group: u32,
    /// The number of its table among those of the batch.
    pub table: u32,
    /// A hash of the row that it touches, if it is known.
    pub key: Option<u64>,
    /// True if the write only reads.
    pub reads: bool,
    /// The other writes of the batch among which it keeps its place.
    pub fence: Fence,
}

impl BoundWrite {
    /// Returns the steps of a batch in their order: a group, and the units that are sent together.
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
