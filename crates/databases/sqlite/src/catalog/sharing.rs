//! Decides which writes may share a transaction with others.
//!
//! There is one writer and each write is its own statement, so a write finds the same database as
//! it would after the same writes alone. Only two things show the difference. Both are in the text
//! of the schema:
//!
//! - **A deferred foreign key** is checked at the end of the transaction. Another client's row may
//!   satisfy it by then.
//! - **The connection's memory**: `last_insert_rowid()`, `changes()` and `total_changes()`
//!   return what other clients have written on it. A test compares the list of functions with the
//!   library.
//!
//! The search follows triggers and the actions of foreign keys. Any name in a trigger's text counts
//! as a use of it, so the search may find too much, and never too little.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use rusqlite::{Connection, Result};
use windrow_core::{Apart, TableName};

/// Functions that return what was written before on the connection.
const MEMORY: [&str; 3] = ["last_insert_rowid", "changes", "total_changes"];

/// The isolation of writes to a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Writes share a transaction with any others.
    Joined,
    /// Each write has a transaction of its own, and if `fresh` is set a new connection.
    Apart { why: Apart, fresh: bool },
}

/// The texts of a schema that decide about sharing.
#[derive(Debug, Default)]
pub(crate) struct SchemaTexts {
    objects: Vec<Object>,
    /// Parents and the tables that refer to them.
    children: Vec<(String, String)>,
}

/// A table, view or trigger; its names and text in lower case.
#[derive(Debug)]
struct Object {
    is_trigger: bool,
    name: String,
    /// The table that a trigger belongs to; the object itself else.
    on: String,
    text: String,
}

impl SchemaTexts {
    /// Reads the schema. Returns an empty one if no text in it can isolate a write.
    pub(crate) fn read(connection: &Connection) -> Result<Self> {
        let suspect: bool = connection
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM main.sqlite_schema
                 WHERE sql LIKE '%deferred%' OR sql LIKE '%last_insert_rowid%' OR sql LIKE '%changes%')",
            )?
            .query_row([], |row| row.get(0))?;
        if !suspect {
            return Ok(Self::default());
        }
        let mut ask = connection.prepare_cached(
            "SELECT type = 'trigger', lower(name), lower(tbl_name), coalesce(sql, '') FROM main.sqlite_schema
             WHERE type IN ('table', 'view', 'trigger')",
        )?;
        let objects = ask.query_map([], |row| {
            Ok(Object {
                is_trigger: row.get(0)?,
                name: row.get(1)?,
                on: row.get(2)?,
                text: row.get::<_, String>(3)?.to_ascii_lowercase(),
            })
        })?;
        let mut ask_children = connection.prepare_cached(
            r#"SELECT lower(f."table"), lower(t.name) FROM main.sqlite_schema t, pragma_foreign_key_list(t.name, 'main') f
               WHERE t.type = 'table'"#,
        )?;
        let children = ask_children.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Self {
            objects: objects.collect::<Result<_>>()?,
            children: children.collect::<Result<_>>()?,
        })
    }

    /// Returns the isolation of writes to a table.
    pub(crate) fn sharing(&self, table: &TableName) -> Sharing {
        let reached = self.reached(&table.table.to_ascii_lowercase());
        let met = || {
            self.objects
                .iter()
                .filter(|object| reached.contains(&*object.on))
        };
        let memory = met().find_map(|object| Some((object, reads_memory(&object.text)?)));
        if let Some((object, function)) = memory {
            let why = Apart::of("a function that reads the connection's memory")
                .by(format!("{function}() in {}", object.title()))
                .advised("use new.rowid or RETURNING instead of the function");
            return Sharing::Apart { why, fresh: true };
        }
        let deferred = met().find(|object| !object.is_trigger && object.text.contains("deferred"));
        match deferred {
            None => Sharing::Joined,
            Some(object) => Sharing::Apart {
                why: Apart::of("a deferred foreign key")
                    .by(object.title())
                    .advised("declare the foreign key without INITIALLY DEFERRED"),
                fresh: false,
            },
        }
    }

    /// Returns all tables and views that a write to the first one may write to, or read through.
    fn reached(&self, first: &str) -> BTreeSet<&str> {
        let mut reached = BTreeSet::new();
        let known = self
            .objects
            .iter()
            .find(|o| !o.is_trigger && o.name == first);
        let mut open: Vec<&Object> = known.into_iter().collect();
        while let Some(object) = open.pop() {
            if !object.is_trigger && !reached.insert(&*object.name) {
                continue;
            }
            let is_next = |other: &&Object| match other.is_trigger {
                true => !object.is_trigger && other.on == object.name,
                false => {
                    let named = object.is_trigger || object.is_view();
                    !reached.contains(&*other.name)
                        && (named && names(&object.text, &other.name)
                            || self.refers(&other.name, &object.name))
                }
            };
            open.extend(self.objects.iter().filter(is_next));
        }
        reached
    }

    /// Returns true if a table has a foreign key to another one.
    fn refers(&self, child: &str, parent: &str) -> bool {
        let mut children = self.children.iter();
        children.any(|(of, table)| of == parent && table == child)
    }
}

impl Object {
    fn is_view(&self) -> bool {
        self.text.starts_with("create view")
    }

    fn title(&self) -> String {
        match (self.is_trigger, self.is_view()) {
            (true, _) => format!("trigger {} on {}", self.name, self.on),
            (_, true) => format!("view {}", self.name),
            _ => format!("table {}", self.name),
        }
    }
}

/// Returns true if a text may name a table. A table whose name contains quotation marks always
/// counts as named.
fn names(text: &str, name: &str) -> bool {
    name.contains(['"', '`', ']', '\'']) || words(text, name).next().is_some()
}

/// Returns the text after each occurrence of a name that is not a part of a longer name.
fn words<'t>(text: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    text.match_indices(name).filter_map(move |(at, found)| {
        let before = text.get(..at)?;
        let behind = text.get(at + found.len()..)?;
        let whole = !before.ends_with(is_word) && !behind.starts_with(is_word);
        whole.then_some(behind)
    })
}

/// Returns the function of [`MEMORY`] that a text calls: the name, with or without quotation marks,
/// followed by empty parentheses.
fn reads_memory(text: &str) -> Option<&'static str> {
    MEMORY.into_iter().find(|name| {
        words(text, name).any(|behind| {
            let behind = behind.strip_prefix(['"', '`', ']', '\'']).unwrap_or(behind);
            let within = blank(behind).strip_prefix('(');
            within.is_some_and(|text| blank(text).starts_with(')'))
        })
    })
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii()
}

/// Skips blanks and comments.
pub(crate) fn blank(mut text: &str) -> &str {
    loop {
        text = text.trim_ascii_start();
        if let Some(comment) = text.strip_prefix("--") {
            text = comment.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some(comment) = text.strip_prefix("/*") {
            text = comment.split_once("*/").map_or("", |(_, rest)| rest);
        } else {
            return text;
        }
    }
}
