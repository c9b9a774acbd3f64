//! A lane's knowledge of the tables and statements of its calls.
//!
//! The catalog finds a statement by its number, as long as the statement is referenced elsewhere.
//! An entry has the statement's meaning (owned by the statement itself) and, if its table was
//! changed since, the result of describing it again. Entries of unreferenced statements are
//! removed.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use windrow_core::{
    Apart, Doubt, Level, Op, ParsedStatement, Signature, SqlCall, Standing, Statement, TableName,
};

use super::describe::Description;
use super::known_tables::KnownTables;
use super::meaning::Meaning;
use crate::catalog::table::{Facts, Table};

/// Maximum number of tables, and of standings. Past it, all are dropped and described again. Past
/// this number of statements, the unreferenced ones are removed.
const MOST: usize = 10_000;

/// The result of describing a statement again after its table was changed.
#[derive(Clone, Debug)]
pub(crate) enum Renewed {
    /// Calls of the statement may still be joined.
    Joined(Arc<Meaning>),
    /// Calls may not be joined any more: the server parses each again. Has the current types.
    Apart(Arc<Signature>),
    /// The server refuses the statement.
    Refused,
    /// The statement is a part of a preview, and would answer or store another row now.
    Replaced,
}

impl Renewed {
    /// Returns the statement's current types, unless the server refuses it.
    pub(crate) fn signature(&self) -> Option<&Arc<Signature>> {
        match self {
            Self::Joined(meaning) => Some(&meaning.signature),
            Self::Apart(signature) => Some(signature),
            Self::Refused | Self::Replaced => None,
        }
    }
}

/// The catalog's entry of one statement.
#[derive(Debug, Default)]
struct Known {
    statement: Weak<Statement>,
    meaning: Weak<Meaning>,
    /// Results of describing the statement again: first with the types that its clients received,
    /// then with the current types ([`SqlCall::fresh`]). Each has a number that distinguishes it
    /// from earlier results.
    renewed: [Option<(u64, Renewed)>; 2],
}

/// Statements by their numbers.
#[derive(Debug, Default)]
struct Statements {
    known: HashMap<u64, Known>,
    /// Number of entries from which on the unreferenced ones are removed.
    room: usize,
}

impl Statements {
    fn entry(&mut self, statement: &Arc<Statement>) -> &mut Known {
        if self.known.len() >= self.room {
            self.known
                .retain(|_, known| known.statement.strong_count() > 0);
            self.room = MOST.max(self.known.len() * 2);
        }
        let known = self.known.entry(statement.id()).or_default();
        known.statement = Arc::downgrade(statement);
        known
    }
}

/// The level that the calls of a statement may share, and the reason for no higher level, by table
/// and operation.
type Standings = HashMap<(TableName, Op), (Level, Option<Apart>, Option<Kept>)>;

/// The reason why an INSERT is not kept in transactions; `Ok` if it is.
type Kept = Result<(), &'static Doubt>;

/// A table's OID, and its spelling in statements.
type TableKey = (u32, Box<str>);

/// The catalog that all connections of a lane share.
#[derive(Debug, Default)]
pub(crate) struct CallCatalog {
    tables: Mutex<HashMap<TableKey, Arc<Table>>>,
    statements: Mutex<Statements>,
    versions: AtomicU64,
    /// Levels of the statements that were described last, by table as clients name it and by
    /// operation.
    standings: Mutex<Standings>,
    /// Tables that were read to describe statements.
    known: Mutex<KnownTables>,
}

impl CallCatalog {
    /// Stores the facts of a table. A table whose facts have not changed keeps its version.
    pub(crate) fn put(&self, oid: u32, facts: Facts) -> Arc<Table> {
        let mut tables = self.tables.lock();
        let spelling = facts.print.as_ref().map(|print| print.spelling.clone());
        let key = (oid, spelling.unwrap_or_default());
        if let Some(known) = tables.get(&key).filter(|known| known.facts == facts) {
            return known.clone();
        }
        let table = Arc::new(Table::new(
            self.versions.fetch_add(1, Ordering::Relaxed),
            facts,
        ));
        if tables.len() >= MOST {
            tables.clear();
        }
        self.known.lock().forget(oid);
        tables.insert(key, table.clone());
        table
    }

