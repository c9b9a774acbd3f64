//! How a batch goes once something in it has failed, or is expected to, and nobody may overtake it:
//! as one transaction, in parts that a savepoint each keeps apart. It is committed only when all
//! that its clients are to be told is certain.
//!
//! What failed in a part of its own has failed as it would have alone, behind all that was sent
//! before it; what failed in company is only marked, and runs in a part of its own when the
//! transaction is tried once more.

use std::collections::HashMap;

use super::batch::{Batch, FUSE_FROM};
use super::form::Form;
use super::segment::{Mode, Prospect, Segment};

/// Units in a part where it is not known which of them fails.
const PIECE: usize = 16;

/// From so many on, units that may wait for a lock are looked for piece by piece at first.
const MANY: usize = 256;

/// After so many attempts each unit has a part of its own, which ends the search.
const PATIENCE: u32 = 8;

/// Parts of a transaction whose units need not stay together. PostgreSQL keeps 64 subtransactions
/// of a session in shared memory; with more, every snapshot of other sessions gets slower.
const MAX_PARTS: usize = 48;

/// How what is not marked goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grain {
    /// In set-based statements, as much as lies between two marked units.
    Sets,
    /// In set-based statements that leave out what would fail.
    Told,
    /// In small pieces: of each the first failure is found.
    Pieces,
    /// Each unit by itself.
    Each,
}

/// What is known of a batch that goes carefully.
#[derive(Debug)]
pub(crate) struct Care {
    pub(crate) grain: Grain,
    /// How units run that are expected to fail: each in a part of its own.
    marks: HashMap<u32, Mode>,
    /// The marked ones run behind all others: their failures have nothing to do with other rows.
    pub(crate) tail: bool,
    /// Locks are hardly waited for: it is known that somebody holds some.
    pub(crate) brief: bool,
    /// One unit a transaction: the commit itself was refused.
    pub(crate) one_by_one: bool,
    /// The units that it concerns, ascending; `None`: all of the batch.
    scope: Option<Vec<u32>>,
    attempts: u32,
}

impl Care {
    /// After a failure in company. `tells`: what failed can be left out and told. `lock`: it waits
    /// for a lock.
    pub(crate) fn after(tells: bool, lock: bool) -> Self {
        Self {
            grain: match (lock, tells) {
                (true, _) => Grain::Each,
                (false, true) => Grain::Told,
                (false, false) => Grain::Pieces,
            },
            marks: HashMap::new(),
            tail: true,
            brief: lock,
            one_by_one: false,
            scope: None,
            attempts: 0,
        }
    }

    /// Leaves all units alone but these, which are in ascending order.
    pub(crate) fn within(mut self, units: Vec<u32>) -> Self {
        self.scope = Some(units);
        self
    }

    /// True if it ends with a verdict for every unit of the batch.
    pub(crate) fn is_of_all(&self) -> bool {
        self.scope.is_none()
    }

    /// Units of one source must not overtake each other, so where some are expected to fail all go
    /// as one transaction in parts; but not where some may share none: those wait for each
    /// other's outcomes.
    ///
    /// What has to give the rows that were told, while nothing keeps its table as it was described,
    /// is committed only once its rows have been seen.
    pub(crate) fn needed(batch: &Batch<'_, impl Form>, todo: &[Segment]) -> Option<Self> {
        if todo
            .iter()
            .any(|segment| batch.must_give_told_rows(segment))
        {
            return Some(Self::of(todo));
        }
        let plain = match todo {
            [one] => !matches!(one.mode, Mode::Telling | Mode::Grouped),
            _ => false,
        };
        (!plain && batch.sources.any() && !batch.has_apart()).then(|| Self::of(todo))
    }

    /// For segments that must not overtake each other: some of their units are expected to fail.
    fn of(segments: &[Segment]) -> Self {
        let joined = |mode: &Mode| {
            segments
                .iter()
                .any(|s| s.mode == *mode && s.units.len() > 1)
        };
        let mut care = Self::after(joined(&Mode::Telling), false);
        if care.grain != Grain::Told && !joined(&Mode::Grouped) {
            care.grain = Grain::Sets;
        }
        care
    }

    /// Takes what is known of the units' values already.
    pub(crate) fn mark_suspects(&mut self, batch: &Batch<'_, impl Form>) {
        for (unit, prospect) in (0_u32..).zip(&batch.prospects) {
            if let Prospect::Apart(mode) = prospect {
                self.marks.entry(unit).or_insert_with(|| mode.clone());
            }
        }
    }

    /// The unit has failed, or may have: from now on it runs in its place and by itself.
    pub(crate) fn mark(&mut self, unit: u32, mode: Mode) {
        self.marks.insert(unit, mode);
        self.tail = false;
    }

    /// The attempt is to be made once more. `nameless`: what failed names no unit. `most`: most
    /// parts have failed.
    pub(crate) fn refine(&mut self, nameless: bool, most: bool) {
        self.tail = false;
        self.grain = match self.grain {
            Grain::Sets | Grain::Told if nameless => Grain::Pieces,
            Grain::Sets | Grain::Told => Grain::Sets,
            Grain::Pieces if !nameless && !most => Grain::Sets,
            Grain::Pieces | Grain::Each => Grain::Each,
        };
    }

    /// A transaction of parts has ended well: the attempts at the next one are counted from here.
    pub(crate) fn progressed(&mut self) {
        self.attempts = 0;
    }

    /// Whether the unit is expected to fail.
    pub(crate) fn expects(&self, unit: u32) -> bool {
        self.marks.contains_key(&unit)
    }

    /// Returns the parts of the next attempt, in their order; none if every unit has its verdict.
    pub(crate) fn parts(&mut self, batch: &Batch<'_, impl Form>) -> Vec<Segment> {
        let mut parts = self.all_parts(batch);
        if self.scope.is_some() {
            parts.truncate(MAX_PARTS);
        }
        parts
    }

    fn all_parts(&mut self, batch: &Batch<'_, impl Form>) -> Vec<Segment> {
        self.attempts += 1;
        let mut pending = batch.pending();
        if let Some(scope) = &self.scope {
            pending.retain(|unit| scope.binary_search(unit).is_ok());
        }
        if self.one_by_one {
            pending.truncate(1);
        }
        if self.attempts > PATIENCE {
            (self.grain, self.tail) = (Grain::Each, false);
        }
        if self.brief && self.attempts == 1 && pending.len() > MANY {
            self.grain = Grain::Pieces;
        }
        if self.tail {
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

    fn stretch(&self, batch: &Batch<'_, impl Form>, units: &[u32]) -> Vec<Segment> {
        let whole = |mode| vec![Segment::new(units.to_vec(), mode)];
        match (units, self.grain) {
            ([], _) => Vec::new(),
            ([unit], _) if batch.writes_of(*unit).len() < FUSE_FROM => whole(Mode::Own),
            (_, Grain::Sets) => whole(Mode::Sets),
            (_, Grain::Told) if batch.can_tell(units) => whole(Mode::Telling),
            (_, Grain::Told) => whole(Mode::Sets),
            (_, Grain::Pieces) => Segment::pieces(units, PIECE, &Mode::Grouped),
            (_, Grain::Each) => Segment::pieces(units, 1, &Mode::Own),
        }
    }
}
