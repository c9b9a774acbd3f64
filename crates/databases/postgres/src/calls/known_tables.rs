//! Tables that were read for described statements, for further statements on them.
//!
//! Reading all that a write may run takes the server many times as long as the write. A statement
//! that is described for the first time relies on the facts that were read for another statement on
//! its table, as known statements do: the check after each batch notices a change. A statement that
//! is described again is read in full.

use std::collections::{HashMap, HashSet};
use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use windrow_core::{ParsedStatement, Signature};
use windrow_database::quote::push_table;
use windrow_proof::Words;

use super::describe::Description;

/// The most tables, words of one table, and noted statements. Beyond a limit, all are dropped.
const MAX_TABLES: usize = 1_000;
const MAX_WORDS: usize = 2_000;
const MAX_STATEMENTS: usize = 50_000;

/// A table's name in statements, and the functions that they call.
type TableUse = (String, String);

/// Facts that were read for statements on one table.
#[derive(Debug)]
struct Known {
    description: Description,
    /// Words of these statements. Any of them may name a type.
    words: HashSet<Box<str>>,
}

/// Facts that were read for statements, by table.
#[derive(Debug, Default)]
pub(super) struct KnownTables {
    tables: HashMap<TableUse, Known>,
    /// Hashes of text and types of all described statements.
    described: HashSet<u64>,
    hasher: RandomState,
}

impl KnownTables {
    /// Returns a description without types for a statement; `None` if its table is unknown, or if
    /// the statement was described before.
    pub(super) fn first_description(&mut self, parsed: &ParsedStatement) -> Option<Description> {
        if self.described.len() >= MAX_STATEMENTS {
            self.described.clear();
            self.tables.clear();
        }
        let statement = self.hasher.hash_one((&parsed.text, &parsed.types));
        if !self.described.insert(statement) {
            return None;
        }
        let known = self.tables.get(&table_use(parsed))?;
        let words = Words::of(&parsed.text, true)?.names();
        let mut words = words.split(SEPARATOR);
        words
            .all(|word| known.words.contains(word))
            .then(|| known.description.clone())
    }

    /// Notes the description of a statement.
    pub(super) fn note(&mut self, parsed: &ParsedStatement, description: &Description) {
        let Some(words) = Words::of(&parsed.text, true) else {
            return;
        };
        let names = words.names();
        let words = names.split(SEPARATOR).map(Box::from);
        let table = description.of_table();
        if self.tables.len() >= MAX_TABLES {
            self.tables.clear();
        }
        match self.tables.get_mut(&table_use(parsed)) {
            // The words name the same types: none, as a rule.
            Some(known) if known.description == table && known.words.len() < MAX_WORDS => {
                known.words.extend(words);
            }
            _ => {
                let known = Known {
                    description: table,
                    words: words.collect(),
                };
                self.tables.insert(table_use(parsed), known);
            }
        }
    }

    /// Drops a table.
    pub(super) fn forget(&mut self, oid: u32) {
        self.tables.retain(|_, known| {
            let relation = known.description.relation.as_ref();
            relation.is_some_and(|relation| relation.oid != oid)
        });
    }
}

/// The separator between the words of a text.
const SEPARATOR: char = '\u{1}';

fn table_use(parsed: &ParsedStatement) -> TableUse {
    let mut table = String::new();
    push_table(&mut table, &parsed.table);
    let functions = parsed.functions.iter().map(|name| &*name.table);
    (table, functions.collect::<Vec<_>>().join("\u{1}"))
}

impl Description {
    /// Returns the description without the statement's types.
    fn of_table(&self) -> Self {
        Self {
            parameters: Vec::new(),
            fields: None,
            width: 0,
            ..self.clone()
        }
    }

    /// Adds the types of a statement.
    pub(crate) fn with(self, types: &Signature) -> Self {
        Self {
            parameters: types.parameters.to_vec(),
            fields: types.fields.clone(),
            width: u16::try_from(types.width()).unwrap_or(u16::MAX),
            ..self
        }
    }
}
