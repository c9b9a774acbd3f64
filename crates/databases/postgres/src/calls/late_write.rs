//! The form of a write that is executed as late as at COMMIT, for sessions that accept its errors
//! there: see [`windrow_core::LateWrite`].
//!
//! `statement_sink` adds the form to a statement's meaning, and `renew` makes it again after its
//! table was changed. Nothing here sends anything to the server.

use std::iter;
use std::sync::Arc;

use windrow_core::{Doubt, Expression, LateWrite, Op, ParsedStatement, Piece, Statement};
use windrow_database::quote::{push_ident, push_table};
use windrow_proof::Trusted;

use super::bound_call::worth_joining;
use super::call_catalog::CallCatalog;
use super::describe::Description;
use super::given_values::GivenValues;
use super::meaning::{Meaning, meaning};
use super::preview::{self, certainty};
use super::preview_part::{PartKind, PreviewPart};
use crate::moment::Moment;
use crate::statement::of_shape::push;

/// The body of RowDescription of a statement that gives rows without columns.
const NO_COLUMNS: [u8; 2] = [0, 0];

/// Adds the form to the meaning of a write, if each of its calls certainly counts one row, counts
/// none, or fails.
pub(crate) fn add(
    write: &mut Meaning,
    description: &Description,
    trusted: &Trusted,
    catalog: &CallCatalog,
) {
    let Some((executed, question)) = late(write, description, trusted) else {
        return;
    };
    let statement = |meaning: Meaning| {
        let meaning = Arc::new(meaning);
        let (parsed, signature) = (meaning.parsed.clone(), meaning.signature.clone());
        let statement = Arc::new(Statement::new(parsed, signature, meaning.clone()));
        catalog.note(&statement, &meaning);
        statement
    };
    let form = LateWrite {
        write: statement(executed),
        question: question.map(statement),
        has_time: has_time(write),
        generates: write.generated.is_some(),
        cascades: cascades(write),
    };
    let facts = &write.table.facts;
    let values = GivenValues::of(&description.parameters, facts, iter::empty(), true);
    write.late = Some((Arc::new(form), values));
}

/// Returns the current meaning of a statement of such a form. `write`, `description`: those of the
/// write now. `None` if its calls may now count another number of rows, or mean other values.
pub(super) fn again(
    part: &PreviewPart,
    write: &Meaning,
    description: &Description,
    trusted: &Trusted,
) -> Option<Arc<Meaning>> {
    let (executed, question) = late(write, description, trusted)?;
    let meaning = match part.kind {
        PartKind::Count => question?,
        _ => executed,
    };
    let now = meaning.part.as_ref()?;
    let is_same = now.kind == part.kind && now.types == part.types;
    is_same.then(|| Arc::new(meaning))
}

fn has_time(write: &Meaning) -> bool {
    write.clock.moment != Moment::Unread
}

fn cascades(write: &Meaning) -> bool {
    write.parsed.op != Op::Insert && write.table.facts.referenced
}

/// Returns the meanings of the write that is executed late, and of the question for its rows.
fn late(
    write: &Meaning,
    description: &Description,
    trusted: &Trusted,
) -> Option<(Meaning, Option<Meaning>)> {
    let parsed = &write.parsed;
    let relation = description.relation.as_ref()?;
    let reads_committed =
        &*relation.isolation == "read committed" || &*relation.isolation == "read uncommitted";
    // The server evaluates all conditions at COMMIT.
    let of_table = certainty::of_table(&write.table.facts);
    let is_late = write.proven
        && reads_committed
        && of_table.is_none_or(|doubt| *doubt == Doubt::CONDITION)
        && parsed.set_based
        && parsed.conflict.is_none()
        && parsed.returning.is_none();
    let part = |kind| {
        Some(Arc::new(PreviewPart {
            kind,
            insert: parsed.clone(),
            types: description.parameters.as_slice().into(),
            texts: Default::default(),
        }))
    };
    let (mut executed, mut question) = match parsed.op {
        _ if !is_late => return None,
        Op::Insert => {
            let executed = executed(write, description, (text(parsed), true), trusted)?;
            (executed, None)
        }
        Op::Update | Op::Delete if write.names_row() => {
            let guarded = LateWrite::guarded(&format!("{} RETURNING true", text(parsed)));
            let executed = executed(write, description, (guarded, false), trusted)?;
            (executed, Some(count(write, description)))
        }
        _ => return None,
    };
    (executed.preview, executed.late) = (None, None);
    executed.part = part(PartKind::Late {
        has_time: has_time(write),
        generates: write.generated.is_some(),
        cascades: cascades(write),
    });
    if let Some(question) = &mut question {
        question.part = part(PartKind::Count);
    }
    Some((executed, question))
}

