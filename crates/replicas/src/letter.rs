//! Dead letters of rows that a replica refuses.

use std::sync::atomic::Ordering;

use windrow_bookkeeping::{DeadLetter, is_of_content};
use windrow_core::{BackgroundConnection, Fault, Write, record};
use windrow_spool::codec::encode_unit;

use crate::held::HeldRow;
use crate::replica::Replica;
use crate::rows::{WriteResult, write};

/// Writes the dead letter of a refused row.
pub(crate) async fn reject(
    replica: &Replica,
    connection: &mut BackgroundConnection,
    held: &HeldRow,
    refused: &Write,
) -> Result<(), Fault> {
    let HeldRow {
        key,
        position,
        fault,
        ..
    } = held;
    let name = &replica.name;
    replica.meters.rejected.inc();
    replica.rejected.fetch_add(1, Ordering::Relaxed);
    tracing::warn!(replica = %name, table = %refused.shape.table, %fault, "the replica does not take a row that the primary has");
    if replica.target.database.bookkeeping().is_none() {
        return Ok(());
    }
    let source = format!("replica {name} position {position}");
    let mut letter = DeadLetter {
        key: record::array(key.row().iter()).into(),
        entry: Some(encode_unit(std::slice::from_ref(refused)).into()),
        ..DeadLetter::of(source, refused, fault)
    };
    loop {
        let result = write(connection, &[letter.write()])
            .await?
            .into_iter()
            .next();
        let fault = match result {
            Some(WriteResult::Again(fault)) => return Err(fault),
            Some(WriteResult::Refused(fault)) => fault,
            _ => return Ok(()),
        };
        let shorter = match is_of_content(&fault) {
            true => letter.shorter().or_else(|| without_entry(&letter)),
            false => None,
        };
        let Some(shorter) = shorter else {
            tracing::error!(replica = %name, key = %letter.key, %fault, "the refused row cannot be put aside either");
            return Ok(());
        };
        letter = shorter;
    }
}

/// Returns a letter without its entry, which the table does not take. The primary has the row.
fn without_entry(letter: &DeadLetter) -> Option<DeadLetter> {
    letter.entry.as_ref()?;
    Some(DeadLetter {
        entry: None,
        ..letter.clone()
    })
}
