//! Many writes of one shape by one statement.

use std::collections::HashSet;

use mysql_async::{Row, Value as Cell};
use windrow_core::RowDone;

use super::batch::BoundWrite;
use super::failed::Failed;
use super::matching;
use super::plan::{Action, Compiled};
use super::send_one::{given, key_cells, result_places, size};
use super::text;
use super::text::Met;
use crate::fault::{DUPLICATE, Trouble};
use crate::session::{Server, Session};
use crate::values::column::Kind;
use crate::values::key;
use crate::values::key::{Canon, Found};
use crate::values::literal;

/// Placeholders of one statement: the server describes each of them when it is prepared. (It would
/// take 65,535.)
const MOST_PLACEHOLDERS: usize = 8192;

/// Rows that are found by one list of keys. From 1,000 on MariaDB makes another statement of it.
const MOST_KEYS: usize = 512;

/// The most rows of one statement.
pub(crate) const MOST_ROWS: usize = 4096;

/// Rows whose values are judged by one statement: the warnings that a server keeps.
pub(crate) const MOST_JUDGED: usize = 1024;

/// Placeholders up to which a connection has an insert for every number of rows: a batch that is
/// one statement is one round trip, and one of two has four. Together they fill a quarter of what a
/// connection keeps prepared.
const EXACT: usize = 1 << 14;

/// Whether the statement must be undone where its answers cannot be told apart, or is not the only
/// one.
pub(crate) fn needs_transaction(compiled: &Compiled, server: &Server) -> bool {
    match compiled.action {
        Action::Insert | Action::Upsert => compiled.results.is_some(),
        // A row may have been found by a text that its own key is equal to and not the same as.
        Action::Delete => !server.returning || !has_exact_key(compiled),
        Action::Get => false,
        Action::Ignore | Action::Update => true,
    }
}

/// Whether equal keys are the same bytes.
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

/// Whether writes of the action may become one statement on this server.
pub(crate) fn is_possible(compiled: &Compiled, server: &Server) -> bool {
    let inserts = matches!(
        compiled.action,
        Action::Insert | Action::Ignore | Action::Upsert
    );
    !(inserts && compiled.results.is_some() && !server.returning)
}

/// How many of these writes the next statement takes. Large inserts have few sizes, so that few
/// statements are prepared; lists of keys are filled up to powers of two.
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
        _ if inserts => most_rows(columns),
        Action::Delete | Action::Get => {
            MOST_KEYS.min(MOST_PLACEHOLDERS / compiled.key.len().max(1))
        }
        _ => MOST_KEYS,
    };
    let mut used = 0;
    // Those behind the most are not looked at: there may be many times as many.
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

/// The most rows of an insert of so many columns.
fn most_rows(columns: usize) -> usize {
    (MOST_PLACEHOLDERS / columns).clamp(1, MOST_ROWS)
}

/// The rows of an insert of so many columns: all of them, or of many the next lower power of two,
/// or one and a half times one.
fn rows(fitting: usize, columns: usize) -> usize {
    let rows = fitting.clamp(1, most_rows(columns));
    // All sizes up to `rows` have this many placeholders together.
    if rows * (rows + 1) / 2 * columns <= EXACT {
        return rows;
    }
    let power = 1 << rows.ilog2();
    if rows >= power + power / 2 {
        power + power / 2
    } else {
        power
    }
}

/// Executes writes of one shape by one statement. Nothing is left behind where it fails.
///
/// # Errors
/// As the server refuses one of the rows; which one is not told.
pub(crate) async fn execute(
    session: &mut Session,
    items: &[&BoundWrite],
) -> Result<Vec<RowDone>, Failed> {
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
            matching::by_key(compiled, items, rows).ok_or(Failed::Unsure)
        }
    }
}

async fn insert(
    session: &mut Session,
    compiled: &Compiled,
    items: &[&BoundWrite],
) -> Result<Vec<RowDone>, Failed> {
    let by_key = compiled.finds.is_some() && items.iter().all(|bound| bound.canon.is_some());
    let back = match compiled.results {
        Some(_) if by_key => joined(&compiled.key, result_places(compiled)),
        Some(_) => joined(&compiled.columns, result_places(compiled)),
        None => Vec::new(),
    };
    let met = match compiled.is_new {
        true => Met::Fails,
        false => Met::of(compiled.action),
    };
    let sql = text::insert(compiled, met, items.len(), &back);
    let answer = session.execute(&sql, all_given(items)).await?;
    let dones = match compiled.results {
        None if compiled.action == Action::Upsert || answer.affected == items.len() as u64 => {
            Some(vec![RowDone::rows(1); items.len()])
        }
        None => None,
        Some(_) if by_key => matching::by_key(compiled, items, answer.rows),
        Some(_) => matching::by_contents(compiled, items, answer.rows),
    };
    // Every row is there now; one that nothing came back for was not matched.
    let dones = dones.filter(|dones| dones.iter().all(|done| done.rows == 1));
    dones.ok_or(Failed::Unsure)
}

