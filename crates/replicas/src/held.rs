//! Rows that a replica has refused for now.
//!
//! The applier writes rows as they are in the primary now. Such a row may refer to rows whose keys
//! are further back in the log, as a child whose parent has been written since. So a refused row is
//! tried again once the replica has everything that was in the log by then. That is done twice,
//! because the keys of a batch that ended meanwhile may come after its note.

use windrow_core::{Fault, Write};

/// The attempts of a row before its refusal counts.
const TRIES: u32 = 3;

/// A row that was refused.
#[derive(Debug)]
pub(crate) struct HeldRow {
    pub(crate) key: Write,
    /// The entry of the row.
    pub(crate) position: u64,
    pub(crate) fault: Fault,
    /// The position that the replica must have reached before the row is tried again.
    barrier: u64,
    tries: u32,
}

/// All refused rows.
#[derive(Debug, Default)]
pub(crate) struct HeldRows(Vec<HeldRow>);

impl HeldRows {
    /// Adds a row. `end`: the end of the log. Returns the row if its refusal counts.
    pub(crate) fn put(
        &mut self,
        (key, position): (Write, u64),
        fault: Fault,
        end: u64,
        tries: u32,
    ) -> Option<HeldRow> {
        let held = HeldRow {
            key,
            position,
            fault,
            barrier: end,
            tries: tries + 1,
        };
        if held.tries >= TRIES {
            return Some(held);
        }
        self.0.push(held);
        None
    }

    /// Takes the rows that may be tried again: the replica has all entries before `reached`.
    pub(crate) fn due(&mut self, reached: u64) -> Vec<(Write, u64, u32)> {
        let due = self.0.extract_if(.., |held| held.barrier <= reached);
        due.map(|held| (held.key, held.position, held.tries))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use windrow_core::{KeyedTable, TableName};

    use super::*;
    use crate::followed::Followed;

    #[test]
    fn a_refusal_counts_once_nothing_more_can_help() {
        let followed = Arc::new(Followed::new(KeyedTable {
            name: TableName::bare("t"),
            key: ["id".into()].into(),
            columns: ["id".into()].into(),
            generated: Box::default(),
            keeps_key: true,
        }));
        let mut held = HeldRows::default();
        let mut row = (followed.key([1.into()]), 5_u64);
        for (tries, end) in [(0, 9), (1, 12)] {
            assert!(held.put(row, Fault::invalid("no"), end, tries).is_none());
            assert!(held.due(end - 1).is_empty());
            let mut due = held.due(end);
            let (key, position, tried) = due.pop().unwrap();
            assert_eq!((position, tried), (5, tries + 1));
            row = (key, position);
        }
        assert!(held.put(row, Fault::invalid("no"), 12, 2).is_some());
        assert!(held.due(u64::MAX).is_empty());
    }
}
