//! Looks up final tables, and creates them like the source.
//!
//! SQLite keeps the text by which a table was created, unchanged except for its beginning: `CREATE
//! TABLE` and the name (<https://sqlite.org/schematab.html>). So the name is replaced, and the rest
//! stays.

use rusqlite::Connection;
use windrow_core::moves::{Destination, TableFacts};
use windrow_core::{Fault, FaultClass, TableName};
use windrow_database::moved;
use windrow_database::quote::push_ident;

use super::facts;
use super::facts::Facts;
use super::source::Source;
use super::text::push_table;
use crate::fault::Failure;

/// Looks up a table, and creates it if it does not exist and `create` is set.
pub(super) fn open(
    connection: &Connection,
    source: &Source,
    table: &TableName,
    create: bool,
) -> Result<Destination, Fault> {
    if table.table.eq_ignore_ascii_case(&source.name.table) {
        return Err(moved::into_source(table));
    }
    let mut facts = facts::read(connection, table)?;
    if facts.is_none() && create && table.schema.is_none() {
        make(connection, source, table)?;
        facts = facts::read(connection, table)?;
    }
    let Some(facts) = facts else {
        return Err(moved::no_destination(table));
    };
    if source.routed && facts.name != table.table {
        return Err(TableFacts::otherwise_spelled(table, &facts.name));
    }
    let mut outside = facts.outside("");
    // SQLite ignores case in names of columns.
    let names = outside.columns.iter_mut().chain(&mut outside.generated);
    for name in names.chain(&mut outside.required) {
        let mut columns = source.columns.iter();
        if let Some(column) = columns.find(|column| column.eq_ignore_ascii_case(name)) {
            *name = column.clone();
        }
    }
    Destination::new(table, &outside, &source.columns)
}

/// Creates a table like the source, with its columns, defaults, constraints, indexes and foreign
/// keys, but without its triggers.
fn make(connection: &Connection, source: &Source, table: &TableName) -> Result<(), Fault> {
    let Some(facts) = facts::read(connection, &source.name)? else {
        return Err(moved::no_source(&source.name));
    };
    let mut texts = vec![renamed(&facts, table)?];
    texts.extend(indexes(connection, &facts, table)?);
    let say = |sql: &str| connection.execute_batch(sql).map_err(Failure::from);
    say("SAVEPOINT windrow_like")?;
    let mut made = Ok(());
    for text in &texts {
        made = made.and_then(|()| say(text));
    }
    if made.is_err() {
        say("ROLLBACK TO windrow_like")?;
    }
    say("RELEASE windrow_like")?;
    made?;
    tracing::info!(sql = texts.join("; "), "changed");
    Ok(())
}

fn renamed(facts: &Facts, table: &TableName) -> Result<String, Fault> {
    let rest = facts
        .sql
        .strip_prefix("CREATE TABLE ")
        .and_then(behind_name);
    let Some(rest) = rest else {
        return Err(unreadable(&facts.name));
    };
    // Another mover may have created it meanwhile, with everything that belongs to it.
    let mut sql = "CREATE TABLE IF NOT EXISTS ".to_owned();
    push_table(&mut sql, &table.table);
    sql.push_str(rest);
    Ok(sql)
}

/// Returns the texts of indexes that statements of their own created; those of constraints are in
/// the table's text.
fn indexes(
    connection: &Connection,
    facts: &Facts,
    table: &TableName,
) -> Result<Vec<String>, Failure> {
    let mut ask = connection.prepare(
        "SELECT name, sql FROM main.sqlite_schema
         WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = ?1 COLLATE NOCASE ORDER BY rowid",
    )?;
    let rows = ask.query_map([&*facts.name], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    let mut texts = Vec::new();
    for row in rows {
        let (name, sql) = row?;
        let on = ["CREATE UNIQUE INDEX ", "CREATE INDEX "]
            .into_iter()
            .find_map(|head| Some((head, behind_name(sql.strip_prefix(head)?)?)));
        let rest = on.and_then(|(head, rest)| Some((head, behind_on(rest)?)));
        let Some((head, rest)) = rest else {
            return Err(Failure::of_write(unreadable(&name)));
        };
        let mut text = head.to_owned();
        text.push_str("IF NOT EXISTS main.");
        push_ident(&mut text, &name_of_index(&name, &facts.name, &table.table));
        text.push_str(" ON ");
        push_ident(&mut text, &table.table);
        text.push_str(rest);
        texts.push(text);
    }
    Ok(texts)
}

/// Returns the name of an index for the new table. Names of indexes are unique in a file, so it
/// contains the new table's name.
fn name_of_index(index: &str, source: &str, table: &str) -> String {
    match index.contains(source) {
        true => index.replacen(source, table, 1),
        false => format!("{table}_{index}"),
    }
}

/// Returns the text after `ON` and the name of a table.
fn behind_on(text: &str) -> Option<&str> {
    let text = behind_blanks(text);
    let (on, rest) = text.split_at_checked(2)?;
    if !on.eq_ignore_ascii_case("on") {
        return None;
    }
    behind_name(behind_blanks(rest))
}

/// Returns the text after a name, with any of SQLite's quotes or without.
fn behind_name(text: &str) -> Option<&str> {
    let close = match text.chars().next()? {
        '"' => '"',
        '`' => '`',
        '\'' => '\'',
        '[' => ']',
        _ => {
            let end = text
                .find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii()));
            let end = end.unwrap_or(text.len());
            return text.get(end..).filter(|_| end > 0);
        }
    };
    let mut rest = text.get(1..)?;
    loop {
        rest = rest.get(rest.find(close)? + 1..)?;
        // A doubled quote stands for itself.
        match rest.strip_prefix(close) {
            Some(more) if close != ']' => rest = more,
            _ => return Some(rest),
        }
    }
}

fn behind_blanks(text: &str) -> &str {
    let mut text = text.trim_start();
    loop {
        let comment = match text {
            _ if text.starts_with("--") => text.split_once('\n'),
            _ if text.starts_with("/*") => text.split_once("*/"),
            _ => return text,
        };
        text = comment.map_or("", |(_, rest)| rest).trim_start();
    }
}

fn unreadable(name: &str) -> Fault {
    Fault::new(
        FaultClass::Unsupported,
        "0A000",
        format!("the text that made {name} cannot be read; create the final tables before"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_where_sqlite_ends_them() {
        for (text, rest) in [
            ("t(a)", Some("(a)")),
            ("t_1$é (a)", Some(" (a)")),
            ("\"a\"\"b\"(x)", Some("(x)")),
            ("`a``b` (x)", Some(" (x)")),
            ("[a]](x)", Some("](x)")),
            ("'a''b'(x)", Some("(x)")),
            ("\"open", None),
            ("(a)", None),
        ] {
            assert_eq!(behind_name(text), rest, "{text}");
        }
        assert_eq!(behind_on(" -- x\n ON /* y */ \"t\" (a)"), Some(" (a)"));
        assert_eq!(behind_on(" of t (a)"), None);
    }

    #[test]
    fn indexes_are_named_after_their_table() {
        assert_eq!(
            name_of_index("pending_at", "pending", "final_a"),
            "final_a_at"
        );
        assert_eq!(
            name_of_index("by_at", "pending", "final_a"),
            "final_a_by_at"
        );
    }
}
