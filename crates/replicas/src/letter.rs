//! Dead letters of rows that a replica refuses.

use std::sync::atomic::Ordering;

use windrow_bookkeeping::DeadLetter;
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
    let letter = DeadLetter {
        key: record::array(key.row().iter()).into(),
        entry: Some(encode_unit(std::slice::from_ref(refused)).into()),
        ..DeadLetter::of(source, refused, fault)
    };
    match write(connection, &[letter.write()]).await?.first() {
        Some(WriteResult::Again(fault)) => Err(fault.clone()),
        Some(WriteResult::Refused(fault)) => {
            tracing::error!(replica = %name, key = %letter.key, %fault, "the refused row cannot be put aside either");
            Ok(())
        }
        _ => Ok(()),
    }
}
