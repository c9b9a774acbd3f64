//! Sends many writes of one shape by one statement.

use std::collections::HashSet;

use mysql_async::{Row, Value as Cell};
use windrow_core::WriteDone;

use super::matching;
use super::one::{StatementError, given, key_cells, result_places, size};
use crate::executor::batch::BoundWrite;
use crate::executor::plan::{Action, Compiled};
use crate::executor::sql;
use crate::executor::sql::IfExists;
use crate::fault::{DUPLICATE, Trouble};
use crate::session::{Server, Session};
use crate::values::column::Kind;
use crate::values::key;
use crate::values::key::{Canon, RowKey};
use crate::values::literal;

/// Placeholders of one statement. The server describes each of them when it prepares the statement.
/// It would take 65,535.
const MAX_PLACEHOLDERS: usize = 8192;

/// Keys of one list. From 1,000 on MariaDB converts the list to a subquery.
const MAX_KEYS: usize = 512;

/// Rows of one statement.
pub(crate) const MAX_ROWS: usize = 4096;

/// Rows whose values one statement judges: the number of warnings that a server keeps.
pub(crate) const MAX_JUDGED_ROWS: usize = 1024;

/// Placeholders, in all such inserts together, up to which a connection prepares an insert for
/// every number of rows: a batch of one statement takes one round trip, and one of two takes four.
/// They fill a quarter of the statements that a connection keeps.
const MAX_EXACT_PLACEHOLDERS: usize = 1 << 14;

/// Returns true if the statement needs a transaction: it must be undone if its answers cannot be
/// assigned to its rows, or it is not the only one.
pub(crate) fn set_needs_transaction(compiled: &Compiled, server: &Server) -> bool {
    match compiled.action {
        Action::Insert | Action::Upsert => compiled.results.is_some(),
        // A text may have found a row whose key is equal to it and has other letters.
        Action::Delete => !server.returning || !has_exact_key(compiled),
        Action::Get => false,
        Action::Ignore | Action::Update => true,
    }
}

/// Returns true if equal keys have the same bytes.
fn has_exact_key(compiled: &Compiled) -> bool {
    let columns = compiled
        .key
        .iter()
        .filter_map(|place| compiled.table.columns.get(*place));
    columns.into_iter().all(|column| {
        matches!(
            column.kind,
            Kind::Int | Kind::Bool | Kind::Bit | Kind::Blob | Kind::Binary
        )
    })
}

/// Returns true if writes of the shape may become one statement on this server.
pub(crate) fn can_set(compiled: &Compiled, server: &Server) -> bool {
    let inserts = matches!(
        compiled.action,
        Action::Insert | Action::Ignore | Action::Upsert
    );
    !(inserts && compiled.results.is_some() && !server.returning)
}

/// Returns the number of these writes that the next statement takes. Large inserts have few sizes,
/// so that few statements are prepared. Lists of keys are filled up to powers of two.
pub(crate) fn next_size(items: &[&BoundWrite], server: &Server) -> usize {
    let Some(first) = items.first() else { return 0 };
    let compiled = &*first.compiled;
    let budget = server
        .packet
        .saturating_sub(64 * 1024)
        .max(server.packet / 2);
    let bytes = |bound: &&BoundWrite| match compiled.action {
        Action::Update => bound.row.iter().map(literal::size).sum(),
        _ => size(&bound.row) + 3 * bound.row.len() + 3,
    };
    let columns = compiled.columns.len().max(1);
    let inserts = matches!(
        compiled.action,
        Action::Insert | Action::Ignore | Action::Upsert
    );
    let most = match compiled.action {
        _ if inserts => max_rows(columns),
        Action::Delete | Action::Get => MAX_KEYS.min(MAX_PLACEHOLDERS / compiled.key.len().max(1)),
        _ => MAX_KEYS,
    };
    let mut used = 0;
    // There may be many times as many: the others are not measured.
    let fitting = items.iter().take(most.max(1)).take_while(|bound| {
        used += bytes(bound);
        used <= budget
    });
    let fitting = fitting.count().max(1);
    match inserts {
        true => rows(fitting, columns),
        false => fitting,
    }
}

/// Returns the largest number of rows of an insert of so many columns.
fn max_rows(columns: usize) -> usize {
    (MAX_PLACEHOLDERS / columns).clamp(1, MAX_ROWS)
}