/// Returns the meaning of a write as this text. `set_based`: see [`ParsedStatement::set_based`].
fn executed(
    write: &Meaning,
    description: &Description,
    (text, set_based): (String, bool),
    trusted: &Trusted,
) -> Option<Meaning> {
    let parsed = ParsedStatement {
        text: text.into(),
        types: description.parameters.as_slice().into(),
        set_based,
        ..(*write.parsed).clone()
    };
    let mut described = description.clone();
    if !set_based {
        (described.fields, described.width) = (Some(NO_COLUMNS.into()), 0);
    }
    let table = &write.table;
    let found = meaning(&Arc::new(parsed), &described, trusted, |_, _| table.clone());
    found.and_then(worth_joining).ok()
}

/// Returns the text of a write without trailing comments and semicolons.
fn text(parsed: &ParsedStatement) -> String {
    let mut sql = String::from(match parsed.op {
        Op::Insert => "INSERT INTO ",
        Op::Update => "UPDATE ",
        _ => "DELETE FROM ",
    });
    push_target(&mut sql, parsed);
    match parsed.op {
        Op::Insert => push_values(&mut sql, parsed),
        _ => {
            for (number, (column, value)) in parsed.assignments.iter().enumerate() {
                sql.push_str(if number > 0 { ", " } else { " SET " });
                push_ident(&mut sql, column);
                sql.push_str(" = ");
                push_expression(&mut sql, value);
            }
            push_conditions(&mut sql, parsed);
        }
    }
    sql
}

fn push_target(sql: &mut String, parsed: &ParsedStatement) {
    push_table(sql, &parsed.table);
    if let Some(alias) = &parsed.alias {
        sql.push_str(" AS ");
        push_ident(sql, alias);
    }
}

fn push_values(sql: &mut String, parsed: &ParsedStatement) {
    if let Some(columns) = &parsed.columns {
        sql.push_str(" (");
        for (number, column) in columns.iter().enumerate() {
            sql.push_str(if number > 0 { ", " } else { "" });
            push_ident(sql, column);
        }
        sql.push(')');
    }
    if let Some(clause) = &parsed.overriding {
        push(sql, format_args!(" {clause}"));
    }
    if parsed.values.is_empty() {
        return sql.push_str(" DEFAULT VALUES");
    }
    sql.push_str(" VALUES (");
    for (number, value) in parsed.values.iter().enumerate() {
        sql.push_str(if number > 0 { ", " } else { "" });
        push_expression(sql, value);
    }
    sql.push(')');
}

fn push_conditions(sql: &mut String, parsed: &ParsedStatement) {
    for (number, (column, value)) in parsed.keys.iter().enumerate() {
        sql.push_str(if number > 0 { " AND " } else { " WHERE " });
        push_ident(sql, column);
        sql.push_str(" = (");
        push_expression(sql, value);
        sql.push(')');
    }
    if let Some(conditions) = &parsed.conditions {
        sql.push_str(" AND (");
        push_expression(sql, conditions);
        sql.push(')');
    }
}

/// Returns the meaning of the question for the number of rows that a call of a write would change.
fn count(write: &Meaning, description: &Description) -> Meaning {
    let parsed = &write.parsed;
    let mut sql = String::from("SELECT pg_catalog.count(*) FROM ");
    push_target(&mut sql, parsed);
    push_conditions(&mut sql, parsed);
    let (parsed, signature) = preview::counting(sql, &description.parameters, &write.table.facts);
    Meaning::of_question(&parsed, &signature, &write.table)
}

fn push_expression(sql: &mut String, expression: &Expression) {
    let Expression::Sql(pieces) = expression else {
        return sql.push_str("DEFAULT");
    };
    for piece in pieces {
        match piece {
            Piece::Text(text) => sql.push_str(text),
            Piece::Parameter(place) => push(sql, format_args!("${}", place + 1)),
        }
    }
}
