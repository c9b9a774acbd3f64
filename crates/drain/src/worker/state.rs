//! What a worker knows.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windrow_core::{Bookkeeping, Database, Fault, bookkeeping};
use windrow_spool::SpoolId;

use crate::flight::{Bounds, Wanted};
use crate::judge::is_passing;
use crate::options::Options;
use crate::pace::{Attempts, Size};
use crate::partition::Partition;
use crate::reader::Reader;
use crate::sharing::Sharing;

/// Applies one partition.
pub(crate) struct Worker {
    pub(super) spool: SpoolId,
    pub(super) partition: Arc<Partition>,
    /// Its row in the database.
    pub(super) row: bookkeeping::Partition,
    pub(super) database: Arc<dyn Database>,
    pub(super) bookkeeping: Arc<dyn Bookkeeping>,
    pub(super) options: Options,
    pub(super) stop: CancellationToken,
    pub(super) sharing: Sharing,
    pub(super) size: Size,
    pub(super) attempts: Attempts,
    pub(super) wanted: Wanted,
    /// The position behind an entry that fails by itself again and again, and since when.
    pub(super) failing: Option<(u64, Instant)>,
    /// What the database said last of how far it is; `None` until it was asked.
    pub(super) found: Option<Found>,
    /// When a dead letter was last told of.
    pub(super) told: Option<Instant>,
}

/// How far the database is, and what comes next.
pub(super) struct Found {
    /// The position in its row; `None` where there is no row.
    pub(super) from: Option<u64>,
    pub(super) reader: Reader,
}

impl Found {
    /// The first position that is not applied.
    pub(super) fn position(&self) -> u64 {
        self.from.unwrap_or_default()
    }
}

/// Why nothing more is applied over a connection.
#[derive(Debug)]
pub(super) enum Ended {
    /// The drain is to stop.
    Stopping,
    /// Nothing can be applied before the next start.
    Never(Box<str>),
    /// A new connection may do better, after a rest.
    Again(Duration),
}

impl Worker {
    pub(crate) fn new(
        spool: SpoolId,
        partition: Arc<Partition>,
        (database, bookkeeping): (Arc<dyn Database>, Arc<dyn Bookkeeping>),
        options: Options,
        stop: CancellationToken,
    ) -> Self {
        Self {
            row: bookkeeping::Partition {
                spool: spool.to_string().into(),
                number: partition.log.partition(),
            },
            sharing: Sharing::new(Arc::clone(&database)),
            size: Size::new(options.first_entries, database.profile().batch_rows),
            attempts: Attempts::default(),
            wanted: Wanted::Many,
            failing: None,
            found: None,
            told: None,
            spool,
            partition,
            database,
            bookkeeping,
            options,
            stop,
        }
    }

    /// What the next unit stays within.
    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            entries: self.size.entries(),
            // Two rows move the progress.
            rows: self.database.profile().batch_rows.saturating_sub(2),
            bytes: self.options.unit_bytes,
        }
    }

    /// Nothing can be applied at this moment: says so, and gives the rest before the next attempt.
    pub(super) fn trouble(&mut self, fault: &Fault) -> Ended {
        self.failing = None;
        self.partition.waits(fault);
        Ended::Again(self.rest(fault))
    }

    /// The rest behind an attempt that went wrong.
    pub(super) fn rest(&mut self, fault: &Fault) -> Duration {
        let long = self.options.long_pause;
        match is_passing(fault) {
            true => self.attempts.rest(fault, long),
            false => long,
        }
    }

    /// The connection is given up; another one tells how far the database is.
    pub(super) fn reconnect(&mut self, fault: &Fault) -> Ended {
        Ended::Again(self.attempts.rest(fault, self.options.long_pause))
    }

    /// Rests, but no longer than until it is told to stop.
    pub(super) async fn pause(&mut self, rest: Duration) {
        if rest.is_zero() {
            return;
        }
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(rest) => {}
        }
    }
}
