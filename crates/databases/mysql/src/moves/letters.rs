//! Writes rows to the dead letters.

use std::collections::HashMap;

use mysql_async::Value as Cell;
use windrow_core::moves::{REJECTED, Rejected};
use windrow_core::{Fault, Value, record};
use windrow_database::quote::backtick::{push_idents, push_table};

use super::keys;
use super::keys::{Key, Runs, conditions};
use super::source::Source;
use crate::session::Session;
use crate::values::decode;

/// The most dead letters of one statement, if their bytes allow it.
const MAX_LETTERS: usize = 32;

/// The number of columns of a dead letter that are given values.
const GIVEN: usize = 7;

/// Writes rows to the dead letters. They are still in the source.
pub(super) async fn write(
    session: &mut Session,
    source: &Source,
    picked: &[Key],
    rejected: &[Rejected<'_>],
) -> Result<(), Fault> {
    let keys: Vec<&Key> = rejected.iter().filter_map(|r| picked.get(r.row)).collect();
    let mut rows = read(session, source, &keys).await?;
    let mut letters = Vec::with_capacity(rejected.len());
    for rejected in rejected {
        let found = picked.get(rejected.row).and_then(|key| rows.remove(key));
        let Some((key, row)) = found else {
            return Err(Fault::internal("a locked row cannot be read any more"));
        };
        letters.push(letter(source, rejected, &key, &row));
    }
    let most = session.server.packet / 2;
    for chunk in letters.chunks(MAX_LETTERS) {
        let bytes: usize = chunk.iter().flatten().map(size).sum();
        if chunk.len() == MAX_LETTERS && bytes <= most {
            insert(session, chunk.concat(), MAX_LETTERS).await?;
            continue;
        }
        for letter in chunk {
            insert(session, letter.clone(), 1).await?;
        }
    }
    Ok(())
}

fn letter(source: &Source, rejected: &Rejected<'_>, key: &str, row: &str) -> Vec<Cell> {
    let fault = rejected.fault;
    let text = |text: &str| Cell::Bytes(text.as_bytes().to_vec());
    vec![
        text(&source.name.to_string()),
        text(rejected.destination),
        text(key),
        text(row),
        text(fault.code.get(..16).unwrap_or(&fault.code)),
        text(&fault.message),
        fault.constraint().map_or(Cell::NULL, text),
    ]
}

async fn insert(session: &mut Session, cells: Vec<Cell>, letters: usize) -> Result<(), Fault> {
    let group = format!("({})", ["?"; GIVEN].join(", "));
    let sql = format!(
        "INSERT INTO {REJECTED} (source, destination, `key`, `row`, code, message, `constraint`) VALUES {}",
        vec![group; letters].join(", ")
    );
    session.execute(&sql, cells).await?;
    Ok(())
}

/// Reads keys and rows as JSON.
async fn read(
    session: &mut Session,
    source: &Source,
    keys: &[&Key],
) -> Result<HashMap<Key, (String, String)>, Fault> {
    let mut head = "SELECT ".to_owned();
    push_idents(&mut head, source.key.iter().map(|(name, _)| name));
    head.push_str(", ");
    push_idents(&mut head, source.all.iter().map(|(name, _)| name));
    head.push_str(" FROM ");
    push_table(&mut head, &source.name);
    head.push_str(" WHERE ");
    let mut rows = HashMap::new();
    for (condition, _) in conditions(&source.key, keys, Runs::Whole) {
        let sql = format!("{head}{condition}");
        let fetched = session.fetch(&sql, Vec::new(), usize::MAX).await?;
        for mut cells in fetched.rows {
            let mut columns = fetched.columns.iter();
            let rest = cells.split_off(source.key.len().min(cells.len()));
            let key = keys::read(&source.key, &cells)?;
            let values: Vec<Value> = source
                .key
                .iter()
                .zip(columns.by_ref())
                .zip(cells)
                .map(|(((_, kind), column), cell)| decode::value(column, Some(*kind), cell))
                .collect();
            let fields: Vec<Value> = source
                .all
                .iter()
                .zip(columns)
                .zip(rest)
                .map(|(((_, kind), column), cell)| decode::value(column, Some(*kind), cell))
                .collect();
            let object = record::object(source.all.iter().map(|(name, _)| name).zip(&fields));
            rows.insert(key, (record::array(&values), object));
        }
    }
    Ok(rows)
}

fn size(cell: &Cell) -> usize {
    match cell {
        Cell::Bytes(bytes) => bytes.len() + 16,
        _ => 16,
    }
}
