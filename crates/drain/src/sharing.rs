//! Decides which entries may share a unit, by what the database knows of their tables.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use windrow_core::{Database, Level, Op, Shape, TableName, Write};

/// The time for which an answer counts, because a table may be changed at any moment.
const BELIEVED: Duration = Duration::from_secs(1);

/// The writes that may share a transaction with others.
pub(crate) struct Sharing {
    database: Arc<dyn Database>,
    /// For each table, its operations, with false for those that must be alone in their
    /// transaction.
    known: HashMap<TableName, Vec<(Op, bool)>>,
    asked: Option<Instant>,
    /// The last shape that was looked up; the next write nearly always has the same one.
    last: Option<(Arc<Shape>, Option<bool>)>,
}

impl Sharing {
    pub(crate) fn new(database: Arc<dyn Database>) -> Self {
        Self {
            database,
            known: HashMap::new(),
            asked: None,
            last: None,
        }
    }

    /// True if all writes of an entry may share a transaction with those of others. An unknown
    /// write may not: its execution lets the database describe its table.
    pub(crate) fn may_share(&mut self, writes: &[Write]) -> bool {
        writes.iter().all(|write| self.shares(write) == Some(true))
    }

    /// Reads the database's knowledge again, if it is old or does not cover the first entry. Called
    /// before a unit is formed.
    pub(crate) fn renew(&mut self, first: &[Write]) {
        let is_old = self.asked.is_none_or(|asked| asked.elapsed() > BELIEVED);
        if !is_old && first.iter().all(|write| self.shares(write).is_some()) {
            return;
        }
        self.asked = Some(Instant::now());
        self.last = None;
        self.known.clear();
        for standing in self.database.standings() {
            let shares = standing.level > Level::Apart;
            let ops = standing.ops.iter().map(|op| (*op, shares));
            self.known.entry(standing.table).or_default().extend(ops);
        }
    }

    fn shares(&mut self, write: &Write) -> Option<bool> {
        // There, each write is alone.
        if !self.database.profile().transactional {
            return Some(true);
        }
        if let Some((shape, shares)) = &self.last
            && Arc::ptr_eq(shape, &write.shape)
        {
            return *shares;
        }
        let of_table = self.known.get(&write.shape.table);
        let mut of_op = of_table
            .into_iter()
            .flatten()
            .filter(|(op, _)| *op == write.shape.op);
        let shares = of_op.next().map(|(_, shares)| *shares);
        self.last = Some((Arc::clone(&write.shape), shares));
        shares
    }
}
