//! Groups statements that copy and delete into texts, each of which takes one round trip.

use windrow_core::moves::Destination;
use windrow_core::{Fault, Name};
use windrow_database::quote::backtick::{push_ident, push_idents, push_table};

use super::held::Stretch;
use super::keys;
use super::keys::{Key, Runs, conditions};
use super::source::Source;
use crate::fault::{Scope, Trouble};
use crate::session::Session;
use crate::values::literal::push_hex;

/// The most bytes of one text, if the server's packets allow them.
const MAX_SCRIPT_BYTES: usize = 4 << 20;

/// The operation of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Copy,
    Delete,
}

/// The facts about a statement that explain its answer.
#[derive(Clone, Copy, Debug)]
struct Step {
    verb: Verb,
    /// The number of the part that it belongs to.
    part: usize,
    rows: usize,
}

/// The way in which deletes find their rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// By lists of keys, as the server plans it, without waiting for locks (MariaDB).
    Quick,
    /// By one key at a time (MariaDB, which may read the whole table for a list of keys even if the
    /// index is named).
    Single,
    /// By a list of keys that leaves out locked rows, with one lookup for each key (MySQL, which
    /// reads the whole table for a list of most of its keys even if the index is named).
    Listed,
}

/// The beginning of a delete that does not wait for locks.
const QUICK: &str = "SET STATEMENT innodb_lock_wait_timeout = 0 FOR DELETE FROM ";

/// Statements in order.
pub(super) struct Script<'s> {
    source: &'s Source,
    lookup: Lookup,
    most: usize,
    texts: Vec<(String, Vec<Step>)>,
}

/// The reason why a script stopped.
#[derive(Debug)]
pub(super) enum Broken {
    /// A statement failed.
    Failed {
        verb: Verb,
        part: usize,
        trouble: Trouble,
    },
    /// A statement affected another number of rows than it names.
    Miscounted { verb: Verb, part: usize },
}

impl Broken {
    /// Returns true if a delete met a row that another session holds.
    pub(super) fn waits(&self) -> bool {
        matches!(self, Self::Failed { verb: Verb::Delete, trouble: Trouble::Refused(refusal), .. } if refusal.scope == Scope::Lock)
    }
}

impl<'s> Script<'s> {
    pub(super) fn new(source: &'s Source, lookup: Lookup, packet: usize) -> Self {
        Self {
            source,
            lookup,
            most: MAX_SCRIPT_BYTES.min(packet / 2),
            texts: Vec::new(),
        }
    }

    /// Adds the statements that copy rows.
    pub(super) fn copy(&mut self, part: usize, to: &Destination, keys: &[&Key]) {
        let sql = self.copying(to);
        // This read locks nothing.
        for (condition, rows) in conditions(&self.source.key, keys, Runs::Whole) {
            let verb = Verb::Copy;
            self.push(&sql, &condition, Step { verb, part, rows });
        }
    }

    /// Adds the statement that copies the rows of a stretch.
    pub(super) fn copy_stretch(
        &mut self,
        part: usize,
        to: &Destination,
        stretch: Stretch<'_>,
        rows: usize,
    ) {
        let sql = self.copying(to);
        let mut condition = keys::between(&self.source.key, stretch.first, stretch.last);
        condition.push_str(" AND ");
        condition.push_str(self.source.route.as_deref().unwrap_or("NULL"));
        condition.push_str(" = ");
        push_hex(&mut condition, stretch.route.as_bytes());
        let verb = Verb::Copy;
        self.push(&sql, &condition, Step { verb, part, rows });
    }

    /// Returns `INSERT .. SELECT .. WHERE `.
    fn copying(&self, to: &Destination) -> String {
        let mut sql = "INSERT INTO ".to_owned();
        push_table(&mut sql, &to.table);
        sql.push_str(" (");
        push_idents(&mut sql, &to.columns);
        sql.push_str(") SELECT ");
        push_idents(&mut sql, &to.columns);
        sql.push_str(" FROM ");
        push_table(&mut sql, &self.source.name);
        sql.push_str(" WHERE ");
        sql
    }

    /// Adds the statements that delete rows.
    pub(super) fn delete(&mut self, part: usize, keys: &[&Key]) {
        let verb = Verb::Delete;
        match self.lookup {
            Lookup::Quick => {
                let mut sql = QUICK.to_owned();
                push_table(&mut sql, &self.source.name);
                sql.push_str(" WHERE ");
                for (condition, rows) in conditions(&self.source.key, keys, Runs::ButLast) {
                    // The server prefers the index if the limit is below the number of rows.
                    let condition = format!("{condition} LIMIT {rows}");
                    self.push(&sql, &condition, Step { verb, part, rows });
                }
            }
            Lookup::Listed => self.delete_listed(part, keys),
            Lookup::Single => self.delete_singly(part, keys),
        }
    }