async fn update(
    session: &mut Session,
    compiled: &Compiled,
    items: &[&BoundWrite],
) -> Result<Vec<RowDone>, Failed> {
    let rows: Vec<&[Cell]> = items.iter().map(|bound| &*bound.row).collect();
    let sql = text::update_many(compiled, session.server.mariadb, &rows);
    let found = session.say(&sql).await?;
    if compiled.results.is_none() && found == items.len() as u64 {
        return Ok(vec![RowDone::rows(1); items.len()]);
    }
    let rows = select(session, compiled, items, "").await?;
    // The rows that were found are locked; a row that came meanwhile would be one too many.
    if rows.len() as u64 != found {
        return Err(Failed::Unsure);
    }
    matching::by_key(compiled, items, rows).ok_or(Failed::Unsure)
}

async fn delete(
    session: &mut Session,
    compiled: &Compiled,
    items: &[&BoundWrite],
) -> Result<Vec<RowDone>, Failed> {
    let padded = items.len().next_power_of_two();
    let rows = if session.server.returning {
        let back = joined(&compiled.key, result_places(compiled));
        let sql = text::delete_many(compiled, &back, padded);
        session.execute(&sql, keys(items, padded)).await?.rows
    } else {
        let rows = select(session, compiled, items, " FOR UPDATE").await?;
        let sql = text::delete_many(compiled, &[], padded);
        let answer = session.execute(&sql, keys(items, padded)).await?;
        if answer.affected != rows.len() as u64 {
            return Err(Failed::Unsure);
        }
        rows
    };
    matching::by_key(compiled, items, rows).ok_or(Failed::Unsure)
}

fn all_given(items: &[&BoundWrite]) -> Vec<Cell> {
    let cells = items.iter().flat_map(|bound| given(bound));
    cells.cloned().collect()
}

/// Has the server judge the values of rows whose keys are there, and stay there: nothing is
/// written. True where all values are as they must be: then there is one warning for each row, that
/// its key is there. A row that a CHECK refuses has one warning too, of another number.
///
/// # Errors
/// As the server refuses.
pub(crate) async fn judge(session: &mut Session, items: &[&BoundWrite]) -> Result<bool, Trouble> {
    let Some(first) = items.first() else {
        return Ok(true);
    };
    let sql = text::insert(&first.compiled, Met::Warns, items.len(), &[]);
    let answer = session.execute(&sql, all_given(items)).await?;
    let counted = answer.affected == 0 && usize::from(answer.warnings) == items.len();
    let looks = !session.server.mariadb || first.compiled.table.has_conditions();
    match counted && looks {
        true => session.only_warned(DUPLICATE, items.len()).await,
        false => Ok(counted),
    }
}

/// Which of these rows are there. Without a lock that is a guess.
///
/// # Errors
/// As the server refuses.
pub(crate) async fn existing(
    session: &mut Session,
    compiled: &Compiled,
    items: &[&BoundWrite],
    lock: &str,
) -> Result<Option<HashSet<Canon>>, Trouble> {
    let mut there = HashSet::new();
    for chunk in items.chunks(MOST_KEYS) {
        let padded = chunk.len().next_power_of_two();
        let sql = text::select_many(compiled, &compiled.key, padded, lock);
        for row in session.execute(&sql, keys(chunk, padded)).await?.rows {
            match canon(compiled, &row) {
                Found::Row(canon) => there.insert(canon),
                Found::Nothing | Found::Unknown => return Ok(None),
            };
        }
    }
    Ok(Some(there))
}

fn canon(compiled: &Compiled, row: &Row) -> Found {
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
    let sql = text::select_many(compiled, &columns, padded, lock);
    Ok(session.execute(&sql, keys(items, padded)).await?.rows)
}

/// The keys of these rows; the last one again until there are so many.
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

/// Whether the values of each column are of one kind, so that a derived table gives them the type
/// that they have.
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
