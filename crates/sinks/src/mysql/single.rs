//! One write by its own statement: what its client would have sent.

use mysql_async::Value as Cell;
use windrow_core::{Done, Fault, FaultClass};

use super::batch::Placed;
use super::compiled::{Compiled, Form};
use super::fault::{DUPLICATE, OVERFLOW, Refusal, Trouble};
use super::line::{Answer, Line};
use super::matching;
use super::table::same;
use super::text::{self, Met};

/// How often an insert is tried that meets a row which is gone when it is looked at.
const TRIES: usize = 3;

/// Bytes of a packet that are not values.
const FRAME: usize = 4096;

/// Whether a write needs a transaction around its statements: there are several of them.
pub(super) fn needs_transaction(compiled: &Compiled, line: &Line) -> bool {
    let back = compiled.results.is_some();
    match compiled.form {
        Form::Update => back,
        Form::Insert | Form::Ignore | Form::Upsert | Form::Delete => back && !line.server.returning,
        Form::Get => false,
    }
}

/// Executes a write. What fails leaves nothing behind but, in a transaction, locks.
///
/// # Errors
/// The write's own failure, or that of the connection.
pub(super) async fn execute(line: &mut Line, placed: &Placed) -> Result<Done, Trouble> {
    let compiled = &*placed.compiled;
    if placed.nothing {
        return Ok(matching::empty(compiled));
    }
    check_size(line, placed)?;
    match compiled.form {
        Form::Insert | Form::Upsert => insert(line, placed, Met::of(compiled.form)).await,
        Form::Ignore => ignore(line, placed).await,
        Form::Update => update(line, placed).await,
        Form::Delete => delete(line, placed).await,
        Form::Get => {
            let rows = select(line, placed, result_places(compiled), "").await?;
            Ok(matching::all(compiled, rows.rows))
        }
    }
}

/// Bytes that a row takes in a packet.
pub(super) fn size(row: &[Cell]) -> usize {
    let cell = |cell: &Cell| match cell {
        Cell::Bytes(bytes) => bytes.len() + 12,
        _ => 12,
    };
    row.iter().map(cell).sum()
}

/// The client would be cut off without a word.
fn check_size(line: &Line, placed: &Placed) -> Result<(), Trouble> {
    let (size, most) = (size(&placed.row), line.server.packet);
    if size + FRAME <= most {
        return Ok(());
    }
    let message = format!(
        "the row for table {} takes {size} bytes; the server takes {most} (max_allowed_packet)",
        placed.compiled.table.name
    );
    Err(Trouble::of(Fault::too_large(message)))
}

async fn insert(line: &mut Line, placed: &Placed, met: Met) -> Result<Done, Trouble> {
    let compiled = &*placed.compiled;
    if compiled.results.is_some() && !line.server.returning {
        return insert_and_read(line, placed, met).await;
    }
    let sql = text::insert(compiled, met, 1, result_places(compiled));
    let answer = line.execute(&sql, given(placed).to_vec()).await?;
    Ok(written(compiled, answer))
}

/// What an insert that succeeded is told: one row, whether it was added or met one that it changed.
fn written(compiled: &Compiled, answer: Answer) -> Done {
    match compiled.results {
        Some(_) => matching::all(compiled, answer.rows),
        None => Done::rows(1),
    }
}

/// For servers that give no rows back: the row is found by the key that it was given, or by its
/// number.
async fn insert_and_read(line: &mut Line, placed: &Placed, met: Met) -> Result<Done, Trouble> {
    let compiled = &*placed.compiled;
    let sql = text::insert(compiled, met, 1, &[]);
    let answer = line.execute(&sql, given(placed).to_vec()).await?;
    let facts = &compiled.table.facts;
    let found = facts.uniques.iter().find_map(|unique| {
        let cell = |place: &usize| match compiled.columns.iter().position(|c| c == place) {
            Some(at) => placed
                .row
                .get(at)
                .filter(|cell| **cell != Cell::NULL)
                .cloned(),
            None => {
                let auto = facts.columns.get(*place).is_some_and(|c| c.auto);
                answer.generated.filter(|_| auto).map(Cell::UInt)
            }
        };
        let cells: Option<Vec<Cell>> = unique.columns.iter().map(cell).collect();
        Some((unique.columns.clone(), cells?))
    });
    let Some((key, cells)) = found else {
        let message = "this server gives no rows back, and the new row cannot be told from others by what it was given";
        return Err(Trouble::of(Fault::new(
            FaultClass::Unsupported,
            "0A000",
            message,
        )));
    };
    let by_key = compiled.by_other_key(key);
    let sql = text::select(&by_key, result_places(compiled), "");
    let rows = line.execute(&sql, cells).await?.rows;
    Ok(matching::all(compiled, rows))
}

