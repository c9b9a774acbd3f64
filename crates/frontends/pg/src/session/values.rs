//! What a session's statements took from sequences: what `lastval()` and `currval()` say.

use smallvec::SmallVec;
use windrow_core::{Done, Generated};

/// Sequences of which the newest value is kept; those used longest ago are forgotten first.
const MOST: usize = 64;

/// Values that a session took from sequences, other than those that only its server connection knows.
#[derive(Debug, Default)]
pub(crate) struct Values {
    last: Option<i64>,
    by_sequence: SmallVec<[Generated; 1]>,
    /// Values were taken of which the sequence is not known, or were forgotten.
    incomplete: bool,
}

impl Values {
    /// Takes note of what a joined call took.
    pub(crate) fn note(&mut self, done: &Done) {
        let Some(generated) = done.told.as_ref().and_then(|told| told.generated.as_ref()) else {
            return;
        };
        self.last = Some(generated.value);
        self.by_sequence
            .retain(|known| known.sequence != generated.sequence);
        if self.by_sequence.len() >= MOST {
            self.by_sequence.remove(0);
            self.incomplete = true;
        }
        self.by_sequence.push(generated.clone());
    }

    /// Takes note of what `lastval()` said on a server connection on which values may have been taken.
    pub(crate) fn note_relayed(&mut self, last: Option<i64>) {
        if last.is_some() {
            self.last = last;
            self.by_sequence.clear();
            self.incomplete = true;
        }
    }

    /// What `lastval()` says; `None`: nothing was taken in this session.
    pub(crate) fn last(&self) -> Option<i64> {
        self.last
    }

    /// What `currval()` says of a sequence, as far as it is known.
    pub(crate) fn current(&self, sequence: u32) -> Option<i64> {
        let known = self.by_sequence.iter();
        known
            .filter(|known| known.sequence == sequence)
            .map(|known| known.value)
            .next()
    }

    /// True where `currval()` of a sequence that is not known here may still have a value.
    pub(crate) fn is_incomplete(&self) -> bool {
        self.incomplete
    }

    /// Forgets everything, as DISCARD SEQUENCES does.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