/// Returns the number of rows of an insert: all that fit, or of many rows the next lower power of
/// two or one and a half times it.
fn rows(fitting: usize, columns: usize) -> usize {
    let rows = fitting.clamp(1, max_rows(columns));
    // All sizes up to `rows` have this many placeholders together.
    if rows * (rows + 1) / 2 * columns <= MAX_EXACT_PLACEHOLDERS {
        return rows;
    }
    let power = 1 << rows.ilog2();
    if rows >= power + power / 2 {
        power + power / 2
    } else {
        power
    }
}

/// Executes writes of one shape by one statement. If it fails, nothing of it is left.
///
/// # Errors
/// The server refused one of the rows, or the connection failed.
pub(crate) async fn many(
    session: &mut Session,
    items: &[&BoundWrite],
) -> Result<Vec<WriteDone>, StatementError> {
    let Some(first) = items.first() else {
        return Ok(Vec::new());
    };
    let compiled = &*first.compiled;
    match compiled.action {
        Action::Insert | Action::Ignore | Action::Upsert => insert(session, compiled, items).await,
        Action::Update => update(session, compiled, items).await,
        Action::Delete => delete(session, compiled, items).await,
        Action::Get => {
            let rows = select(session, compiled, items, "").await?;
            matching::by_key(compiled, items, rows).ok_or(StatementError::Unassigned)
        }
    }
}

async fn insert(
    session: &mut Session,
    compiled: &Compiled,
    items: &[&BoundWrite],
) -> Result<Vec<WriteDone>, StatementError> {
    let by_key = compiled.finds.is_some() && items.iter().all(|bound| bound.canon.is_some());
    let back = match compiled.results {
        Some(_) if by_key => joined(&compiled.key, result_places(compiled)),
        Some(_) => joined(&compiled.columns, result_places(compiled)),
        None => Vec::new(),
    };
    let if_exists = match compiled.is_new {
        true => IfExists::Fail,
        false => IfExists::of(compiled.action),
    };
    let sql = sql::insert(compiled, if_exists, items.len(), &back);
    let answer = session.execute(&sql, all_given(items)).await?;
    let dones = match compiled.results {
        None if compiled.action == Action::Upsert || answer.affected == items.len() as u64 => {
            Some(vec![WriteDone::rows(1); items.len()])
        }
        None => None,
        Some(_) if by_key => matching::by_key(compiled, items, answer.rows),
        Some(_) => matching::by_contents(compiled, items, answer.rows),
    };
    // Every row exists now. One without a returned row was not matched.
    let dones = dones.filter(|dones| dones.iter().all(|done| done.rows == 1));
    dones.ok_or(StatementError::Unassigned)
}

async fn update(
    session: &mut Session,
    compiled: &Compiled,
    items: &[&BoundWrite],
) -> Result<Vec<WriteDone>, StatementError> {
    let rows: Vec<&[Cell]> = items.iter().map(|bound| &*bound.row).collect();
    let sql = sql::update_many(compiled, session.server.mariadb, &rows);
    let found = session.say(&sql).await?;
    if compiled.results.is_none() && found == items.len() as u64 {
        return Ok(vec![WriteDone::rows(1); items.len()]);
    }
    let rows = select(session, compiled, items, "").await?;
    // The rows that were found are locked. A row that came meanwhile would be one too many.
    if rows.len() as u64 != found {
        return Err(StatementError::Unassigned);
    }
    matching::by_key(compiled, items, rows).ok_or(StatementError::Unassigned)
}

async fn delete(
    session: &mut Session,
    compiled: &Compiled,
    items: &[&BoundWrite],
) -> Result<Vec<WriteDone>, StatementError> {
    let padded = items.len().next_power_of_two();
    let rows = if session.server.returning {
        let back = joined(&compiled.key, result_places(compiled));
        let sql = sql::delete(compiled, &back, padded);
        session.execute(&sql, keys(items, padded)).await?.rows
    } else {
        let rows = select(session, compiled, items, " FOR UPDATE").await?;
        let sql = sql::delete(compiled, &[], padded);
        let answer = session.execute(&sql, keys(items, padded)).await?;
        if answer.affected != rows.len() as u64 {
            return Err(StatementError::Unassigned);
        }
        rows
    };
    matching::by_key(compiled, items, rows).ok_or(StatementError::Unassigned)
}

fn all_given(items: &[&BoundWrite]) -> Vec<Cell> {
    let cells = items.iter().flat_map(|bound| given(bound));
    cells.cloned().collect()
}

