//! Recovery of a gateway that others considered lost while it was suspended: they may have applied
//! its entries before its batches had ended. So it compares all tables.

use std::sync::Arc;

use windrow_core::moves::is_own;
use windrow_core::{Fault, TableName};

use crate::check::Source;
use crate::entry::Kind;
use crate::followed::Followed;
use crate::replica::Replica;
use crate::tickets::{ALL, BatchEnd};

/// The tables that are still to be compared.
#[derive(Debug, Default)]
pub(crate) struct Recovery(Option<RemainingTables>);

#[derive(Debug)]
struct RemainingTables {
    /// The batches that the comparison covers, all of which have ended.
    tickets: Vec<u64>,
    left: Vec<TableName>,
}

impl Recovery {
    /// Returns the next table to be compared; `None` if none is left.
    pub(crate) async fn next(
        &mut self,
        replica: &Arc<Replica>,
        source: &Source,
    ) -> Result<Option<TableName>, Fault> {
        if self.0.is_none() {
            let tickets = replica.tickets.numbers();
            if tickets.is_empty() {
                return Ok(None);
            }
            tracing::warn!(replica = %replica.name, "other gateways took this one for lost: all tables are compared");
            // If this process ends before, another one finds the note.
            let left = note(replica, source).await?;
            let tickets = ended(replica).await;
            self.0 = Some(RemainingTables { tickets, left });
        }
        let next = self.0.as_ref().and_then(|all| all.left.last().cloned());
        if next.is_none()
            && let Some(all) = self.0.take()
        {
            replica.tickets.release(&all.tickets);
            drop(replica.tickets.end(ALL, BatchEnd::KeysKnown));
        }
        Ok(next)
    }

    /// Notes that the table is compared.
    pub(crate) fn compared(&mut self) {
        if let Some(all) = &mut self.0 {
            all.left.pop();
        }
    }
}

/// Logs a note about all tables, and returns them.
async fn note(replica: &Replica, source: &Source) -> Result<Vec<TableName>, Fault> {
    let (mut names, mut notes) = (Vec::new(), Vec::new());
    for name in source.inventory.tables().await? {
        let table = source.inventory.table(&name).await?;
        let table = table.filter(|table| !is_own(&name.table) && !table.key.is_empty());
        if let Some(table) = table {
            notes.push(Followed::new(table).note());
            names.push(name);
        }
    }
    replica.tickets.begin(ALL);
    if !notes.is_empty() {
        let entries = replica.append(ALL, Kind::Note, &notes).await?;
        replica.tickets.appended(ALL, entries);
    }
    // Parents are compared first.
    names.reverse();
    Ok(names)
}

/// Waits until all batches that are not applied have ended, and returns them.
async fn ended(replica: &Replica) -> Vec<u64> {
    let tickets = replica.tickets.numbers();
    while !replica.tickets.have_ended(&tickets) {
        replica.tickets.news.notified().await;
    }
    tickets
}
