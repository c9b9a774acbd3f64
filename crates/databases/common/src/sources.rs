//! The units of a batch that have the same source: they were not requested concurrently, so a later
//! one may depend on an earlier one.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use windrow_core::{SourceId, Unit};

/// The sources that have several units in a batch.
#[derive(Debug, Default)]
pub struct Sources {
    /// The number of each unit's source, without gaps; empty if no two units have the same source.
    numbers: Vec<u32>,
}

/// The number of a source that has only one unit in the batch.
const OWN: u32 = u32::MAX;

impl Sources {
    /// Numbers the sources of a batch.
    pub fn of(units: &[Unit]) -> Self {
        // Nearly always all are different, and checking that is faster than numbering them.
        let mut all: Vec<SourceId> = units.iter().map(Unit::source).collect();
        all.sort_unstable();
        let same = |pair: &[SourceId]| matches!(pair, [a, b] if a == b && *a != SourceId::OWN);
        if !all.windows(2).any(same) {
            return Self::default();
        }
        let mut several: HashMap<SourceId, u32, RandomState> = HashMap::default();
        for source in all.windows(2).filter(|pair| same(pair)).flatten() {
            let next = u32::try_from(several.len()).unwrap_or(OWN);
            several.entry(*source).or_insert(next);
        }
        let number = |unit: &Unit| several.get(&unit.source()).copied().unwrap_or(OWN);
        Self {
            numbers: units.iter().map(number).collect(),
        }
    }

    /// True if a source has several units.
    pub fn any(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// Returns the number of the unit's source; `None` if no other unit has that source.
    pub fn of_unit(&self, unit: u32) -> Option<u32> {
        let number = self.numbers.get(unit as usize).copied();
        number.filter(|number| *number != OWN)
    }

    /// Returns the later units of the same source.
    pub fn followers(&self, unit: u32) -> impl Iterator<Item = u32> {
        let source = self.of_unit(unit);
        let behind = (0_u32..).zip(&self.numbers).skip(unit as usize + 1);
        behind
            .filter(move |(_, number)| source == Some(**number))
            .map(|(unit, _)| unit)
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    fn units(sources: &[u64]) -> Vec<Unit> {
        let unit = |source: &u64| {
            let mut unit = Unit::of([]);
            unit.hand_over(SourceId(*source));
            unit
        };
        sources.iter().map(unit).collect()
    }

    #[test]
    fn a_source_of_its_own_follows_nobody() {
        assert!(!Sources::of(&units(&[3, 1, 2])).any());
        assert!(!Sources::of(&units(&[SourceId::OWN.0; 2])).any());
    }

    #[test]
    fn those_of_one_source_follow_each_other() {
        let sources = Sources::of(&units(&[7, 5, 7, 9, 5, 7]));
        assert_eq!(sources.of_unit(3), None);
        assert_eq!(sources.of_unit(0), sources.of_unit(2));
        assert_ne!(sources.of_unit(0), sources.of_unit(1));
        assert_eq!(sources.followers(0).collect::<Vec<_>>(), [2, 5]);
        assert_eq!(sources.followers(3).count(), 0);
        assert_eq!(sources.followers(5).count(), 0);
    }
}