/// Has the server judge the values of rows whose keys exist and are locked: nothing is written.
/// Returns true if all values are valid: then the server warns once for each row, that its key
/// exists. It warns of a row that a CHECK refuses once too, with another number.
///
/// # Errors
/// The server refused the statement, or the connection failed.
pub(crate) async fn judge(session: &mut Session, items: &[&BoundWrite]) -> Result<bool, Trouble> {
    let Some(first) = items.first() else {
        return Ok(true);
    };
    let sql = sql::insert(&first.compiled, IfExists::Warn, items.len(), &[]);
    let answer = session.execute(&sql, all_given(items)).await?;
    let counted = answer.affected == 0 && usize::from(answer.warnings) == items.len();
    let needs_look = !session.server.mariadb || first.compiled.table.has_conditions();
    match counted && needs_look {
        true => session.only_warned(DUPLICATE, items.len()).await,
        false => Ok(counted),
    }
}

/// Returns the keys of these rows that exist. Without a lock that may change at once.
///
/// # Errors
/// The server refused the query, or the connection failed.
pub(crate) async fn existing(
    session: &mut Session,
    compiled: &Compiled,
    items: &[&BoundWrite],
    lock: &str,
) -> Result<Option<HashSet<Canon>>, Trouble> {
    let mut found = HashSet::new();
    for chunk in items.chunks(MAX_KEYS) {
        let padded = chunk.len().next_power_of_two();
        let sql = sql::select(compiled, &compiled.key, padded, lock);
        for row in session.execute(&sql, keys(chunk, padded)).await?.rows {
            match canon(compiled, &row) {
                RowKey::Row(canon) => found.insert(canon),
                RowKey::NoRow | RowKey::Unknown => return Ok(None),
            };
        }
    }
    Ok(Some(found))
}

fn canon(compiled: &Compiled, row: &Row) -> RowKey {
    let columns = compiled
        .key
        .iter()
        .filter_map(|p| compiled.table.columns.get(*p));
    let cells = (0..compiled.key.len()).filter_map(|at| row.as_ref(at));
    key::row_key(columns.zip(cells))
}

async fn select(
    session: &mut Session,
    compiled: &Compiled,
    items: &[&BoundWrite],
    lock: &str,
) -> Result<Vec<Row>, Trouble> {
    let padded = items.len().next_power_of_two();
    let columns = joined(&compiled.key, result_places(compiled));
    let sql = sql::select(compiled, &columns, padded, lock);
    Ok(session.execute(&sql, keys(items, padded)).await?.rows)
}

/// Returns the keys of these rows, with the last one repeated until there are `padded`.
fn keys(items: &[&BoundWrite], padded: usize) -> Vec<Cell> {
    let missing = padded.saturating_sub(items.len());
    let again = items
        .last()
        .into_iter()
        .flat_map(|last| std::iter::repeat_n(last, missing));
    items
        .iter()
        .chain(again)
        .flat_map(|bound| key_cells(bound))
        .collect()
}

fn joined(first: &[usize], second: &[usize]) -> Vec<usize> {
    [first, second].concat()
}

/// Returns true if the values of each column are of one kind, so that a derived table gives them
/// their own type.
pub(crate) fn is_uniform(items: &[&BoundWrite]) -> bool {
    let Some(first) = items.first() else {
        return true;
    };
    (0..first.row.len()).all(|at| {
        let cells = items.iter().filter_map(|bound| bound.row.get(at));
        let mut kinds = cells
            .filter(|cell| **cell != Cell::NULL)
            .map(|cell| match cell {
                Cell::Int(_) | Cell::UInt(_) => 0,
                Cell::Double(_) => 1,
                _ => 2,
            });
        let kind = kinds.next();
        kinds.all(|k| Some(k) == kind)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_inserts_have_any_size_and_large_ones_few() {
        assert_eq!([1, 7, 50, 80].map(|n| rows(n, 5)), [1, 7, 50, 80]);
        assert_eq!(
            [81, 95, 96, 127, 128].map(|n| rows(n, 5)),
            [64, 64, 96, 96, 128]
        );
        assert_eq!([1000, 5000].map(|n| rows(n, 5)), [768, 1536]);
        assert_eq!([30, 60, 100].map(|n| rows(n, 20)), [30, 48, 96]);
        assert_eq!([1, 2].map(|n| rows(n, 4096)), [1, 2]);
        assert_eq!(rows(3, 9000), 1);
        assert_eq!(rows(9000, 1), 4096);
    }
}
