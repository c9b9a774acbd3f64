//! Side effects of deleting rows of a table: foreign keys of other tables, and triggers.

use rusqlite::{Connection, Result};
use windrow_core::moves::{Referrer, TableFacts};
use windrow_database::quote::push_ident;

use super::text::push_table;
use crate::catalog::sharing::blank;

/// The query for foreign keys that delete or change the rows that refer to deleted ones.
const KEYS: &str = r#"
SELECT DISTINCT t.name, f.id, f.on_delete FROM main.sqlite_schema t, pragma_foreign_key_list(t.name, 'main') f
WHERE t.type = 'table' AND f."table" = ?1 COLLATE NOCASE AND f.on_delete IN ('CASCADE', 'SET NULL', 'SET DEFAULT') ORDER BY 1, 2"#;

/// The query for columns of foreign keys of other tables that keep rows from being deleted: the
/// table, the key's number, the column, and the one that it refers to, which is by default of the
/// primary key.
const REFERRERS: &str = r#"
SELECT t.name, f.id, f."from", coalesce(f."to", (SELECT p.name FROM pragma_table_xinfo(?1, 'main') p WHERE p.pk = f.seq + 1))
FROM main.sqlite_schema t, pragma_foreign_key_list(t.name, 'main') f
WHERE t.type = 'table' AND f."table" = ?1 COLLATE NOCASE AND t.name <> ?1 COLLATE NOCASE AND f.on_delete IN ('NO ACTION', 'RESTRICT')
ORDER BY 1, 2, f.seq"#;

/// Reads the foreign keys that keep rows of the table from being deleted while others refer to
/// them.
pub(super) fn referrers(connection: &Connection, table: &str) -> Result<Vec<Referrer>> {
    let mut ask = connection.prepare(REFERRERS)?;
    let mut columns = ask.query([table])?;
    let mut keys: Vec<(String, i64, String)> = Vec::new();
    while let Some(column) = columns.next()? {
        let (of, number): (String, i64) = (column.get(0)?, column.get(1)?);
        let (own, other): (String, Option<String>) = (column.get(2)?, column.get(3)?);
        // A key that refers to a missing column makes every statement fail.
        let Some(other) = other else { continue };
        if keys
            .last()
            .is_none_or(|(name, id, _)| (name, id) != (&of, &number))
        {
            keys.push((of, number, String::new()));
        }
        let Some((.., equal)) = keys.last_mut() else {
            continue;
        };
        equal.push_str(if equal.is_empty() { "" } else { " AND " });
        // The referenced column decides the collation of the comparison.
        push_ident(equal, table);
        equal.push('.');
        push_ident(equal, &other);
        equal.push_str(" = windrow_child.");
        push_ident(equal, &own);
    }
    let referrer = |(of, number, equal): (String, i64, String)| {
        let mut child = String::new();
        push_table(&mut child, &of);
        let condition = format!("EXISTS (SELECT 1 FROM {child} AS windrow_child WHERE {equal})");
        Referrer::new(&of, &number.to_string(), condition)
    };
    Ok(keys.into_iter().map(referrer).collect())
}

/// The query for the triggers of a table.
const TRIGGERS: &str = "SELECT name, sql FROM main.sqlite_schema \
                        WHERE type = 'trigger' AND tbl_name = ?1 COLLATE NOCASE ORDER BY name";

/// Returns descriptions of what else changes if rows of the table are deleted.
pub(super) fn read(connection: &Connection, table: &str) -> Result<Vec<Box<str>>> {
    let mut effects = Vec::new();
    let mut ask = connection.prepare(KEYS)?;
    let mut keys = ask.query([table])?;
    while let Some(key) = keys.next()? {
        let (of, number, action): (String, i64, String) = (key.get(0)?, key.get(1)?, key.get(2)?);
        let number = format!("{number}");
        effects.push(TableFacts::effect_of_key(&of, &number, &action));
    }
    let mut ask = connection.prepare(TRIGGERS)?;
    let mut triggers = ask.query([table])?;
    while let Some(trigger) = triggers.next()? {
        let (name, text): (String, String) = (trigger.get(0)?, trigger.get(1)?);
        if fires_at_delete(&text) {
            effects.push(TableFacts::effect_of_trigger(table, &name));
        }
    }
    Ok(effects)
}

/// Returns true if the trigger with this text fires when rows are deleted. Its event is the first
/// of three words after its name (<https://sqlite.org/lang_createtrigger.html>).
fn fires_at_delete(text: &str) -> bool {
    let mut before = String::new();
    // The name may be one of the words, so it is skipped: it follows TRIGGER or EXISTS, and may
    // have a schema.
    for token in Tokens(text) {
        let named = before == "TRIGGER" && token != "IF" || before == "EXISTS" || before == ".";
        if !named && matches!(token.as_str(), "DELETE" | "INSERT" | "UPDATE") {
            return token == "DELETE";
        }
        before = match named {
            true => String::new(),
            false => token,
        };
    }
    false
}

/// The words and signs of a text, with words in capital letters. Blanks and comments are skipped.
struct Tokens<'t>(&'t str);

impl Iterator for Tokens<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let text = blank(self.0);
        let first = text.chars().next()?;
        let close = match first {
            '"' | '`' | '\'' => Some(first),
            '[' => Some(']'),
            _ => None,
        };
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$' || !c.is_ascii();
        let end = match close {
            // A doubled sign within a name makes two tokens of it, neither of which is a bare word.
            Some(close) => {
                let rest = text.get(1..).unwrap_or_default();
                rest.find(close).map_or(text.len(), |at| at + 2)
            }
            None if is_word(first) => text.find(|c| !is_word(c)).unwrap_or(text.len()),
            None => first.len_utf8(),
        };
        let (token, rest) = text.split_at_checked(end)?;
        self.0 = rest;
        Some(token.to_ascii_uppercase())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_triggers_event_is_found_behind_its_name() {
        for (text, fires) in [
            (
                "CREATE TRIGGER t AFTER DELETE ON p BEGIN SELECT 1; END",
                true,
            ),
            (
                "create trigger if not exists main.t delete on p begin select 1; end",
                true,
            ),
            (
                "CREATE TRIGGER \"delete\" AFTER INSERT ON p BEGIN DELETE FROM q; END",
                false,
            ),
            (
                "CREATE TRIGGER delete_old /* DELETE */ INSERT ON p BEGIN DELETE FROM q; END",
                false,
            ),
            (
                "CREATE TRIGGER [update] -- INSERT\n BEFORE DELETE ON p BEGIN SELECT 1; END",
                true,
            ),
            (
                "CREATE TRIGGER t BEFORE UPDATE OF a ON p BEGIN DELETE FROM q; END",
                false,
            ),
        ] {
            assert_eq!(fires_at_delete(text), fires, "{text}");
        }
    }
}
