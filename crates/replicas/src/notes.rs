//! Notes: tables of which rows may have been written whose keys were not known before.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use windrow_core::{Fault, TableName};
use windrow_spool::Position;
use windrow_spool::codec::Decoder;

use crate::entry::{self, Kind, Read};
use crate::replica::Replica;

/// Bytes of entries that are read at once.
pub(crate) const CHUNK: usize = 1 << 20;

/// The tables of notes that an earlier process did not close. Counts what is in the log, too.
pub(crate) async fn unclosed(replica: &Replica, from: Position) -> Result<Vec<TableName>, Fault> {
    let end = replica.log.end();
    let mut cursor = replica.log.cursor(from)?;
    let (mut decoder, mut rows) = (Decoder::new(), 0);
    let mut notes: BTreeMap<(u64, u64), Vec<TableName>> = BTreeMap::new();
    while cursor.position() < end {
        for entry in cursor.next(CHUNK).await? {
            if entry.origin.gateway == replica.gateway || entry.position >= end {
                continue;
            }
            let read = entry::read(&mut decoder, &entry.payload);
            let read = read.map_err(|why| unreadable(entry.position, &why))?;
            let number = (entry.origin.gateway, read.ticket);
            rows += i64::try_from(read.keys.len()).unwrap_or(0);
            match read.kind {
                Kind::Keys => {}
                Kind::Note => notes.entry(number).or_default().extend(tables(&read)),
                Kind::Closing => drop(notes.remove(&number)),
            }
        }
    }
    replica.rows.fetch_add(rows, Ordering::Relaxed);
    let mut tables: Vec<_> = notes.into_values().flatten().collect();
    tables.sort();
    tables.dedup();
    Ok(tables)
}

/// The tables that an entry is about.
pub(crate) fn tables(read: &Read) -> Vec<TableName> {
    read.keys
        .iter()
        .map(|key| key.shape.table.clone())
        .collect()
}

/// An entry that is none.
pub(crate) fn unreadable(position: Position, why: &str) -> Fault {
    Fault::internal(format!(
        "the log of the replica cannot be read at position {position}: {why}"
    ))
}
