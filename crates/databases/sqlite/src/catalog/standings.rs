//! Holds which tables share transactions, for operators.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use windrow_core::{Level, Op, Standing, TableName};

use super::sharing::Sharing;

/// The tables that clients wrote to since the last change of the schema.
#[derive(Debug, Default)]
pub(crate) struct Standings(Mutex<BTreeMap<TableName, Arc<Sharing>>>);

impl Standings {
    /// Adds a table.
    pub(crate) fn put(&self, table: &TableName, sharing: Arc<Sharing>) {
        let mut known = self.0.lock();
        known.insert(table.clone(), sharing);
    }

    /// Drops all tables.
    pub(crate) fn clear(&self) {
        let mut known = self.0.lock();
        known.clear();
    }

    /// Returns all tables, by name.
    pub(crate) fn all(&self) -> Vec<Standing> {
        let known = self.0.lock();
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
                kept: None,
            }
        };
        known.iter().map(standing).collect()
    }
}
