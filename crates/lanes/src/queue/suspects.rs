//! Sources whose units fail again and again, and tables on which the first units of new sources
//! do. They travel in batches of their own until they recover, so that no client waits for
//! another's failures. Pure.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use windrow_core::{SourceId, Unit};

/// The weight of the newest outcome in the share of failures.
const NEWEST: f32 = 0.25;

/// The share of failures from which on a source is a suspect: four failures one after another.
const SUSPECT: f32 = 0.65;

/// The share below which a suspect has recovered: some four successes one after another.
const RECOVERED: f32 = 0.3;

/// The share below which a suspect is forgotten.
const FORGOTTEN: f32 = 0.05;

/// The most known suspects. Beyond that, all are forgotten.
const MAX_KNOWN: usize = 8192;

/// A source, or the new sources of a table, whose units may fail again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Suspect {
    Source(SourceId),
    /// Sources without an outcome yet, by the hash of the table of their first write.
    NewTo(u64),
}

/// Suspects whose units have failed lately.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    known: HashMap<Suspect, FailureCount, RandomState>,
}

#[derive(Clone, Copy, Debug, Default)]
struct FailureCount {
    /// The share of failures among the latest outcomes.
    share: f32,
    is_suspect: bool,
}

impl Suspects {
    /// Counts an outcome.
    pub(super) fn note(&mut self, of: Suspect, has_failed: bool) {
        if self.known.is_empty() && !has_failed {
            return;
        }
        if has_failed && self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        let known = match has_failed {
            true => Some(self.known.entry(of).or_default()),
            false => self.known.get_mut(&of),
        };
        let Some(failures) = known else {
            return;
        };
        let newest = if has_failed { 1.0 } else { 0.0 };
        failures.share += (newest - failures.share) * NEWEST;
        failures.is_suspect = match failures.is_suspect {
            true => failures.share >= RECOVERED,
            false => failures.share >= SUSPECT,
        };
        if failures.share < FORGOTTEN {
            self.known.remove(&of);
        }
    }

    /// True for a suspect.
    pub(super) fn has(&self, one: Suspect) -> bool {
        let failures = self.known.get(&one);
        failures.is_some_and(|failures| failures.is_suspect)
    }

    /// True if other units should not wait for a unit of this source. `new_to`: the table of its
    /// first write, if the source has no outcome yet.
    pub(super) fn delays_others(
        &self,
        source: SourceId,
        new_to: Option<u64>,
        next: Option<&Unit>,
    ) -> bool {
        next.is_some_and(Unit::has_long_answer)
            || self.has(Suspect::Source(source))
            || new_to.is_some_and(|table| self.has(Suspect::NewTo(table)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_in_a_row_make_a_suspect_and_successes_clear_it() {
        let (mut suspects, source) = (Suspects::default(), Suspect::Source(SourceId(7)));
        let mut note = |has_failed| {
            suspects.note(source, has_failed);
            suspects.has(source)
        };
        let made = (1..20).find(|_| note(true));
        assert_eq!(made, Some(4));
        let cleared = (1..20).find(|_| !note(false));
        assert_eq!(cleared, Some(3));
        assert!((0..10).all(|_| !note(false)) && !suspects.has(Suspect::NewTo(7)));
        assert!(suspects.known.is_empty());
    }

    #[test]
    fn a_failure_now_and_then_makes_none() {
        let mut suspects = Suspects::default();
        for n in 0..1000 {
            suspects.note(Suspect::NewTo(1), n % 2 == 0);
            assert!(!suspects.has(Suspect::NewTo(1)));
        }
    }

    #[test]
    fn what_is_known_is_bounded() {
        let mut suspects = Suspects::default();
        for source in 0..3 * MAX_KNOWN as u64 {
            suspects.note(Suspect::Source(SourceId(source)), true);
        }
        assert!(suspects.known.len() <= MAX_KNOWN);
    }
}
