//! The described statements and tables of a lane, shared by its connections.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use windrow_core::apart::Apart;
use windrow_core::{Level, Op, ParsedStatement, Signature, Standing, Statement, TableName};

use super::meaning::{ClientMeaning, level};
use super::table_look::TableLook;

/// Statements that are kept. After that those without users are dropped, and then all.
const MAX_STATEMENTS: usize = 4096;

/// Tables that are kept. After that all are dropped.
const MAX_TABLES: usize = 1024;

/// The described statements and tables of a lane.
#[derive(Default)]
pub(super) struct ClientCatalog {
    shared: Mutex<Shared>,
}

#[derive(Default)]
struct Shared {
    tables: HashMap<TableName, Arc<TableLook>>,
    statements: HashMap<u64, (Weak<Statement>, Arc<ClientMeaning>)>,
    standings: HashMap<(TableName, Op), (Level, Option<Apart>)>,
}

impl ClientCatalog {
    /// Returns a table that was checked a short time ago. A table is not trusted if one of its
    /// statements was retired, because it has changed then.
    pub(super) fn trusted_table(&self, name: &TableName) -> Option<Arc<TableLook>> {
        let mut shared = self.shared.lock();
        let is_retired = |(known, meaning): &(Weak<Statement>, Arc<ClientMeaning>)| {
            let is_retired = known.upgrade().is_some_and(|known| known.is_retired());
            is_retired && meaning.table.name == *name
        };
        let has_retired = shared.statements.values().any(is_retired);
        if has_retired {
            shared.tables.remove(name);
            shared.retire(name);
        }
        let table = shared.tables.get(name).cloned();
        table.filter(|table| table.is_trusted())
    }

    /// Adds a table that was read. Statements of a table that was different are retired.
    pub(super) fn put_table(&self, look: TableLook) -> Arc<TableLook> {
        let look = Arc::new(look);
        let mut shared = self.shared.lock();
        if shared.tables.len() >= MAX_TABLES {
            shared.tables.clear();
        }
        let before = shared.tables.insert(look.name.clone(), Arc::clone(&look));
        if before.is_some_and(|before| !before.is_like(&look)) {
            shared.retire(&look.name);
        }
        look
    }

    /// Forgets a table that is not as described, and retires its statements.
    pub(super) fn retire_table(&self, name: &TableName) {
        let mut shared = self.shared.lock();
        shared.tables.remove(name);
        shared.retire(name);
    }

    /// Makes a statement of its meaning.
    pub(super) fn statement(
        &self,
        parsed: &Arc<ParsedStatement>,
        meaning: ClientMeaning,
    ) -> Arc<Statement> {
        let meaning = Arc::new(meaning);
        let signature = Arc::new(Signature::default());
        let touches: Arc<ClientMeaning> = Arc::clone(&meaning);
        let statement = Arc::new(Statement::new(Arc::clone(parsed), signature, touches));
        let mut shared = self.shared.lock();
        if shared.statements.len() >= MAX_STATEMENTS {
            shared
                .statements
                .retain(|_, (known, _)| known.strong_count() > 0);
        }
        if shared.statements.len() >= MAX_STATEMENTS {
            let all = std::mem::take(&mut shared.statements);
            all.values()
                .filter_map(|(known, _)| known.upgrade())
                .for_each(|s| s.retire());
        }
        let known = (Arc::downgrade(&statement), meaning);
        shared.statements.insert(statement.id(), known);
        statement
    }

    /// Returns the meaning of a statement of this lane.
    pub(super) fn meaning(&self, statement: &Statement) -> Option<Arc<ClientMeaning>> {
        let shared = self.shared.lock();
        let known = shared.statements.get(&statement.id());
        known.map(|(_, meaning)| Arc::clone(meaning))
    }

    /// Notes how a statement is joined, for operators.
    pub(super) fn stand(&self, parsed: &ParsedStatement, found: Result<&ClientMeaning, &Apart>) {
        let mut shared = self.shared.lock();
        if shared.standings.len() >= MAX_TABLES {
            shared.standings.clear();
        }
        let standing = match found {
            Ok(meaning) => (level(meaning), None),
            Err(apart) => (Level::Apart, Some(apart.clone())),
        };
        let of = (parsed.table.clone(), parsed.op);
        shared.standings.insert(of, standing);
    }

    /// Returns how the statements of each table are joined, as far as they were described.
    pub(super) fn standings(&self) -> Vec<Standing> {
        let shared = self.shared.lock();
        let mut known: Vec<_> = shared.standings.iter().collect();
        known.sort_by_key(|(of, _)| *of);
        let mut standings = Vec::new();
        for ((table, op), (level, why)) in known {
            Standing::add(&mut standings, table, *op, *level, why.clone());
        }
        standings
    }
}

impl Shared {
    fn retire(&mut self, name: &TableName) {
        let of_table = self
            .statements
            .extract_if(|_, (_, m)| m.table.name == *name);
        for (_, (known, _)) in of_table {
            if let Some(statement) = known.upgrade() {
                statement.retire();
            }
        }
    }
}
