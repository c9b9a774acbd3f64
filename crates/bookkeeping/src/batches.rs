//! Notes of batches in the source of a move to another database: the batches whose rows were
//! deleted there, and the claims of movers. A mover calls these functions on its own connection.

use windrow_core::bookkeeping::BATCHES;
use windrow_core::{Fault, Mover};

use crate::plain::quoted;

/// The most names in one statement.
const MAX_NAMES: usize = 500;

/// Notes a name, within the mover's transaction.
///
/// # Errors
/// The error of the database.
pub async fn note_batch(mover: &mut dyn Mover, name: &str) -> Result<(), Fault> {
    let sql = format!("INSERT INTO {BATCHES} (batch) VALUES ({})", quoted(name)?);
    mover.run(&sql).await.map(drop)
}

/// Returns those of the names that are noted.
///
/// # Errors
/// The error of the database.
pub async fn noted_batches(
    mover: &mut dyn Mover,
    names: &[Box<str>],
) -> Result<Vec<Box<str>>, Fault> {
    let mut noted = Vec::new();
    for names in names.chunks(MAX_NAMES) {
        let list = list(names)?;
        let sql = format!("SELECT batch FROM {BATCHES} WHERE batch IN ({list})");
        noted.extend(names_of(mover, &sql).await?);
    }
    Ok(noted)
}

/// Returns at most `most` noted names with this beginning and end, oldest first.
///
/// # Errors
/// The error of the database.
pub async fn list_batches(
    mover: &mut dyn Mover,
    beginning: &str,
    ending: &str,
    most: usize,
) -> Result<Vec<Box<str>>, Fault> {
    // Neither contains a wildcard of LIKE.
    quoted(beginning).and(quoted(ending))?;
    let sql = format!(
        "SELECT batch FROM {BATCHES} WHERE batch LIKE '{beginning}%{ending}' ORDER BY moved_at, batch LIMIT {most}"
    );
    names_of(mover, &sql).await
}

/// Deletes notes, within the mover's transaction if there is one.
///
/// # Errors
/// The error of the database.
pub async fn forget_batches(mover: &mut dyn Mover, names: &[Box<str>]) -> Result<(), Fault> {
    for names in names.chunks(MAX_NAMES) {
        let list = list(names)?;
        let sql = format!("DELETE FROM {BATCHES} WHERE batch IN ({list})");
        mover.run(&sql).await?;
    }
    Ok(())
}

fn list(names: &[Box<str>]) -> Result<String, Fault> {
    let names = names.iter().map(|name| quoted(name));
    Ok(names.collect::<Result<Vec<_>, _>>()?.join(", "))
}

async fn names_of(mover: &mut dyn Mover, sql: &str) -> Result<Vec<Box<str>>, Fault> {
    let answer = mover.run(sql).await?;
    let cells = answer.rows.iter().filter_map(|row| row.first()?.as_deref());
    let names = cells.filter_map(|cell| str::from_utf8(cell).ok());
    Ok(names.map(Box::from).collect())
}
