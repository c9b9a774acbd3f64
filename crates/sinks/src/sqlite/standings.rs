//! What has been found out of the tables that clients write to, for operators.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use windrow_core::{Level, Op, Standing, TableName};

use super::company::Company;

/// The tables met since the schema last changed.
#[derive(Debug, Default)]
pub(super) struct Standings(Mutex<BTreeMap<TableName, Arc<Company>>>);

impl Standings {
    /// Notes a table.
    pub(super) fn put(&self, table: &TableName, company: Arc<Company>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(table.clone(), company);
    }

    /// Forgets all of them.
    pub(super) fn clear(&self) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.clear();
    }

    /// All of them, by name.
    pub(super) fn all(&self) -> Vec<Standing> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = |(table, company): (&TableName, &Arc<Company>)| {
            let (level, why) = match &**company {
                Company::Joined => (Level::Grouped, None),
                Company::Apart { why, .. } => (Level::Apart, Some(why.clone())),
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
