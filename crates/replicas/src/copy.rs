//! Copies all keys of the primary to the log of a new replica.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use windrow_core::moves::is_own;
use windrow_core::{Fault, KeyedTable, Value};

use crate::check::Source;
use crate::entry::Kind;
use crate::followed::Followed;
use crate::members::Copying;
use crate::replica::Replica;

/// The number of keys read at once.
const KEYS: usize = 5_000;

/// The most positions of the log by which the copy is ahead of the replica.
const AHEAD: u64 = 8;

/// The delay before a copy begins again.
const PAUSE: Duration = Duration::from_secs(5);

/// The batch number of keys that no client waits for.
pub(crate) const NOBODY: u64 = 0;

/// Copies all existing rows to a new replica, unless it has got them before or gets them from
/// another gateway.
pub(crate) async fn run(replica: Arc<Replica>, source: Source, stop: CancellationToken) {
    while replica.is_copying() {
        let mut turn = replica.copying.subscribe();
        let mut others = replica.copying.subscribe();
        let copied = tokio::select! {
            () = stop.cancelled() => return,
            // The sender belongs to the replica itself.
            _ = others.wait_for(|copying| *copying == Copying::Done) => return,
            copied = async {
                turn.wait_for(|copying| *copying == Copying::Here).await.ok();
                copy(&replica, &source).await
            } => copied,
        };
        match copied {
            Ok(rows) => tracing::info!(replica = %replica.name, rows, "all rows are copied"),
            Err(fault) => {
                tracing::warn!(replica = %replica.name, %fault, "copying begins again");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn copy(replica: &Replica, source: &Source) -> Result<u64, Fault> {
    // Earlier processes have logged nothing for this replica.
    source.inventory.settled().await?;
    let mut rows = 0;
    for name in source.inventory.tables().await? {
        let table = source.inventory.table(&name).await?;
        let Some(table) = table.filter(|_| !is_own(&name.table)) else {
            continue;
        };
        if table.key.is_empty() {
            tracing::warn!(table = %name, "replicas do not get rows of this table as long as it has no primary key");
            continue;
        }
        tracing::info!(replica = %replica.name, table = %name, "copying");
        rows += copy_table(replica, source, table).await?;
    }
    reach(replica, replica.log.own_end()).await;
    replica.copied()?;
    // Rows that were refused for now are tried again.
    replica.tickets.news.notify_one();
    Ok(rows)
}

async fn copy_table(replica: &Replica, source: &Source, table: KeyedTable) -> Result<u64, Fault> {
    let (followed, mut rows) = (Followed::new(table), 0);
    let mut after: Option<Box<[Value]>> = None;
    loop {
        let inventory = &source.inventory;
        let keys = inventory
            .keys(&followed.table, after.as_deref(), KEYS)
            .await?;
        let found = keys.len();
        after = keys.last().cloned();
        let keys: Vec<_> = keys.into_iter().map(|key| followed.key(key)).collect();
        if found > 0 {
            replica.append(NOBODY, Kind::Keys, &keys).await?;
        }
        rows += found as u64;
        reach(replica, replica.log.own_end().saturating_sub(AHEAD)).await;
        if found < KEYS {
            return Ok(rows);
        }
    }
}

/// Waits until the replica has everything before a position.
async fn reach(replica: &Replica, position: u64) {
    let mut reached = replica.reached.subscribe();
    // The sender belongs to the replica itself.
    reached.wait_for(|reached| *reached >= position).await.ok();
}
