//! Sequences from which values may have been taken on a server connection.

use std::collections::BTreeSet;

use windrow_sql::Sequences;

/// The most sequences that are asked for at once.
const MOST: usize = 64;

/// Sequences from which values may have been taken on a server connection.
#[derive(Debug, Default)]
pub(super) struct UsedSequences {
    pub(super) numbers: BTreeSet<u32>,
    pub(super) names: BTreeSet<Box<str>>,
    /// There may be others.
    pub(super) others: bool,
}

impl UsedSequences {
    /// Takes note of sequences that a statement may take from.
    pub(super) fn note(&mut self, sequences: &[u32]) {
        for sequence in sequences {
            self.others |= self.numbers.len() >= MOST && !self.numbers.contains(sequence);
            if self.numbers.len() < MOST {
                self.numbers.insert(*sequence);
            }
        }
    }

    /// Takes note of sequences that a statement names.
    pub(super) fn note_named(&mut self, sequences: Sequences) {
        self.others |= sequences.others || self.names.len() + sequences.names.len() > MOST;
        let room = MOST.saturating_sub(self.names.len());
        self.names.extend(sequences.names.into_iter().take(room));
    }

    /// Takes note that it may be any.
    pub(super) fn note_others(&mut self) {
        self.others = true;
    }

    /// True where it may be any.
    pub(super) fn has_others(&self) -> bool {
        self.others
    }
}
