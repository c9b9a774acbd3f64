//! The statement of a row write, as its client would have written it.
//!
//! Parameters have no declared type: the server takes the column's, reads the text with that type's
//! input function, and reports its own errors.

use std::fmt::Write as _;

use windrow_core::{
    Conflict, Expression, Name, OnConflict, Op, ParsedStatement, Piece, Returning, Shape,
};
use windrow_database::quote::{push_ident, push_idents, push_table};

use crate::catalog::column::Kind;
use crate::catalog::table::Facts;

/// Returns the statement of a shape's writes. `key`: the names of its key's columns, empty if it
/// has none.
pub(crate) fn of_shape(shape: &Shape, key: &[Name], facts: &Facts) -> ParsedStatement {
    let inserts = shape.op == Op::Insert;
    let columns = shape.columns.len();
    let set = (0..columns).map(parameter);
    let assignments = shape.columns.iter().cloned().zip(set.clone());
    let keys = key.iter().cloned().zip((columns..).map(parameter));
    let returning = list(&result_names(&shape.returning, facts), facts);
    let overrides = inserts && facts.overrides && columns > 0;
    let mut parsed = ParsedStatement {
        text: Box::default(),
        types: [].into(),
        op: shape.op,
        table: shape.table.clone(),
        alias: None,
        columns: inserts.then(|| shape.columns.clone()),
        values: set.filter(|_| inserts).collect(),
        overriding: overrides.then(|| "OVERRIDING SYSTEM VALUE".into()),
        conflict: conflict(shape, key),
        assignments: assignments.filter(|_| shape.op == Op::Update).collect(),
        keys: keys.filter(|_| shape.has_key_values()).collect(),
        conditions: None,
        returning: (!returning.is_empty()).then(|| returning.into()),
        returning_names: None,
        functions: [].into(),
        set_based: true,
    };
    parsed.text = text(&parsed, facts).into();
    parsed
}

fn parameter(place: usize) -> Expression {
    let place = u16::try_from(place).unwrap_or(u16::MAX);
    Expression::Sql([Piece::Parameter(place)].into())
}

fn sql(text: String) -> Expression {
    Expression::Sql([Piece::Text(text.into())].into())
}

/// Returns the ON CONFLICT clause of an insert; `None` for a plain one. An upsert of only a key
/// sets the key to itself, so no column is listed.
fn conflict(shape: &Shape, key: &[Name]) -> Option<Conflict> {
    let update = shape.on_conflict == OnConflict::Update;
    if shape.op != Op::Insert || shape.on_conflict == OnConflict::Error {
        return None;
    }
    let mut clause = String::new();
    push_conflict(&mut clause, shape, key);
    let others = shape.columns.iter().filter(|name| !key.contains(name));
    let excluded = others.filter(|_| update).map(|name| {
        let mut value = String::from("EXCLUDED.");
        push_ident(&mut value, name);
        (name.clone(), sql(value))
    });
    Some(Conflict {
        columns: Some(key.into()),
        update,
        assignments: excluded.collect(),
        has_condition: false,
        sql: sql(clause.trim_start().to_owned()),
    })
}

fn list(names: &[Name], facts: &Facts) -> String {
    let mut list = String::new();
    push_results(&mut list, None, names, facts);
    list
}

/// Returns the text of one write.
fn text(parsed: &ParsedStatement, facts: &Facts) -> String {
    let mut sql = String::with_capacity(160);
    let returning = parsed.returning.as_deref().unwrap_or_default();
    match parsed.op {
        Op::Insert => insert(&mut sql, parsed, facts),
        Op::Update => {
            sql.push_str("UPDATE ");
            push_table(&mut sql, &parsed.table);
            push_pairs(&mut sql, &parsed.assignments, " SET ", ", ");
        }
        Op::Delete => {
            sql.push_str("DELETE FROM ");
            push_table(&mut sql, &parsed.table);
        }
        Op::Get => {
            push(&mut sql, format_args!("SELECT {returning} FROM "));
            push_table(&mut sql, &parsed.table);
        }
    }
    push_pairs(&mut sql, &parsed.keys, " WHERE ", " AND ");
    if parsed.op != Op::Get && !returning.is_empty() {
        push(&mut sql, format_args!(" RETURNING {returning}"));
    }
    sql
}

