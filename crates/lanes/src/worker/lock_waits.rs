//! The units that wait for a lock of another session, and the connections that they run on.

use std::collections::{HashMap, VecDeque};

use tokio::sync::mpsc;
use tokio::time::Instant;
use windrow_core::{Unit, Work};

use crate::batch::Span;
use crate::interrupt::Asker;
use crate::message::LockWaitOrder;

/// Units of one source that are to run alone, in its order.
#[derive(Debug)]
pub(super) struct LockWaitRun<W: Work> {
    pub(super) source: usize,
    pub(super) units: VecDeque<(Owed, Unit<W>)>,
}

/// A unit whose outcome is owed to a ticket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owed {
    pub(super) ticket: usize,
    pub(super) index: usize,
    pub(super) arrived: Instant,
}

/// A run that has not ended, and the keys that it holds.
#[derive(Debug)]
pub(super) struct KeyedRun<W: Work> {
    pub(super) flight: u64,
    pub(super) hashes: Vec<u64>,
    pub(super) run: LockWaitRun<W>,
}

/// A connection, as the lane knows it.
#[derive(Debug)]
pub(super) struct Member<W: Work> {
    pub(super) orders: mpsc::Sender<LockWaitOrder<W>>,
    pub(super) asker: Asker,
    /// The unit that it executes, its number, and those that follow.
    pub(super) busy: Option<(Owed, u64, KeyedRun<W>)>,
}

#[derive(Debug)]
pub(super) struct LockWaits<W: Work> {
    pub(super) waiting: VecDeque<KeyedRun<W>>,
    pub(super) members: HashMap<u64, Member<W>>,
    /// Connections that have nothing to do; the last one is the warmest.
    pub(super) idle: Vec<u64>,
    pub(super) next: u64,
    pub(super) full_until: Option<Instant>,
}

impl<W: Work> LockWaitRun<W> {
    /// When the first of them arrived.
    pub(super) fn oldest(&self) -> Option<Instant> {
        self.units.front().map(|(owed, _)| owed.arrived)
    }

    /// Adds a unit to its source's run.
    pub(super) fn add(runs: &mut Vec<Self>, span: &Span, offset: usize, unit: Unit<W>) {
        let owed = Owed {
            ticket: span.ticket,
            index: span.first + offset,
            arrived: span.arrived,
        };
        match runs.iter_mut().find(|run| run.source == span.source) {
            Some(run) => run.units.push_back((owed, unit)),
            None => runs.push(Self {
                source: span.source,
                units: VecDeque::from([(owed, unit)]),
            }),
        }
    }
}

impl<W: Work> Default for LockWaits<W> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            members: HashMap::new(),
            idle: Vec::new(),
            next: 0,
            full_until: None,
        }
    }
}

impl<W: Work> LockWaits<W> {
    /// Takes out the run of a source that has not begun, and tells its place.
    pub(super) fn take_waiting(&mut self, source: usize) -> Option<(usize, KeyedRun<W>)> {
        let of_source = |keyed: &KeyedRun<W>| keyed.run.source == source;
        let at = self.waiting.iter().position(of_source)?;
        Some((at, self.waiting.remove(at)?))
    }

    /// The connection that is busy with a source's units, and the one that it executes.
    pub(super) fn busy_with(&self, source: usize) -> Option<(&Asker, Owed, u64)> {
        self.members.values().find_map(|member| {
            let (owed, number, keyed) = member.busy.as_ref()?;
            (keyed.run.source == source).then_some((&member.asker, *owed, *number))
        })
    }

    /// True while units run alone, or are to: then their keys are to be respected.
    pub(super) fn is_busy(&self) -> bool {
        !self.waiting.is_empty() || self.idle.len() < self.members.len()
    }

    /// True if units wait for a connection.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// When a server that had no room is to be asked once more.
    pub(super) fn asks_again_at(&self) -> Option<Instant> {
        self.full_until.filter(|_| !self.waiting.is_empty())
    }

    /// A number that no unit and no connection here has had.
    pub(super) fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }
}