/// Only the key's own conflict is ignored: any other failure is told.
async fn ignore(line: &mut Line, placed: &Placed) -> Result<Done, Trouble> {
    let mut tries = TRIES;
    loop {
        tries -= 1;
        match insert(line, placed, Met::Fails).await {
            Err(Trouble::Refused(refusal)) if refusal.number == DUPLICATE => {
                if is_own_key(&placed.compiled, &refusal)
                    || is_there(line, placed, " LOCK IN SHARE MODE").await?
                {
                    return Ok(matching::empty(&placed.compiled));
                }
                // A row that was there a moment ago, or another key's conflict.
                let other = is_named(&placed.compiled, &refusal);
                if other || tries == 0 || placed.compiled.finds.is_none() {
                    return Err(Trouble::Refused(refusal));
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
pub(super) fn met_another(compiled: &Compiled, refusal: &Refusal) -> bool {
    compiled.form == Form::Upsert && refusal.number == OVERFLOW
}

/// An upsert that has met a row by another key. Whether there is one with its own key decides what
/// it does; needs a transaction.
///
/// # Errors
/// As [`execute`].
pub(super) async fn look_up(line: &mut Line, placed: &Placed) -> Result<Done, Trouble> {
    let mut tries = TRIES;
    loop {
        tries -= 1;
        if is_there(line, placed, " FOR UPDATE").await? {
            return update(line, placed).await;
        }
        match insert(line, placed, Met::Fails).await {
            Err(Trouble::Refused(refusal)) if refusal.number == DUPLICATE && tries > 0 => {
                if !is_there(line, placed, " FOR UPDATE").await? {
                    return Err(Trouble::Refused(refusal));
                }
            }
            other => return other,
        }
    }
}

async fn is_there(line: &mut Line, placed: &Placed, lock: &str) -> Result<bool, Trouble> {
    if placed.compiled.finds.is_none() {
        return Ok(false);
    }
    Ok(!select(line, placed, &[], lock).await?.rows.is_empty())
}

async fn update(line: &mut Line, placed: &Placed) -> Result<Done, Trouble> {
    let compiled = &*placed.compiled;
    // An upsert that has found its row leaves the key as it is.
    let upserts = compiled.form == Form::Upsert;
    let changed = |place: &usize| !(upserts && compiled.key.contains(place));
    let columns: Vec<usize> = compiled.columns.iter().copied().filter(changed).collect();
    let mut rows = 1;
    if !columns.is_empty() {
        let values = compiled.columns.iter().zip(placed.row.iter());
        let values = values
            .filter(|(place, _)| changed(place))
            .map(|(_, cell)| cell.clone());
        let cells = values.chain(key_cells(placed)).collect();
        let sql = text::update(compiled, &columns);
        rows = line.execute(&sql, cells).await?.affected;
    }
    if compiled.results.is_none() {
        return Ok(Done::rows(rows));
    }
    if rows == 0 {
        return Ok(matching::empty(compiled));
    }
    let sql = text::select(compiled, result_places(compiled), "");
    let cells = if upserts {
        key_cells(placed).collect()
    } else {
        new_key(placed)
    };
    let found = line.execute(&sql, cells).await?.rows;
    Ok(matching::all(compiled, found))
}

/// The key's values once an update has been made that may have changed them.
fn new_key(placed: &Placed) -> Vec<Cell> {
    let compiled = &*placed.compiled;
    let keys = compiled.key.iter().zip(key_cells(placed));
    let new = |(place, old): (&usize, Cell)| {
        let at = compiled.columns.iter().position(|column| column == place);
        at.and_then(|at| placed.row.get(at)).cloned().unwrap_or(old)
    };
    keys.map(new).collect()
}

async fn delete(line: &mut Line, placed: &Placed) -> Result<Done, Trouble> {
    let compiled = &*placed.compiled;
    let back = compiled.results.is_some();
    if back && line.server.returning {
        let sql = text::delete(compiled, result_places(compiled));
        let answer = line.execute(&sql, key_cells(placed).collect()).await?;
        return Ok(matching::all(compiled, answer.rows));
    }
    let read = match back {
        true => Some(select(line, placed, result_places(compiled), " FOR UPDATE").await?),
        false => None,
    };
    let sql = text::delete(compiled, &[]);
    let answer = line.execute(&sql, key_cells(placed).collect()).await?;
    Ok(match read {
        Some(read) => matching::all(compiled, read.rows),
        None => Done::rows(answer.affected),
    })
}

async fn select(
    line: &mut Line,
    placed: &Placed,
    columns: &[usize],
    lock: &str,
) -> Result<Answer, Trouble> {
    let sql = text::select(&placed.compiled, columns, lock);
    line.execute(&sql, key_cells(placed).collect()).await
}

/// The values of the shape's columns.
pub(super) fn given(placed: &Placed) -> &[Cell] {
    let width = placed.compiled.columns.len();
    placed.row.get(..width).unwrap_or(&placed.row)
}

/// The values by which a row is found.
pub(super) fn key_cells(placed: &Placed) -> impl Iterator<Item = Cell> {
    let places = placed.compiled.finds.iter().flatten();
    places.filter_map(|place| placed.row.get(*place).cloned())
}

/// The columns that are given back.
pub(super) fn result_places(compiled: &Compiled) -> &[usize] {
    compiled
        .results
        .as_ref()
        .map_or(&[], |results| &results.places)
}
