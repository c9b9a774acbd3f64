//! All that a lane knows of the tables and statements that its calls are about.
//!
//! A statement is known by its number, for as long as somebody holds it: what it means (held by the
//! statement itself), and what was found out anew where its table was changed meanwhile. Entries of
//! statements that nobody holds are swept out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use windrow_calls::{ParsedStatement, Signature, SqlCall, Statement};
use windrow_core::{Apart, Level, Op, Standing, TableName};
use windrow_proof::Trusted;

use super::describe::Description;
use super::known_tables::KnownTables;
use super::meaning::Meaning;
use crate::catalog::table::{Facts, Table};

/// The most tables, and the most standings, that are kept: past it all are forgotten and described
/// anew. From so many statements on, those that nobody holds are swept out.
const MOST: usize = 10_000;

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

/// What is known of one statement.
#[derive(Debug, Default)]
struct Known {
    statement: Weak<Statement>,
    meaning: Weak<Meaning>,
    /// What was found out anew: with the types that its clients were told, and with those of the
    /// moment ([`SqlCall::fresh`]). With each a number by which it is told apart from what was
    /// known before.
    renewed: [Option<(u64, Renewed)>; 2],
}

/// Statements by their numbers.
#[derive(Debug, Default)]
struct Statements {
    known: HashMap<u64, Known>,
    /// How many there may be before those that nobody holds are swept out.
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

/// What the calls of a statement may share, and why no more, by table and by what is done.
type Standings = HashMap<(TableName, Op), (Level, Option<Apart>)>;

/// A table's number, and what statements call it.
type TableKey = (u32, Box<str>);

/// Shared by all connections of a lane.
#[derive(Debug, Default)]
pub(crate) struct CallCatalog {
    tables: Mutex<HashMap<TableKey, Arc<Table>>>,
    statements: Mutex<Statements>,
    versions: AtomicU64,
    /// What was found of the statement that was described last, by table as clients name it, and
    /// by what is done.
    standings: Mutex<Standings>,
    /// Tables that were read for statements that were described.
    known: Mutex<KnownTables>,
    /// Functions that the operator answers for.
    pub(super) trusted: Trusted,
}

impl CallCatalog {
    pub(crate) fn trusting(trusted: Trusted) -> Self {
        Self {
            trusted,
            ..Self::default()
        }
    }

    /// Takes in what was read of a table. A description that has not changed keeps its version.
    pub(super) fn put(&self, oid: u32, facts: Facts) -> Arc<Table> {
        let mut tables = lock(&self.tables);
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
        lock(&self.known).forget(oid);
        tables.insert(key, table.clone());
        table
    }

    /// Returns a description without types for a statement that is described for the first time, if
    /// its table was read for another statement.
    pub(super) fn first_description(&self, parsed: &ParsedStatement) -> Option<Description> {
        lock(&self.known).first_description(parsed)
    }

    /// Notes the table that was read for a statement.
    pub(super) fn note_table(&self, parsed: &ParsedStatement, description: &Description) {
        lock(&self.known).note(parsed, description);
    }

    /// Takes note of what a statement means.
    pub(super) fn note(&self, statement: &Arc<Statement>, meaning: &Arc<Meaning>) {
        lock(&self.statements).entry(statement).meaning = Arc::downgrade(meaning);
    }

    /// What a statement meant when it was described; `None`: nobody holds it any more, or it was
    /// described elsewhere.
    pub(super) fn meaning(&self, statement: &Statement) -> Option<Arc<Meaning>> {
        let statements = lock(&self.statements);
        statements.known.get(&statement.id())?.meaning.upgrade()
    }

    /// The description of a table is not true any more: all statements on it are to be described
    /// anew.
    pub(crate) fn retire(&self, table: &Table) {
        if let Some(oid) = table.oid() {
            lock(&self.known).forget(oid);
        }
        let relies = |found: &Option<(u64, Renewed)>| match found {
            Some((_, Renewed::Joined(meaning))) => meaning.table.version == table.version,
            _ => false,
        };
        let is_of_table = |known: &Known| {
            let meaning = known.meaning.upgrade();
            meaning.is_some_and(|meaning| meaning.table.oid() == table.oid())
        };
        for known in lock(&self.statements).known.values_mut() {
            for renewed in known.renewed.iter_mut().filter(|found| relies(found)) {
                *renewed = None;
            }
            if let Some(statement) = known.statement.upgrade().filter(|_| is_of_table(known)) {
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
        let mut all = lock(&self.standings);
        if all.len() >= MOST {
            all.clear();
        }
        all.insert((parsed.table.clone(), parsed.op), (level, why));
    }

    /// What is known of all tables, in their order.
    pub(super) fn standings(&self) -> Vec<Standing> {
        let all = lock(&self.standings);
        let mut all: Vec<_> = all.iter().collect();
        all.sort_by_cached_key(|((table, op), _)| (table.to_string(), *op));
        let mut standings = Vec::new();
        for ((table, op), (level, why)) in all {
            Standing::add(&mut standings, table, *op, *level, why.clone());
        }
        standings
    }

    /// What was found out anew about the call's statement, if that was to be done.
    pub(super) fn renewed(&self, call: &SqlCall) -> Option<(u64, Renewed)> {
        if !call.statement.is_retired() {
            return None;
        }
        let statements = lock(&self.statements);
        let known = statements.known.get(&call.statement.id())?;
        let [told, fresh] = &known.renewed;
        if call.fresh { fresh } else { told }.clone()
    }

    /// Whether the call's statement is retired and nothing else is known of it.
    pub(super) fn lacks(&self, call: &SqlCall) -> bool {
        call.statement.is_retired() && self.renewed(call).is_none()
    }

    /// Takes note of what was found out.
    pub(super) fn renew(&self, call: &SqlCall, found: Renewed) {
        let generation = self.versions.fetch_add(1, Ordering::Relaxed) + 1;
        let mut statements = lock(&self.statements);
        let [told, fresh] = &mut statements.entry(&call.statement).renewed;
        let slot = if call.fresh { fresh } else { told };
        *slot = Some((generation, found));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
