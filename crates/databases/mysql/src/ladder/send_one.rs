//! One write by its own statement: what its client would have sent.

use mysql_async::Value as Cell;
use windrow_core::{Fault, FaultClass, RowDone};

use super::batch::BoundWrite;
use super::failed::Failed;
use super::matching;
use super::named;
use super::named::NamingKey;
use super::plan::{Action, Compiled};
use super::text;
use super::text::Met;
use crate::catalog::table::same;
use crate::fault::{DUPLICATE, OVERFLOW, Refusal, Trouble};
use crate::session::{Answer, Session};

/// How often an insert is tried that meets a row which is gone when it is looked at.
const TRIES: usize = 3;

/// Bytes of a packet that are not values.
const FRAME: usize = 4096;

/// Whether a write needs a transaction around its statements: there are several of them.
pub(crate) fn needs_transaction(compiled: &Compiled, session: &Session) -> bool {
    let back = compiled.results.is_some();
    match compiled.action {
        Action::Update => back,
        Action::Insert | Action::Ignore | Action::Upsert | Action::Delete => {
            back && !session.server.returning
        }
        Action::Get => false,
    }
}

/// Executes a write. What fails leaves nothing behind but, in a transaction, locks; a write that
/// needs a transaction may also be unsure, and must be undone then.
///
/// # Errors
/// The write's own failure, or that of the connection.
pub(crate) async fn execute(session: &mut Session, bound: &BoundWrite) -> Result<RowDone, Failed> {
    let compiled = &*bound.compiled;
    if bound.nothing {
        return Ok(matching::empty(compiled));
    }
    check_size(session, bound)?;
    match compiled.action {
        Action::Insert | Action::Upsert => insert(session, bound, Met::of(compiled.action)).await,
        Action::Ignore => ignore(session, bound).await,
        Action::Update => update(session, bound).await,
        Action::Delete => delete(session, bound).await,
        Action::Get => {
            let rows = select(session, bound, result_places(compiled), "").await?;
            Ok(matching::all(compiled, rows.rows))
        }
    }
}

/// Bytes that a row takes in a packet.
pub(crate) fn size(row: &[Cell]) -> usize {
    let cell = |cell: &Cell| match cell {
        Cell::Bytes(bytes) => bytes.len() + 12,
        _ => 12,
    };
    row.iter().map(cell).sum()
}

/// The client would be cut off without a word.
fn check_size(session: &Session, bound: &BoundWrite) -> Result<(), Trouble> {
    let (size, most) = (size(&bound.row), session.server.packet);
    if size + FRAME <= most {
        return Ok(());
    }
    let message = format!(
        "the row for table {} takes {size} bytes; the server takes {most} (max_allowed_packet)",
        bound.compiled.table.name
    );
    Err(Trouble::of(Fault::too_large(message)))
}

async fn insert(session: &mut Session, bound: &BoundWrite, met: Met) -> Result<RowDone, Failed> {
    let compiled = &*bound.compiled;
    if compiled.results.is_some() && !session.server.returning {
        return insert_and_read(session, bound, met).await;
    }
    let sql = text::insert(compiled, met, 1, result_places(compiled));
    let answer = session.execute(&sql, given(bound).to_vec()).await?;
    Ok(written(compiled, answer))
}

/// What an insert that succeeded is told: one row, whether it was added or met one that it changed.
fn written(compiled: &Compiled, answer: Answer) -> RowDone {
    match compiled.results {
        Some(_) => matching::all(compiled, answer.rows),
        None => RowDone::rows(1),
    }
}

/// For servers that give no rows back: the row is read by a key that is known before it is written.
async fn insert_and_read(
    session: &mut Session,
    bound: &BoundWrite,
    met: Met,
) -> Result<RowDone, Failed> {
    let compiled = &*bound.compiled;
    let Some(key) = NamingKey::of(bound) else {
        return Err(Trouble::of(named::unnamed(compiled)).into());
    };
    let sql = text::insert(compiled, met, 1, &[]);
    let answer = session.execute(&sql, given(bound).to_vec()).await?;
    let by_key = compiled.by_other_key(key.columns.clone());
    let sql = text::select(&by_key, result_places(compiled), "");
    let cells = key.cells(answer.generated).ok_or(Failed::Unsure)?;
    let rows = session.execute(&sql, cells).await?.rows;
    match rows.len() {
        1 => Ok(matching::all(compiled, rows)),
        _ => Err(Failed::Unsure),
    }
}

/// Only the key's own conflict is ignored: any other failure is told.
async fn ignore(session: &mut Session, bound: &BoundWrite) -> Result<RowDone, Failed> {
    let mut tries = TRIES;
    loop {
        tries -= 1;
        match insert(session, bound, Met::Fails).await {
            Err(Failed::Trouble(Trouble::Refused(refusal))) if refusal.number == DUPLICATE => {
                if is_own_key(&bound.compiled, &refusal)
                    || is_there(session, bound, " LOCK IN SHARE MODE").await?
                {
                    return Ok(matching::empty(&bound.compiled));
                }
                // A row that was there a moment ago, or another key's conflict.
                let other = is_named(&bound.compiled, &refusal);
                if other || tries == 0 || bound.compiled.finds.is_none() {
                    return Err(Trouble::Refused(refusal).into());
                }
            }
            other => return other,
        }
    }
}

