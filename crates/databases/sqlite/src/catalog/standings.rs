//! What has been found out of the tables that clients write to, for operators.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use windrow_core::{Level, Op, Standing, TableName};

use super::sharing::Sharing;

/// The tables met since the schema last changed.
#[derive(Debug, Default)]
pub(crate) struct Standings(Mutex<BTreeMap<TableName, Arc<Sharing>>>);

impl Standings {
    /// Notes a table.
    pub(crate) fn put(&self, table: &TableName, sharing: Arc<Sharing>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(table.clone(), sharing);
    }

    /// Forgets all of them.
    pub(crate) fn clear(&self) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.clear();
    }

    /// All of them, by name.
    pub(crate) fn all(&self) -> Vec<Standing> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = |(table, sharing): (&TableName, &Arc<Sharing>)| {
            let (level, why) = match &**sharing {
                Sharing::Joined => (Level::Grouped, None),
                Sharing::Apart { why, .. } => (Level::Apart, Some(why.clone())),
            };
            Standing {
                table: table.clone(),
                ops: [Op::Insert, Op::Update, Op::Delete].into(),
                level,
                why,
            }
        };
        known.iter().map(standing).collect()
    }
}
