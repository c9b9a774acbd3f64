//! The plan of a transaction in parts, each with a savepoint. Units run this way after a failure
//! among them, and if one is expected to fail that later units must not overtake. The transaction
//! commits only once every answer in it is certain.
//!
//! A unit that fails in a part of its own fails as it would have alone, after all units before it.
//! Units that fail together are only marked: the transaction is tried again, and each marked unit
//! has a part of its own then.

use std::collections::{HashMap, HashSet};

use super::batch::{Batch, FUSE_FROM};
use super::segment::{Mode, Prospect, Segment};

/// Units in a part of which it is not known which unit fails.
const PIECE_UNITS: usize = 16;

/// With more units than this, the ones that wait for a lock are first searched for in pieces.
const SINGLY_UNITS: usize = 256;

/// Attempts after which each unit has a part of its own, so that the search ends.
const MAX_ATTEMPTS: u32 = 8;

/// The most parts of a transaction whose units need not stay together. PostgreSQL keeps 64
/// subtransactions of a session in shared memory; with more, every snapshot of other sessions gets
/// slower.
const MAX_PARTS: usize = 48;

/// The form in which units without a mark are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grain {
    /// Set-based statements for all units between two marked ones.
    Sets,
    /// Set-based statements that leave out and report rows that would fail.
    Telling,
    /// Small pieces. The first failure of each piece is found.
    Pieces,
    /// One part for each unit.
    Each,
}

/// The plan of such transactions, refined from one attempt to the next.
#[derive(Debug)]
pub(crate) struct Isolation {
    pub(crate) grain: Grain,
    /// The units that are expected to fail, each with the mode in which it runs, in a part of its
    /// own.
    marks: HashMap<u32, Mode>,
    /// True if marked units run after all others, because their failures do not depend on other
    /// rows.
    pub(crate) has_marks_last: bool,
    /// True if the lock timeout is short, because another session is known to hold locks.
    pub(crate) is_brief: bool,
    /// True if each unit has a transaction of its own, because the commit itself was refused.
    pub(crate) is_one_by_one: bool,
    /// The units concerned, in ascending order; `None` for all of the batch.
    scope: Option<Vec<u32>>,
    attempts: u32,
    /// Units that have a transaction of their own, in their place.
    separate: HashSet<u32>,
}

impl Isolation {
    /// Plans for units of which one has failed. `tells`: the failure is of a kind that a statement
    /// can leave out and report. `lock`: it was a lock timeout.
    pub(crate) fn after(tells: bool, lock: bool) -> Self {
        Self {
            grain: match (lock, tells) {
                (true, _) => Grain::Each,
                (false, true) => Grain::Telling,
                (false, false) => Grain::Pieces,
            },
            marks: HashMap::new(),
            has_marks_last: true,
            is_brief: lock,
            is_one_by_one: false,
            scope: None,
            attempts: 0,
            separate: HashSet::new(),
        }
    }

    /// Restricts the plan to these units, which are in ascending order.
    pub(crate) fn within(mut self, units: Vec<u32>) -> Self {
        self.scope = Some(units);
        self
    }

    /// Returns true if every unit of the batch has its verdict once the plan has been carried out.
    pub(crate) fn is_of_all(&self) -> bool {
        self.scope.is_none()
    }

    /// Returns a plan if the segments cannot be sent as they are.
    ///
    /// Units of one source must not overtake each other, so if some of them are expected to fail,
    /// all run as one transaction in parts. Units that may not share a transaction are an
    /// exception: each waits for the outcome of the one before.
    ///
    /// A statement whose client already knows the columns of its rows is committed only once its
    /// rows have been seen, if nothing keeps the table from changing.
    pub(crate) fn needed(batch: &Batch<'_>, todo: &[Segment]) -> Option<Self> {
        if todo
            .iter()
            .any(|segment| batch.must_give_known_rows(segment))
        {
            return Some(Self::of(todo));
        }
        let plain = match todo {
            [one] => !matches!(one.mode, Mode::Telling | Mode::Grouped),
            _ => false,
        };
        (!plain && batch.sources.any() && !batch.has_apart()).then(|| Self::of(todo))
    }

    /// Plans for segments that must not overtake each other and of which some units are expected to
    /// fail.
    fn of(segments: &[Segment]) -> Self {
        let joined = |mode: &Mode| {
            segments
                .iter()
                .any(|s| s.mode == *mode && s.units.len() > 1)
        };
        let mut isolation = Self::after(joined(&Mode::Telling), false);
        if isolation.grain != Grain::Telling && !joined(&Mode::Grouped) {
            isolation.grain = Grain::Sets;
        }
        isolation
    }