    /// Returns a description without types for a statement that is described for the first time, if
    /// its table was read for another statement.
    pub(crate) fn first_description(&self, parsed: &ParsedStatement) -> Option<Description> {
        self.known.lock().first_description(parsed)
    }

    /// Notes the table that was read for a statement.
    pub(crate) fn note_table(&self, parsed: &ParsedStatement, description: &Description) {
        self.known.lock().note(parsed, description);
    }

    /// Notes the meaning of a statement.
    pub(crate) fn note(&self, statement: &Arc<Statement>, meaning: &Arc<Meaning>) {
        self.statements.lock().entry(statement).meaning = Arc::downgrade(meaning);
    }

    /// Returns the meaning of a statement when it was described; `None` if the statement is not
    /// referenced any more, or if it was described elsewhere.
    pub(crate) fn meaning(&self, statement: &Statement) -> Option<Arc<Meaning>> {
        let statements = self.statements.lock();
        statements.known.get(&statement.id())?.meaning.upgrade()
    }

    /// Retires all statements on a table whose description no longer holds: they have to be
    /// described again.
    pub(crate) fn retire(&self, table: &Table) {
        if let Some(oid) = table.oid() {
            self.known.lock().forget(oid);
        }
        let relies = |found: &Option<(u64, Renewed)>| match found {
            Some((_, Renewed::Joined(meaning))) => meaning.table.version == table.version,
            _ => false,
        };
        let is_of_table = |known: &Known| {
            let meaning = known.meaning.upgrade();
            meaning.is_some_and(|meaning| meaning.table.oid() == table.oid())
        };
        for known in self.statements.lock().known.values_mut() {
            for renewed in known.renewed.iter_mut().filter(|found| relies(found)) {
                *renewed = None;
            }
            if let Some(statement) = known.statement.upgrade().filter(|_| is_of_table(known)) {
                statement.retire();
            }
        }
    }

    /// Notes what the calls of a statement may share, for operators.
    pub(crate) fn stand(&self, parsed: &ParsedStatement, found: Result<&Meaning, &Apart>) {
        let kept = found.ok().and_then(Meaning::kept);
        let (level, why) = match found {
            Ok(meaning) => match &meaning.grouped {
                None => (Level::Fused, None),
                why => (Level::Grouped, why.clone()),
            },
            Err(apart) => (Level::Apart, Some(apart.clone())),
        };
        let mut all = self.standings.lock();
        if all.len() >= MOST {
            all.clear();
        }
        all.insert((parsed.table.clone(), parsed.op), (level, why, kept));
    }

    /// Returns the standings of all tables, sorted by table and operation.
    pub(crate) fn standings(&self) -> Vec<Standing> {
        let all = self.standings.lock();
        let mut all: Vec<_> = all.iter().collect();
        all.sort_by_cached_key(|((table, op), _)| (table.to_string(), *op));
        let mut standings = Vec::new();
        for ((table, op), (level, why, kept)) in all {
            Standing::add(&mut standings, table, *op, *level, why.clone());
            if let Some(kept) = kept {
                Standing::add_kept(&mut standings, *kept);
            }
        }
        standings
    }

    /// Returns the result of describing the call's statement again, if that happened after it was
    /// retired.
    pub(crate) fn renewed(&self, call: &SqlCall) -> Option<(u64, Renewed)> {
        if !call.statement.is_retired() {
            return None;
        }
        let statements = self.statements.lock();
        let known = statements.known.get(&call.statement.id())?;
        let [reported, fresh] = &known.renewed;
        if call.fresh { fresh } else { reported }.clone()
    }

    /// Returns true if the call's statement is retired and was not described again yet.
    pub(crate) fn lacks(&self, call: &SqlCall) -> bool {
        call.statement.is_retired() && self.renewed(call).is_none()
    }

    /// Stores the result of describing the call's statement again.
    pub(crate) fn renew(&self, call: &SqlCall, found: Renewed) {
        let generation = self.versions.fetch_add(1, Ordering::Relaxed) + 1;
        let mut statements = self.statements.lock();
        let [reported, fresh] = &mut statements.entry(&call.statement).renewed;
        let slot = if call.fresh { fresh } else { reported };
        *slot = Some((generation, found));
    }
}