/// Whether the key that was met, of the row as it would have been stored, is the one that the write
/// names.
fn is_own_key(compiled: &Compiled, refusal: &Refusal) -> bool {
    let met = refusal.fault.constraint();
    let mut uniques = compiled.table.uniques.iter();
    uniques.any(|unique| Some(&*unique.name) == met && same(&unique.columns, &compiled.key))
}

/// Whether it is known which key was met.
fn is_named(compiled: &Compiled, refusal: &Refusal) -> bool {
    let met = refusal.fault.constraint();
    let mut uniques = compiled.table.uniques.iter();
    uniques.any(|unique| Some(&*unique.name) == met)
}

/// Whether an upsert was refused for the row that it met by another key than its own, or for a
/// number: [`look_up`] finds out.
pub(crate) fn met_another(compiled: &Compiled, refusal: &Refusal) -> bool {
    compiled.action == Action::Upsert && refusal.number == OVERFLOW
}

/// An upsert that has met a row by another key. Whether there is one with its own key decides what
/// it does; needs a transaction.
///
/// # Errors
/// As [`execute`].
pub(crate) async fn look_up(session: &mut Session, bound: &BoundWrite) -> Result<RowDone, Failed> {
    let mut tries = TRIES;
    loop {
        tries -= 1;
        if is_there(session, bound, " FOR UPDATE").await? {
            return update(session, bound).await;
        }
        match insert(session, bound, Met::Fails).await {
            Err(Failed::Trouble(Trouble::Refused(refusal)))
                if refusal.number == DUPLICATE && tries > 0 =>
            {
                if !is_there(session, bound, " FOR UPDATE").await? {
                    return Err(Trouble::Refused(refusal).into());
                }
            }
            other => return other,
        }
    }
}

async fn is_there(session: &mut Session, bound: &BoundWrite, lock: &str) -> Result<bool, Trouble> {
    if bound.compiled.finds.is_none() {
        return Ok(false);
    }
    Ok(!select(session, bound, &[], lock).await?.rows.is_empty())
}

async fn update(session: &mut Session, bound: &BoundWrite) -> Result<RowDone, Failed> {
    let compiled = &*bound.compiled;
    if compiled.results.is_some() && !named::keeps_key(compiled) {
        return Err(Trouble::of(named::unnamed(compiled)).into());
    }
    // An upsert that has found its row leaves the key as it is.
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
        let sql = text::update(compiled, &columns);
        rows = session.execute(&sql, cells).await?.affected;
    }
    if compiled.results.is_none() {
        return Ok(RowDone::rows(rows));
    }
    if rows == 0 {
        return Ok(matching::empty(compiled));
    }
    let sql = text::select(compiled, result_places(compiled), "");
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
            Err(Failed::Unsure)
        }
        false => Err(Trouble::of(overtaken(compiled)).into()),
    }
}

/// The fault of a write by a key that is not unique, where a row with it came meanwhile.
fn overtaken(compiled: &Compiled) -> Fault {
    let message = format!(
        "rows of {} changed while they were being written",
        compiled.table.name
    );
    Fault::new(FaultClass::Conflict, "40001", message)
}

/// The key's values once an update has been made that may have changed them.
fn new_key(bound: &BoundWrite) -> Vec<Cell> {
    let compiled = &*bound.compiled;
    let keys = compiled.key.iter().zip(key_cells(bound));
    let new = |(place, old): (&usize, Cell)| {
        let at = compiled.columns.iter().position(|column| column == place);
        at.and_then(|at| bound.row.get(at)).cloned().unwrap_or(old)
    };
    keys.map(new).collect()
}

async fn delete(session: &mut Session, bound: &BoundWrite) -> Result<RowDone, Failed> {
    let compiled = &*bound.compiled;
    let back = compiled.results.is_some();
    if back && session.server.returning {
        let sql = text::delete(compiled, result_places(compiled));
        let answer = session.execute(&sql, key_cells(bound).collect()).await?;
        return Ok(matching::all(compiled, answer.rows));
    }
    let read = match back {
        true => Some(select(session, bound, result_places(compiled), " FOR UPDATE").await?),
        false => None,
    };
    let sql = text::delete(compiled, &[]);
    let answer = session.execute(&sql, key_cells(bound).collect()).await?;
    match read {
        Some(read) if read.rows.len() as u64 != answer.affected => {
            Err(Trouble::of(overtaken(compiled)).into())
        }
        Some(read) => Ok(matching::all(compiled, read.rows)),
        None => Ok(RowDone::rows(answer.affected)),
    }
}

async fn select(
    session: &mut Session,
    bound: &BoundWrite,
    columns: &[usize],
    lock: &str,
) -> Result<Answer, Trouble> {
    let sql = text::select(&bound.compiled, columns, lock);
    session.execute(&sql, key_cells(bound).collect()).await
}

/// The values of the shape's columns.
pub(crate) fn given(bound: &BoundWrite) -> &[Cell] {
    let width = bound.compiled.columns.len();
    bound.row.get(..width).unwrap_or(&bound.row)
}

/// The values by which a row is found.
pub(crate) fn key_cells(bound: &BoundWrite) -> impl Iterator<Item = Cell> {
    let places = bound.compiled.finds.iter().flatten();
    places.filter_map(|place| bound.row.get(*place).cloned())
}

/// The columns that are given back.
pub(crate) fn result_places(compiled: &Compiled) -> &[usize] {
    compiled
        .results
        .as_ref()
        .map_or(&[], |results| &results.places)
}