    /// Marks the units whose values are known to fail.
    pub(crate) fn mark_suspects(&mut self, batch: &Batch<'_>) {
        for (unit, prospect) in (0_u32..).zip(&batch.prospects) {
            if let Prospect::Apart(mode) = prospect {
                self.marks.entry(unit).or_insert_with(|| mode.clone());
            }
        }
    }

    /// Marks a unit that has failed or may have: from now on it runs in its place, in a part of its
    /// own.
    pub(crate) fn mark(&mut self, unit: u32, mode: Mode) {
        self.marks.insert(unit, mode);
        self.has_marks_last = false;
    }

    /// Gives a unit a transaction of its own, after all units before it.
    pub(crate) fn separate(&mut self, unit: u32) {
        self.separate.insert(unit);
        self.has_marks_last = false;
    }

    /// Chooses the form of the next attempt. `nameless`: the failure names no unit. `most`: most
    /// parts have failed.
    pub(crate) fn refine(&mut self, nameless: bool, most: bool) {
        self.has_marks_last = false;
        self.grain = match self.grain {
            Grain::Sets | Grain::Telling if nameless => Grain::Pieces,
            Grain::Sets | Grain::Telling => Grain::Sets,
            Grain::Pieces if !nameless && !most => Grain::Sets,
            Grain::Pieces | Grain::Each => Grain::Each,
        };
    }

    /// Starts to count attempts again, because a transaction has been committed.
    pub(crate) fn progressed(&mut self) {
        self.attempts = 0;
    }

    /// Returns true if the unit is expected to fail.
    pub(crate) fn expects(&self, unit: u32) -> bool {
        self.marks.contains_key(&unit)
    }

    /// Returns the parts of the next attempt, in their order; none if every unit has its verdict.
    pub(crate) fn parts(&mut self, batch: &Batch<'_>) -> Vec<Segment> {
        let mut parts = self.all_parts(batch);
        if self.scope.is_some() {
            parts.truncate(MAX_PARTS);
        }
        parts
    }

    fn all_parts(&mut self, batch: &Batch<'_>) -> Vec<Segment> {
        self.attempts += 1;
        let mut pending = batch.pending();
        if let Some(scope) = &self.scope {
            pending.retain(|unit| scope.binary_search(unit).is_ok());
        }
        if self.is_one_by_one {
            pending.truncate(1);
        }
        let mut places = pending.iter();
        if let Some(place) = places.position(|unit| self.separate.contains(unit)) {
            pending.truncate(place.max(1));
        }
        if self.attempts > MAX_ATTEMPTS {
            (self.grain, self.has_marks_last) = (Grain::Each, false);
        }
        if self.is_brief && self.attempts == 1 && pending.len() > SINGLY_UNITS {
            self.grain = Grain::Pieces;
        }
        if self.has_marks_last {
            let (marked, rest): (Vec<u32>, _) = pending.iter().partition(|u| self.expects(**u));
            let mut parts = self.stretch(batch, &rest);
            parts.extend(marked.iter().map(|unit| self.marked(*unit)));
            return parts;
        }
        let mut parts = Vec::new();
        for stretch in pending.chunk_by(|a, b| !self.expects(*a) && !self.expects(*b)) {
            match stretch {
                [unit] if self.expects(*unit) => parts.push(self.marked(*unit)),
                units => parts.extend(self.stretch(batch, units)),
            }
        }
        parts
    }

    fn marked(&self, unit: u32) -> Segment {
        let mode = self.marks.get(&unit).cloned();
        Segment::one(unit, mode.unwrap_or(Mode::Own))
    }

    fn stretch(&self, batch: &Batch<'_>, units: &[u32]) -> Vec<Segment> {
        let whole = |mode| vec![Segment::new(units.to_vec(), mode)];
        match (units, self.grain) {
            ([], _) => Vec::new(),
            ([unit], _) if batch.writes_of(*unit).len() < FUSE_FROM => whole(Mode::Own),
            (_, Grain::Sets) => whole(Mode::Sets),
            (_, Grain::Telling) if batch.can_tell(units) => whole(Mode::Telling),
            (_, Grain::Telling) => whole(Mode::Sets),
            (_, Grain::Pieces) => Segment::pieces(units, PIECE_UNITS, &Mode::Grouped),
            (_, Grain::Each) => Segment::pieces(units, 1, &Mode::Own),
        }
    }
}