    /// Adds deletes by lists of keys. The limit makes the server keep the list as a table of its
    /// own, whose columns have the key's types.
    fn delete_listed(&mut self, part: usize, keys: &[&Key]) {
        let verb = Verb::Delete;
        let names = self.source.key.iter().map(|(name, _)| name.clone());
        let names: Vec<Name> = names.collect();
        let mut sql = "DELETE windrow_row FROM (SELECT ".to_owned();
        push_idents(&mut sql, &names);
        sql.push_str(" FROM ");
        push_table(&mut sql, &self.source.name);
        sql.push_str(" WHERE ");
        let mut join = " FOR UPDATE SKIP LOCKED) AS windrow_list STRAIGHT_JOIN ".to_owned();
        self.push_indexed(&mut join);
        for (place, name) in names.iter().enumerate() {
            join.push_str(if place > 0 {
                " AND windrow_row."
            } else {
                " ON windrow_row."
            });
            push_ident(&mut join, name);
            join.push_str(" = windrow_list.");
            push_ident(&mut join, name);
        }
        for (condition, rows) in conditions(&self.source.key, keys, Runs::Whole) {
            let condition = format!("({condition}) LIMIT {rows}{join}");
            self.push(&sql, &condition, Step { verb, part, rows });
        }
    }

    /// Adds deletes that look up each key. Integers are joined with a list of them. A list would
    /// not keep the types of other keys, so each of those is a statement.
    fn delete_singly(&mut self, part: usize, keys: &[&Key]) {
        let verb = Verb::Delete;
        let (numbers, others): (Vec<&Key>, Vec<&Key>) =
            keys.iter().partition(|key| matches!(key, Key::Number(_)));
        let mut join = " windrow_list STRAIGHT_JOIN ".to_owned();
        self.push_indexed(&mut join);
        for chunk in numbers.chunks(keys::MAX_KEYS) {
            let sql = format!("DELETE windrow_row FROM {}{join}", keys::values(chunk));
            let on = keys::joined(&self.source.key, chunk);
            let rows = chunk.len();
            self.push(&sql, &on, Step { verb, part, rows });
        }
        let mut sql = "DELETE FROM ".to_owned();
        push_table(&mut sql, &self.source.name);
        sql.push_str(" WHERE ");
        for key in others {
            for (condition, rows) in conditions(&self.source.key, &[key], Runs::ButLast) {
                self.push(&sql, &condition, Step { verb, part, rows });
            }
        }
    }

    fn push_indexed(&self, sql: &mut String) {
        push_table(sql, &self.source.name);
        sql.push_str(" AS windrow_row FORCE INDEX (");
        push_ident(sql, &self.source.index);
        sql.push(')');
    }

    fn push(&mut self, head: &str, condition: &str, step: Step) {
        let more = head.len() + condition.len() + 1;
        let fits = |text: &String| text.len() + more <= self.most;
        if !self.texts.last().is_some_and(|(text, _)| fits(text)) {
            self.texts.push((String::new(), Vec::new()));
        }
        if let Some((text, steps)) = self.texts.last_mut() {
            text.push_str(if text.is_empty() { "" } else { ";" });
            text.push_str(head);
            text.push_str(condition);
            steps.push(step);
        }
    }

    /// Executes all statements, up to the first that fails or affects another number of rows than
    /// it names.
    pub(super) async fn run(self, session: &mut Session) -> Result<(), Broken> {
        for (text, steps) in &self.texts {
            let (counts, ended) = session.script(text).await;
            let wrong = steps
                .iter()
                .zip(&counts)
                .find(|(step, count)| **count != step.rows as u64);
            if let Some((step, _)) = wrong {
                let Step { verb, part, .. } = *step;
                return Err(Broken::Miscounted { verb, part });
            }
            let Some(step) = steps.get(counts.len().min(steps.len().saturating_sub(1))) else {
                continue;
            };
            let Step { verb, part, .. } = *step;
            match ended {
                Ok(()) if counts.len() == steps.len() => {}
                Ok(()) => return Err(Broken::Miscounted { verb, part }),
                Err(trouble) => {
                    return Err(Broken::Failed {
                        verb,
                        part,
                        trouble,
                    });
                }
            }
        }
        Ok(())
    }
}

/// Returns the fault of locked rows that could not be deleted.
pub(super) fn not_deleted(source: &Source) -> Fault {
    Fault::new(
        windrow_core::FaultClass::Other,
        "09000",
        format!(
            "rows of {} were read and locked, but not as many were deleted",
            source.name
        ),
    )
}
