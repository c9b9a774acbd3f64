//! Sources whose units fail again and again. They travel in batches of their own, so that nobody
//! waits for a stranger's failures, until they recover. Pure.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use windrow_core::{FaultClass, SourceId};

/// The weight of the newest outcome in the share of failures.
const NEWEST: f32 = 0.25;

/// From this share of failures on a source is a suspect: four failures one after another.
const SUSPECT: f32 = 0.65;

/// Below this share it is none any more: some four successes one after another.
const RECOVERED: f32 = 0.3;

/// Below this share it is forgotten.
const FORGOTTEN: f32 = 0.05;

/// The most sources that are known. Past it all are forgotten.
const MAX_SOURCES: usize = 8192;

/// The sources that have failed lately.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    sources: HashMap<SourceId, Failures, RandomState>,
    /// True while suspects travel apart from others: while there are others.
    is_apart: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Failures {
    /// The share of failures among the latest outcomes.
    share: f32,
    is_suspect: bool,
}

impl Suspects {
    /// Counts an outcome of a source. Returns true if the source is a suspect.
    pub(super) fn note(&mut self, source: SourceId, has_failed: bool) -> bool {
        if self.sources.is_empty() && !has_failed {
            return false;
        }
        if has_failed && self.sources.len() >= MAX_SOURCES {
            self.sources.clear();
        }
        let known = match has_failed {
            true => Some(self.sources.entry(source).or_default()),
            false => self.sources.get_mut(&source),
        };
        let Some(failures) = known else {
            return false;
        };
        let newest = if has_failed { 1.0 } else { 0.0 };
        failures.share += (newest - failures.share) * NEWEST;
        failures.is_suspect = match failures.is_suspect {
            true => failures.share >= RECOVERED,
            false => failures.share >= SUSPECT,
        };
        let Failures { share, is_suspect } = *failures;
        if share < FORGOTTEN {
            self.sources.remove(&source);
        }
        is_suspect
    }

    /// True if units of the source travel apart from others.
    pub(super) fn are_apart(&self, source: SourceId) -> bool {
        self.is_apart
            && self
                .sources
                .get(&source)
                .is_some_and(|failures| failures.is_suspect)
    }

    pub(super) fn set_apart(&mut self, is_apart: bool) {
        self.is_apart = is_apart;
    }
}

/// True for faults that a unit has by itself, whoever it travels with.
pub(crate) fn is_own(class: FaultClass) -> bool {
    match class {
        FaultClass::Invalid
        | FaultClass::Value
        | FaultClass::Unique
        | FaultClass::ForeignKey
        | FaultClass::NotNull
        | FaultClass::Check
        | FaultClass::NoTable
        | FaultClass::NoColumn
        | FaultClass::Denied
        | FaultClass::TooLarge
        | FaultClass::Unsupported
        | FaultClass::Other => true,
        FaultClass::Overloaded
        | FaultClass::Unavailable
        | FaultClass::Conflict
        | FaultClass::Unknown
        | FaultClass::Cancelled => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_make_a_suspect_and_successes_clear_it() {
        let (mut suspects, source) = (Suspects::default(), SourceId(7));
        suspects.set_apart(true);
        let made = (1..20).find(|_| suspects.note(source, true));
        assert_eq!(made, Some(4));
        assert!(suspects.are_apart(source) && !suspects.are_apart(SourceId(8)));
        let cleared = (1..20).find(|_| !suspects.note(source, false));
        assert_eq!(cleared, Some(3));
        assert!((0..10).all(|_| !suspects.note(source, false)));
        assert!(suspects.sources.is_empty());
    }

    #[test]
    fn a_failure_now_and_then_makes_none() {
        let mut suspects = Suspects::default();
        let mut outcomes = (0..1000).map(|n| suspects.note(SourceId(1), n % 2 == 0));
        assert!(outcomes.all(|is_suspect| !is_suspect));
    }

    #[test]
    fn what_is_known_is_bounded() {
        let mut suspects = Suspects::default();
        for source in 0..3 * MAX_SOURCES as u64 {
            suspects.note(SourceId(source), true);
        }
        assert!(suspects.sources.len() <= MAX_SOURCES);
    }
}
