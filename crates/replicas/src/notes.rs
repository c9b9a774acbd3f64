//! Notes: tables in which rows may have been written whose keys were not known in advance.

use std::collections::BTreeMap;

use windrow_core::{Fault, TableName};
use windrow_spool::codec::Decoder;
use windrow_spool::{Origin, Position, SpoolFault};

use crate::entry::{self, Kind, LogEntry, Read};
use crate::replica::Replica;

/// The bytes of entries that are read at once.
pub(crate) const CHUNK: usize = 1 << 20;

/// Returns the tables of notes from a position on that their gateway has not closed, and the number
/// of entries left. `is_left`: true for an entry of a process that has ended, which is to be
/// applied.
pub(crate) async fn unclosed(
    replica: &Replica,
    from: u64,
    is_left: impl Fn(Origin, u64) -> bool,
) -> Result<Vec<TableName>, Fault> {
    let log = &replica.log;
    let end = log.log.end();
    let mut cursor = log.cursor(from)?;
    let (mut decoder, mut entries, mut keys) = (Decoder::new(), 0, 0);
    let mut notes: BTreeMap<(u64, u64), Vec<TableName>> = BTreeMap::new();
    while cursor.position() < end {
        let found = match cursor.next(CHUNK).await {
            Err(SpoolFault::Trimmed { first, .. }) if !log.is_alone() => {
                cursor = log.cursor(first.0)?;
                continue;
            }
            found => found?,
        };
        for entry in found {
            if entry.position >= end || !is_left(entry.origin, entry.position.0) {
                continue;
            }
            let read = entry::read(&mut decoder, &entry.payload);
            let read = read.map_err(|why| unreadable(entry.position, &why))?;
            let LogEntry::Rows(read) = read else { continue };
            let number = (entry.origin.gateway, read.ticket);
            entries += 1;
            keys += read.keys.len().max(1);
            match read.kind {
                Kind::Keys => {}
                Kind::Note => notes.entry(number).or_default().extend(tables(&read)),
                Kind::Closing => drop(notes.remove(&number)),
            }
        }
    }
    replica.behind(entries, keys);
    let mut tables: Vec<_> = notes.into_values().flatten().collect();
    tables.sort();
    tables.dedup();
    Ok(tables)
}

/// Returns the tables of an entry.
pub(crate) fn tables(read: &Read) -> Vec<TableName> {
    read.keys
        .iter()
        .map(|key| key.shape.table.clone())
        .collect()
}

/// Returns the fault of an invalid entry.
pub(crate) fn unreadable(position: Position, why: &str) -> Fault {
    Fault::internal(format!(
        "the log of the replica cannot be read at position {position}: {why}"
    ))
}