fn insert(sql: &mut String, parsed: &ParsedStatement, facts: &Facts) {
    push_verb(sql, parsed, facts);
    push_table(sql, &parsed.table);
    if parsed.values.is_empty() {
        sql.push_str(" DEFAULT VALUES");
    } else {
        sql.push_str(" (");
        push_idents(sql, parsed.columns.iter().flatten());
        sql.push(')');
        if let Some(overriding) = &parsed.overriding {
            push(sql, format_args!(" {overriding}"));
        }
        sql.push_str(" VALUES (");
        for (number, value) in parsed.values.iter().enumerate() {
            sql.push_str(if number > 0 { ", " } else { "" });
            push_expression(sql, value);
        }
        sql.push(')');
    }
    let conflict = parsed.conflict.as_ref();
    if let Some(conflict) = conflict.filter(|_| !is_upsert(parsed, facts)) {
        sql.push(' ');
        push_expression(sql, &conflict.sql);
    }
}

/// Appends `column = value` for each pair.
fn push_pairs(sql: &mut String, pairs: &[(Name, Expression)], first: &str, next: &str) {
    for (number, (name, value)) in pairs.iter().enumerate() {
        sql.push_str(if number > 0 { next } else { first });
        push_ident(sql, name);
        sql.push_str(" = ");
        push_expression(sql, value);
    }
}

fn push_expression(sql: &mut String, expression: &Expression) {
    match expression {
        Expression::Default => sql.push_str("DEFAULT"),
        Expression::Sql(pieces) => {
            for piece in pieces {
                match piece {
                    Piece::Text(text) => sql.push_str(text),
                    Piece::Parameter(place) => {
                        push(sql, format_args!("${}", usize::from(*place) + 1));
                    }
                }
            }
        }
    }
}

/// Returns true if `UPSERT` does the same as the insert's own `ON CONFLICT`: a row is found by the
/// primary key alone, no other unique key could be violated, and every column is given, so that no
/// value of the existing row has to be kept (<https://www.cockroachlabs.com/docs/stable/upsert>).
/// It writes without reading.
pub(crate) fn is_upsert(parsed: &ParsedStatement, facts: &Facts) -> bool {
    let update = parsed.conflict.as_ref().filter(|conflict| conflict.update);
    let key = update.and_then(|conflict| conflict.columns.as_deref());
    let is_primary = |places: &[usize]| {
        let key = key.unwrap_or_default();
        let mut names = places.iter().filter_map(|place| facts.columns.get(*place));
        places.len() == key.len() && names.all(|column| key.contains(&column.name))
    };
    let is_given = |name: &Name| parsed.columns.iter().flatten().any(|given| given == name);
    facts.dialect.upserts
        && facts.primary().is_some_and(is_primary)
        && facts.uniques.len() == 1
        && !facts.hidden_unique
        && facts.hidden.is_empty()
        && facts.columns.iter().all(|column| is_given(&column.name))
}

/// Appends `INSERT INTO `, or `UPSERT INTO ` if it does the same.
pub(crate) fn push_verb(sql: &mut String, parsed: &ParsedStatement, facts: &Facts) {
    sql.push_str(match is_upsert(parsed, facts) {
        true => "UPSERT INTO ",
        false => "INSERT INTO ",
    });
}

/// Appends the action for a key that exists already.
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
    // A row of only its key still counts as written: it is locked, counted and returned.
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

/// Returns the names of the returned columns.
pub(crate) fn result_names(returning: &Returning, facts: &Facts) -> Vec<Name> {
    match returning {
        Returning::Nothing => Vec::new(),
        Returning::All => facts.columns.iter().map(|c| c.name.clone()).collect(),
        Returning::Columns(names) => names.to_vec(),
    }
}

/// Appends the returned columns, each under its own name. Arrays and composites are returned as
/// JSON.
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
