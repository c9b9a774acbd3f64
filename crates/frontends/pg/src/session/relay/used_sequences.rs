//! Sequences from which values may have been taken on a server connection.

use std::collections::BTreeSet;

use smallvec::SmallVec;
use windrow_sql::Sequences;

/// The most sequences that are asked for at once.
const MAX_SEQUENCES: usize = 64;

/// Sequences from which values may have been taken on a server connection.
#[derive(Debug, Default)]
pub(super) struct UsedSequences {
    numbers: BTreeSet<u32>,
    names: BTreeSet<Box<str>>,
    /// True if there may be others.
    others: bool,
}

impl UsedSequences {
    /// Notes sequences that a statement may take values from.
    pub(super) fn note(&mut self, sequences: &[u32]) {
        for sequence in sequences {
            self.others |= self.numbers.len() >= MAX_SEQUENCES && !self.numbers.contains(sequence);
            if self.numbers.len() < MAX_SEQUENCES {
                self.numbers.insert(*sequence);
            }
        }
    }

    /// Notes sequences that a statement names.
    pub(super) fn note_named(&mut self, sequences: Sequences) {
        self.others |= sequences.others || self.names.len() + sequences.names.len() > MAX_SEQUENCES;
        let room = MAX_SEQUENCES.saturating_sub(self.names.len());
        self.names.extend(sequences.names.into_iter().take(room));
    }

    /// Notes that values may have been taken from any sequence.
    pub(super) fn note_others(&mut self) {
        self.others = true;
    }

    /// Returns true if values may have been taken from any sequence.
    pub(super) fn has_others(&self) -> bool {
        self.others
    }

    /// Returns the numbers of the sequences, if there are no others.
    pub(super) fn numbers(&self) -> Option<SmallVec<[u32; 2]>> {
        let is_all = !self.others && self.names.is_empty();
        is_all.then(|| self.numbers.iter().copied().collect())
    }

    /// Returns the sequences to ask for, by name or number. `known`: those of which the session
    /// knows a value, which are asked for as well if there may be others.
    pub(super) fn to_ask(
        &self,
        known: impl Iterator<Item = u32>,
        may_be_others: bool,
    ) -> Vec<String> {
        let mut numbers = self.numbers.clone();
        if self.others || may_be_others {
            numbers.extend(known);
        }
        let numbers = numbers.iter().map(u32::to_string);
        numbers
            .chain(self.names.iter().map(ToString::to_string))
            .collect()
    }
}

/// The ability of questions to check which values were taken on the server connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Look {
    #[default]
    Unknown,
    /// Questions can check, as long as nothing is rolled back or discarded.
    Can,
    Cannot,
}
