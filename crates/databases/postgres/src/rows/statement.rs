//! The statement of one write: what its client would have sent.
//!
//! Parameters have no declared type: the server takes the column's, reads the text with that type's
//! input function, and its errors are the true ones.

use std::fmt::Write as _;

use windrow_core::{Name, OnConflict, Op, Returning, Shape};
use windrow_database::quote::{push_ident, push_idents, push_table};

use crate::catalog::column::Kind;
use crate::catalog::table::Facts;

/// The text of a single write. `key`: the names of its key's columns, empty where it has none.
pub(crate) fn single(shape: &Shape, key: &[Name], facts: &Facts) -> String {
    let mut sql = String::with_capacity(160);
    match shape.op {
        Op::Insert => insert(&mut sql, shape, key, facts),
        Op::Update => update(&mut sql, shape),
        Op::Delete => {
            sql.push_str("DELETE FROM ");
            push_table(&mut sql, &shape.table);
        }
        Op::Get => {
            sql.push_str("SELECT ");
            push_results(
                &mut sql,
                None,
                &result_names(&shape.returning, facts),
                facts,
            );
            sql.push_str(" FROM ");
            push_table(&mut sql, &shape.table);
        }
    }
    if shape.has_key_values() {
        push_where(&mut sql, key, shape.columns.len());
    }
    if shape.op != Op::Get && shape.returning != Returning::Nothing {
        sql.push_str(" RETURNING ");
        push_results(
            &mut sql,
            None,
            &result_names(&shape.returning, facts),
            facts,
        );
    }
    sql
}

fn insert(sql: &mut String, shape: &Shape, key: &[Name], facts: &Facts) {
    push_verb(sql, shape, key, facts);
    push_table(sql, &shape.table);
    if shape.columns.is_empty() {
        sql.push_str(" DEFAULT VALUES");
    } else {
        sql.push_str(" (");
        push_idents(sql, &shape.columns);
        sql.push(')');
        if facts.overrides {
            sql.push_str(" OVERRIDING SYSTEM VALUE");
        }
        sql.push_str(" VALUES (");
        for number in 1..=shape.columns.len() {
            let comma = if number > 1 { ", " } else { "" };
            push(sql, format_args!("{comma}${number}"));
        }
        sql.push(')');
    }
    if !is_upsert(shape, key, facts) {
        push_conflict(sql, shape, key);
    }
}

/// Whether `UPSERT` says the same as the insert's own `ON CONFLICT`: a row is found by the primary
/// key alone, no other unique key could be violated, and every column is given, so that nothing of
/// the row that is there has to be kept (<https://www.cockroachlabs.com/docs/stable/upsert>). It writes without reading.
pub(crate) fn is_upsert(shape: &Shape, key: &[Name], facts: &Facts) -> bool {
    let is_primary = |places: &[usize]| {
        let mut names = places.iter().filter_map(|place| facts.columns.get(*place));
        places.len() == key.len() && names.all(|column| key.contains(&column.name))
    };
    facts.dialect.upserts
        && shape.on_conflict == OnConflict::Update
        && facts.primary().is_some_and(is_primary)
        && facts.uniques.len() == 1
        && !facts.hidden_unique
        && facts.hidden.is_empty()
        && facts
            .columns
            .iter()
            .all(|column| shape.columns.contains(&column.name))
}

/// `INSERT INTO `, or what says the same and more.
pub(crate) fn push_verb(sql: &mut String, shape: &Shape, key: &[Name], facts: &Facts) {
    sql.push_str(match is_upsert(shape, key, facts) {
        true => "UPSERT INTO ",
        false => "INSERT INTO ",
    });
}

/// What an insert does where its key is there already.
pub(crate) fn push_conflict(sql: &mut String, shape: &Shape, key: &[Name]) {
    if shape.on_conflict == OnConflict::Error {
        return;
    }
    sql.push_str(" ON CONFLICT (");
    push_idents(sql, key);
    if shape.on_conflict == OnConflict::Ignore {
        sql.push_str(") DO NOTHING");
        return;
    }
    sql.push_str(") DO UPDATE SET ");
    let is_key = |name: &&Name| key.contains(*name);
    let others: Vec<&Name> = shape.columns.iter().filter(|c| !is_key(c)).collect();
    // A row of nothing but its key is still one that was written: it is locked, counted and given
    // back.
    let set = if others.is_empty() {
        key.iter().collect()
    } else {
        others
    };
    for (place, name) in set.into_iter().enumerate() {
        sql.push_str(if place > 0 { ", " } else { "" });
        push_ident(sql, name);
        sql.push_str(" = EXCLUDED.");
        push_ident(sql, name);
    }
}

fn update(sql: &mut String, shape: &Shape) {
    sql.push_str("UPDATE ");
    push_table(sql, &shape.table);
    sql.push_str(" SET ");
    for (place, name) in shape.columns.iter().enumerate() {
        sql.push_str(if place > 0 { ", " } else { "" });
        push_ident(sql, name);
        push(sql, format_args!(" = ${}", place + 1));
    }
}

fn push_where(sql: &mut String, key: &[Name], before: usize) {
    for (place, name) in key.iter().enumerate() {
        sql.push_str(if place > 0 { " AND " } else { " WHERE " });
        push_ident(sql, name);
        push(sql, format_args!(" = ${}", before + place + 1));
    }
}

/// The names of the columns that come back.
pub(crate) fn result_names(returning: &Returning, facts: &Facts) -> Vec<Name> {
    match returning {
        Returning::Nothing => Vec::new(),
        Returning::All => facts.columns.iter().map(|c| c.name.clone()).collect(),
        Returning::Columns(names) => names.to_vec(),
    }
}

/// Appends what comes back, each under its own name. Arrays and composites come as JSON.
pub(crate) fn push_results(sql: &mut String, from: Option<&str>, names: &[Name], facts: &Facts) {
    for (place, name) in names.iter().enumerate() {
        sql.push_str(if place > 0 { ", " } else { "" });
        let kind = facts.place_of(name).and_then(|p| facts.columns.get(p));
        let as_json = kind.is_some_and(|c| matches!(c.kind, Kind::Array(..) | Kind::Composite));
        sql.push_str(if as_json { "to_json(" } else { "" });
        if let Some(from) = from {
            sql.push_str(from);
            sql.push('.');
        }
        push_ident(sql, name);
        sql.push_str(if as_json { ")::text" } else { "" });
        sql.push_str(" AS ");
        push_ident(sql, name);
    }
}

/// Formats into a string, which cannot fail.
pub(crate) fn push(sql: &mut String, what: std::fmt::Arguments<'_>) {
    let written = sql.write_fmt(what);
    debug_assert!(written.is_ok(), "a string takes everything");
}
