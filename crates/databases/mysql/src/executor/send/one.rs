//! Sends one write by its own statement, as its client would have sent it.

use mysql_async::Value as Cell;
use windrow_core::{Fault, FaultClass, WriteDone};

use super::read_back::NamingKey;
use super::{matching, read_back};
use crate::catalog::table::same;
use crate::executor::batch::BoundWrite;
use crate::executor::plan::{Action, Compiled};
use crate::executor::sql;
use crate::executor::sql::IfExists;
use crate::fault::{DUPLICATE, OVERFLOW, Refusal, Trouble};
use crate::session::{Answer, Server, Session};

/// Attempts to insert a row if the row that it met is gone when it is read.
const MAX_TRIES: usize = 3;

/// Bytes of a packet that are not values.
const FRAME_BYTES: usize = 4096;

/// The reason why a statement has no outcomes for its rows.
#[derive(Debug)]
pub(crate) enum StatementError {
    /// Nothing of the statement was executed.
    Trouble(Trouble),
    /// The statement was executed and must be undone: its answers cannot be assigned to its rows.
    Unassigned,
}

impl From<Trouble> for StatementError {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

/// Returns true if a write takes several statements, and so a transaction.
pub(crate) fn needs_transaction(compiled: &Compiled, server: &Server) -> bool {
    let back = compiled.results.is_some();
    match compiled.action {
        Action::Update => back,
        Action::Insert | Action::Ignore | Action::Upsert | Action::Delete => {
            back && !server.returning
        }
        Action::Get => false,
    }
}

/// Executes a write. A write that fails leaves nothing behind but, in a transaction, locks.
///
/// # Errors
/// The write's own failure, or that of the connection. [`StatementError::Unassigned`] only for a
/// write that needs a transaction.
pub(crate) async fn one(
    session: &mut Session,
    bound: &BoundWrite,
) -> Result<WriteDone, StatementError> {
    let compiled = &*bound.compiled;
    if bound.nothing {
        return Ok(matching::empty(compiled));
    }
    check_size(session, bound)?;
    match compiled.action {
        Action::Insert | Action::Upsert => {
            insert(session, bound, IfExists::of(compiled.action)).await
        }
        Action::Ignore => ignore(session, bound).await,
        Action::Update => update(session, bound).await,
        Action::Delete => delete(session, bound).await,
        Action::Get => {
            let rows = select(session, bound, result_places(compiled), "").await?;
            Ok(matching::all(compiled, rows.rows))
        }
    }
}

/// Returns the bytes of a row in a packet.
pub(super) fn size(row: &[Cell]) -> usize {
    let cell = |cell: &Cell| match cell {
        Cell::Bytes(bytes) => bytes.len() + 12,
        _ => 12,
    };
    row.iter().map(cell).sum()
}

/// Checks that a packet can hold a row. The server would close the connection without an answer.
fn check_size(session: &Session, bound: &BoundWrite) -> Result<(), Trouble> {
    let (size, most) = (size(&bound.row), session.server.packet);
    if size + FRAME_BYTES <= most {
        return Ok(());
    }
    let message = format!(
        "the row for table {} takes {size} bytes; the server takes {most} (max_allowed_packet)",
        bound.compiled.table.name
    );
    Err(Trouble::of(Fault::too_large(message)))
}

async fn insert(
    session: &mut Session,
    bound: &BoundWrite,
    if_exists: IfExists,
) -> Result<WriteDone, StatementError> {
    let compiled = &*bound.compiled;
    if compiled.results.is_some() && !session.server.returning {
        return insert_and_read(session, bound, if_exists).await;
    }
    let sql = sql::insert(compiled, if_exists, 1, result_places(compiled));
    let answer = session.execute(&sql, given(bound).to_vec()).await?;
    Ok(written(compiled, answer))
}

/// Returns the outcome of an insert that succeeded: one row, added or changed.
fn written(compiled: &Compiled, answer: Answer) -> WriteDone {
    match compiled.results {
        Some(_) => matching::all(compiled, answer.rows),
        None => WriteDone::rows(1),
    }
}

/// Executes an insert and reads its row by a key that is known before, on servers that return no
/// rows.
async fn insert_and_read(
    session: &mut Session,
    bound: &BoundWrite,
    if_exists: IfExists,
) -> Result<WriteDone, StatementError> {
    let compiled = &*bound.compiled;
    let Some(key) = NamingKey::of(bound) else {
        return Err(Trouble::of(read_back::unnamed(compiled)).into());
    };
    let sql = sql::insert(compiled, if_exists, 1, &[]);
    let answer = session.execute(&sql, given(bound).to_vec()).await?;
    let by_key = compiled.by_other_key(key.columns.clone());
    let sql = sql::select(&by_key, result_places(compiled), 1, "");
    let cells = key
        .cells(answer.generated)
        .ok_or(StatementError::Unassigned)?;
    let rows = session.execute(&sql, cells).await?.rows;
    match rows.len() {
        1 => Ok(matching::all(compiled, rows)),
        _ => Err(StatementError::Unassigned),
    }
}

/// Executes an insert that ignores a conflict of its own key, and no other failure.
async fn ignore(session: &mut Session, bound: &BoundWrite) -> Result<WriteDone, StatementError> {
    let mut tries = MAX_TRIES;
    loop {
        tries -= 1;
        match insert(session, bound, IfExists::Fail).await {
            Err(StatementError::Trouble(Trouble::Refused(refusal)))
                if refusal.number == DUPLICATE =>
            {
                if is_own_key(&bound.compiled, &refusal)
                    || exists(session, bound, " LOCK IN SHARE MODE").await?
                {
                    return Ok(matching::empty(&bound.compiled));
                }
                // The row has gone since, or another key has the conflict.
                let is_other = is_named(&bound.compiled, &refusal);
                if is_other || tries == 0 || bound.compiled.finds.is_none() {
                    return Err(Trouble::Refused(refusal).into());
                }
            }
            other => return other,
        }
    }
}

/// Returns true if the key of the conflict is the one that the write names.
fn is_own_key(compiled: &Compiled, refusal: &Refusal) -> bool {
    let met = refusal.fault.constraint();
    let mut uniques = compiled.table.uniques.iter();
    uniques.any(|unique| Some(&*unique.name) == met && same(&unique.columns, &compiled.key))
}

/// Returns true if the key of the conflict is known.
fn is_named(compiled: &Compiled, refusal: &Refusal) -> bool {
    let met = refusal.fault.constraint();
    let mut uniques = compiled.table.uniques.iter();
    uniques.any(|unique| Some(&*unique.name) == met)
}

/// Returns true if an upsert was refused because it met a row by another key than its own, or
/// because of a number out of range: [`look_up`] decides.
pub(crate) fn met_other_row(compiled: &Compiled, refusal: &Refusal) -> bool {
    compiled.action == Action::Upsert && refusal.number == OVERFLOW
}

/// Executes an upsert that met a row by another key: an update if a row with its own key exists,
/// else an insert. Needs a transaction.
///
/// # Errors
/// As [`one`].
pub(crate) async fn look_up(
    session: &mut Session,
    bound: &BoundWrite,
) -> Result<WriteDone, StatementError> {
    let mut tries = MAX_TRIES;
    loop {
        tries -= 1;
        if exists(session, bound, " FOR UPDATE").await? {
            return update(session, bound).await;
        }
        match insert(session, bound, IfExists::Fail).await {
            Err(StatementError::Trouble(Trouble::Refused(refusal)))
                if refusal.number == DUPLICATE && tries > 0 =>
            {
                if !exists(session, bound, " FOR UPDATE").await? {
                    return Err(Trouble::Refused(refusal).into());
                }
            }
            other => return other,
        }
    }
}

async fn exists(session: &mut Session, bound: &BoundWrite, lock: &str) -> Result<bool, Trouble> {
    if bound.compiled.finds.is_none() {
        return Ok(false);
    }
    Ok(!select(session, bound, &[], lock).await?.rows.is_empty())
}

async fn update(session: &mut Session, bound: &BoundWrite) -> Result<WriteDone, StatementError> {
    let compiled = &*bound.compiled;
    if compiled.results.is_some() && !read_back::keeps_key(compiled) {
        return Err(Trouble::of(read_back::unnamed(compiled)).into());
    }
    // An upsert that found its row does not change the key.
    let upserts = compiled.action == Action::Upsert;
    let changed = |place: &usize| !(upserts && compiled.key.contains(place));
    let columns: Vec<usize> = compiled.columns.iter().copied().filter(changed).collect();
    let mut rows = 1;
    if !columns.is_empty() {
        let values = compiled.columns.iter().zip(bound.row.iter());
        let values = values
            .filter(|(place, _)| changed(place))
            .map(|(_, cell)| cell.clone());
        let cells = values.chain(key_cells(bound)).collect();
        let sql = sql::update(compiled, &columns);
        rows = session.execute(&sql, cells).await?.affected;
    }
    if compiled.results.is_none() {
        return Ok(WriteDone::rows(rows));
    }
    if rows == 0 {
        return Ok(matching::empty(compiled));
    }
    let sql = sql::select(compiled, result_places(compiled), 1, "");
    let cells = if upserts {
        key_cells(bound).collect()
    } else {
        new_key(bound)
    };
    let found = session.execute(&sql, cells).await?.rows;
    match found.len() as u64 == rows {
        true => Ok(matching::all(compiled, found)),
        false
            if compiled
                .columns
                .iter()
                .any(|place| compiled.key.contains(place)) =>
        {
            Err(StatementError::Unassigned)
        }
        false => Err(Trouble::of(overtaken(compiled)).into()),
    }
}

/// Returns the fault of a write by a key that is not unique, if a row with the key came meanwhile.
fn overtaken(compiled: &Compiled) -> Fault {
    let message = format!(
        "rows of {} changed while they were being written",
        compiled.table.name
    );
    Fault::new(FaultClass::Conflict, "40001", message)
}

/// Returns the values of the key after an update that may have changed them.
fn new_key(bound: &BoundWrite) -> Vec<Cell> {
    let compiled = &*bound.compiled;
    let keys = compiled.key.iter().zip(key_cells(bound));
    let new = |(place, old): (&usize, Cell)| {
        let at = compiled.columns.iter().position(|column| column == place);
        at.and_then(|at| bound.row.get(at)).cloned().unwrap_or(old)
    };
    keys.map(new).collect()
}

async fn delete(session: &mut Session, bound: &BoundWrite) -> Result<WriteDone, StatementError> {
    let compiled = &*bound.compiled;
    let back = compiled.results.is_some();
    if back && session.server.returning {
        let sql = sql::delete(compiled, result_places(compiled), 1);
        let answer = session.execute(&sql, key_cells(bound).collect()).await?;
        return Ok(matching::all(compiled, answer.rows));
    }
    let read = match back {
        true => Some(select(session, bound, result_places(compiled), " FOR UPDATE").await?),
        false => None,
    };
    let sql = sql::delete(compiled, &[], 1);
    let answer = session.execute(&sql, key_cells(bound).collect()).await?;
    match read {
        Some(read) if read.rows.len() as u64 != answer.affected => {
            Err(Trouble::of(overtaken(compiled)).into())
        }
        Some(read) => Ok(matching::all(compiled, read.rows)),
        None => Ok(WriteDone::rows(answer.affected)),
    }
}

async fn select(
    session: &mut Session,
    bound: &BoundWrite,
    columns: &[usize],
    lock: &str,
) -> Result<Answer, Trouble> {
    let sql = sql::select(&bound.compiled, columns, 1, lock);
    session.execute(&sql, key_cells(bound).collect()).await
}

/// Returns the values of the shape's columns.
pub(super) fn given(bound: &BoundWrite) -> &[Cell] {
    let width = bound.compiled.columns.len();
    bound.row.get(..width).unwrap_or(&bound.row)
}

/// Returns the values that find a row.
pub(super) fn key_cells(bound: &BoundWrite) -> impl Iterator<Item = Cell> {
    let places = bound.compiled.finds.iter().flatten();
    places.filter_map(|place| bound.row.get(*place).cloned())
}

/// Returns the places of the returned columns.
pub(super) fn result_places(compiled: &Compiled) -> &[usize] {
    compiled
        .results
        .as_ref()
        .map_or(&[], |results| &results.places)
}
