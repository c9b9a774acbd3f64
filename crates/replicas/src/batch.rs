//! Logs the rows that a batch may change, before and after it.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, try_join_all};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use windrow_core::{Fault, FaultClass, Inventory, Report, Tally, Verdict, Write};

use crate::entry::Kind;
use crate::replica::Replica;
use crate::shared::Shared;
use crate::tickets::BatchEnd;

/// The delay between attempts to reach a primary that is away.
const PAUSE: Duration = Duration::from_millis(200);

/// The rows that a batch may change.
#[derive(Default)]
pub(crate) struct Rows {
    /// The keys of the rows.
    pub(crate) keys: Vec<Write>,
    /// The tables with rows whose keys are known only after the batch, each once.
    notes: Vec<Write>,
}

impl Rows {
    pub(crate) fn note(&mut self, note: Write) {
        let mut notes = self.notes.iter();
        if !notes.any(|known| known.shape.table == note.shape.table) {
            self.notes.push(note);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.notes.is_empty()
    }
}

/// Returns the report on units that are not executed because they cannot be logged.
pub(crate) fn unlogged(units: usize, fault: Fault) -> Report {
    Report {
        verdicts: vec![Verdict::Final(Err(fault.into())); units],
        tally: Tally::default(),
        usable: true,
    }
}

impl Shared {
    /// Logs durably, for each replica, the rows that may be written. Returns the number of the
    /// batch.
    pub(crate) async fn begin(&self, rows: &Rows) -> Result<u64, Fault> {
        let ticket = self.ticket();
        let appends = self.replicas.iter().map(|replica| async move {
            replica.tickets.begin(ticket);
            for (kind, keys) in [(Kind::Note, &rows.notes), (Kind::Keys, &rows.keys)] {
                if !keys.is_empty() {
                    let entries = replica.append(ticket, kind, keys).await?;
                    replica.tickets.appended(ticket, entries);
                }
            }
            Ok::<(), Fault>(())
        });
        let begun = try_join_all(appends).await.map(|_| ticket);
        if begun.is_err() {
            for replica in &self.replicas {
                drop(replica.tickets.end(ticket, BatchEnd::KeysKnown));
            }
        }
        begun
    }

    /// Notes that the batch has ended, so that its keys may be applied. Waits for the requested
    /// number of replicas. `keys`: those that its notes have promised; `None` if they are not
    /// known.
    pub(crate) async fn end(
        &self,
        ticket: u64,
        rows: &Rows,
        keys: Option<Vec<Write>>,
        report: &Report,
    ) {
        let is_done = |v: &Verdict| matches!(v, Verdict::Final(Ok(_)));
        let done = report.verdicts.iter().any(is_done);
        let unknown = |v: &Verdict| matches!(v, Verdict::Final(Err(failed)) if failed.fault.class == FaultClass::Unknown);
        // The server may still be about to commit a write whose client no longer waits.
        let uncertain = !report.usable || report.verdicts.iter().any(unknown);
        let mut waits: FuturesUnordered<BoxFuture<'static, ()>> = FuturesUnordered::new();
        let mut counted = 0;
        for replica in &self.replicas {
            let how = close(replica, ticket, rows, keys.as_deref()).await;
            let own = Arc::clone(replica);
            let wait: BoxFuture<'static, ()> = match uncertain {
                false => {
                    let applied = replica.tickets.end(ticket, how);
                    Box::pin(async move { drop(applied.await) })
                }
                true => {
                    let inventory = Arc::clone(&self.source.inventory);
                    let ended = tokio::spawn(async move {
                        settled(&*inventory).await;
                        drop(own.tickets.end(ticket, how).await);
                    });
                    Box::pin(async move { drop(ended.await) })
                }
            };
            if !replica.is_copying() {
                counted += 1;
                waits.push(wait);
            }
        }
        if !done {
            return;
        }
        for left in (0..self.wanted(counted)).rev() {
            tokio::select! {
                _ = waits.next() => {}
                () = self.ending.cancelled() => {
                    tracing::info!(replicas = left + 1, "the end is not held up: rows are committed at the primary that not all replicas have; they get them after the next start");
                    return;
                }
            }
        }
    }
}

/// Logs durably which rows were written in the tables of the notes.
async fn close(replica: &Replica, ticket: u64, rows: &Rows, keys: Option<&[Write]>) -> BatchEnd {
    if rows.notes.is_empty() {
        return BatchEnd::KeysKnown;
    }
    let Some(keys) = keys else {
        return BatchEnd::KeysUnknown;
    };
    match replica.append(ticket, Kind::Closing, keys).await {
        Ok(entries) => {
            replica.tickets.appended(ticket, entries);
            BatchEnd::KeysKnown
        }
        Err(fault) => {
            tracing::error!(replica = %replica.name, %fault, "keys of rows that were written cannot be noted; their tables are compared");
            BatchEnd::KeysUnknown
        }
    }
}

/// Waits until all transactions under way at the primary have ended.
async fn settled(inventory: &dyn Inventory) {
    while inventory.settled().await.is_err() {
        tokio::time::sleep(PAUSE).await;
    }
}
