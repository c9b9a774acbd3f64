//! All tables and statements that a lane's calls are about.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::time::Instant;
use windrow_core::{
    Apart, Call, Level, Op, ParsedStatement, Signature, Standing, Statement, TableName,
};

use super::meaning::Meaning;
use crate::catalog::table::{Facts, Table};

/// The most tables, and the most statements of a table, that are kept. Past it those that nobody
/// holds are dropped, and then all: they are described anew.
const MOST: usize = 10_000;

/// What is known of one table.
#[derive(Debug)]
struct Entry {
    table: Arc<Table>,
    statements: Vec<Weak<Statement>>,
}

/// What was found out anew about a statement whose table was changed.
#[derive(Clone, Debug)]
pub(crate) enum Renewed {
    /// Its calls may still be joined.
    Joined(Arc<Meaning>),
    /// They may not any more: each is parsed anew. Its types.
    Apart(Arc<Signature>),
    /// The server refuses it.
    Refused,
}

impl Renewed {
    /// The types that it has by now, where it has any.
    pub(super) fn signature(&self) -> Option<&Arc<Signature>> {
        match self {
            Self::Joined(meaning) => Some(&meaning.signature),
            Self::Apart(signature) => Some(signature),
            Self::Refused => None,
        }
    }
}

/// What the calls of a statement may share, and why no more, by table and by what is done.
type Standings = HashMap<(TableName, Op), (Level, Option<Apart>)>;

/// Shared by all connections of a sink.
#[derive(Debug, Default)]
pub(crate) struct CallCatalog {
    tables: Mutex<HashMap<(u32, Box<str>), Entry>>,
    /// By the statement's number, and whether its types are those of the moment ([`Call::fresh`]).
    /// With each a number by which it is told apart from what was known before.
    renewed: Mutex<HashMap<(u64, bool), (u64, Renewed)>>,
    versions: AtomicU64,
    /// What was found of the statement that was described last, by table as clients name it, and
    /// by what is done.
    standings: Mutex<Standings>,
}

impl CallCatalog {
    /// Takes in what was read of a table. A description that has not changed keeps its version.
    pub(super) fn put(&self, oid: u32, facts: Facts) -> Arc<Table> {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let spelling = facts.print.as_ref().map(|print| print.spelling.clone());
        let key = (oid, spelling.unwrap_or_default());
        if let Some(known) = tables.get(&key) {
            let table = &known.table;
            if table.facts == facts {
                return table.clone();
            }
        }
        let table = Arc::new(Table {
            version: self.versions.fetch_add(1, Ordering::Relaxed),
            read_at: Instant::now(),
            facts,
        });
        if tables.len() >= MOST {
            tables.clear();
        }
        match tables.get_mut(&key) {
            Some(known) => known.table = table.clone(),
            None => {
                let entry = Entry {
                    table: table.clone(),
                    statements: Vec::new(),
                };
                tables.insert(key, entry);
            }
        }
        table
    }

    /// Takes note of a statement on a table.
    pub(super) fn note(&self, table: &Table, statement: &Arc<Statement>) {
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(entry) = key(table).and_then(|key| tables.get_mut(&key)) else {
            return;
        };
        if entry.statements.len() >= MOST {
            entry.statements.retain(|known| known.strong_count() > 0);
        }
        entry.statements.push(Arc::downgrade(statement));
    }

    /// The description of a table is not true any more: all statements on it are to be described
    /// anew.
    pub(crate) fn retire(&self, table: &Table) {
        let mut renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        let relies = |found: &Renewed| match found {
            Renewed::Joined(meaning) => meaning.table.version == table.version,
            _ => false,
        };
        renewed.retain(|_, (_, found)| !relies(found));
        drop(renewed);
        let mut tables = self.tables.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &(&(u32, Box<str>), &mut Entry)| Some(known.0.0) == table.oid();
        let entries = tables.iter_mut().filter(same);
        for statement in entries.flat_map(|(_, entry)| entry.statements.drain(..)) {
            if let Some(statement) = statement.upgrade() {
                statement.retire();
            }
        }
    }

    /// Takes note of what the calls of a statement may share, for operators.
    pub(super) fn stand(&self, parsed: &ParsedStatement, found: Result<&Meaning, &Apart>) {
        let (level, why) = match found {
            Ok(meaning) => match &meaning.grouped {
                None => (Level::Fused, None),
                why => (Level::Grouped, why.clone()),
            },
            Err(apart) => (Level::Apart, Some(apart.clone())),
        };
        let mut all = self
            .standings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST {
            all.clear();
        }
        all.insert((parsed.table.clone(), parsed.op), (level, why));
    }

    /// What is known of all tables, in their order.
    pub(super) fn standings(&self) -> Vec<Standing> {
        let all = self
            .standings
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = all.iter().collect();
        all.sort_by_cached_key(|((table, op), _)| (table.to_string(), *op));
        let mut standings = Vec::new();
        for ((table, op), (level, why)) in all {
            Standing::add(&mut standings, table, *op, *level, why.clone());
        }
        standings
    }

    /// What was found out anew about the call's statement, if that was to be done.
    pub(crate) fn renewed(&self, call: &Call) -> Option<(u64, Renewed)> {
        if !call.statement.is_retired() {
            return None;
        }
        let renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        renewed.get(&(call.statement.id(), call.fresh)).cloned()
    }

    /// Whether the call's statement is retired and nothing else is known of it.
    pub(crate) fn lacks(&self, call: &Call) -> bool {
        call.statement.is_retired() && self.renewed(call).is_none()
    }

    /// Takes note of what was found out.
    pub(super) fn renew(&self, call: &Call, found: Renewed) {
        let mut renewed = self.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        if renewed.len() >= MOST {
            renewed.clear();
        }
        let generation = self.versions.fetch_add(1, Ordering::Relaxed) + 1;
        renewed.insert((call.statement.id(), call.fresh), (generation, found));
    }
}

/// A table, and what statements call it.
fn key(table: &Table) -> Option<(u32, Box<str>)> {
    let print = table.print.as_ref()?;
    Some((print.oid()?, print.spelling.clone()))
}
