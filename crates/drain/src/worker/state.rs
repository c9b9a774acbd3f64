//! What a worker knows.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windrow_core::{Backoff, Bookkeeping, Database, Fault, Retry, bookkeeping};
use windrow_spool::SpoolId;

use crate::flight::{Bounds, Wanted};
use crate::options::Options;
use crate::partition::Partition;
use crate::reader::Reader;
use crate::sharing::Sharing;
use crate::size::Size;

/// The first delay between attempts, and the longest where the next may succeed at any moment.
const FIRST_DELAY: Duration = Duration::from_millis(20);
const LONGEST_DELAY: Duration = Duration::from_secs(1);

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
    /// The delays between attempts that failed in a row for no fault of the entries.
    pub(super) backoff: Backoff,
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
    /// A new connection may do better, after a delay.
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
            backoff: Backoff::new(FIRST_DELAY, LONGEST_DELAY).first_at_once(),
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

    /// Says that nothing can be applied at this moment, and returns what follows: another attempt.
    pub(super) fn trouble(&mut self, fault: &Fault) -> Ended {
        self.failing = None;
        self.partition.waits(fault);
        Ended::Again(self.retry_delay(fault))
    }

    /// Counts a failure, and returns the delay before the next attempt.
    pub(super) fn retry_delay(&mut self, fault: &Fault) -> Duration {
        let long = self.options.long_pause;
        match fault.retry() {
            // A read of which nothing is known is not hurried either: the server is in trouble.
            Retry::Never | Retry::OutcomeUnknown => long,
            Retry::Smaller | Retry::AfterRepair => self.backoff.delay_within(long),
            Retry::Soon | Retry::AfterLock | Retry::WhenBack => {
                self.backoff.delay_within(LONGEST_DELAY.min(long))
            }
        }
    }

    /// True once attempts have failed so often that it is worth reporting, and that fewer entries
    /// at once may succeed.
    pub(super) fn has_failed_often(&self) -> bool {
        self.backoff.failures() > 2
    }

    /// The connection is given up; another one tells how far the database is.
    pub(super) fn reconnect(&mut self) -> Ended {
        let longest = LONGEST_DELAY.min(self.options.long_pause);
        Ended::Again(self.backoff.delay_within(longest))
    }

    /// Waits, but no longer than until the drain is to stop.
    pub(super) async fn pause(&mut self, delay: Duration) {
        if delay.is_zero() {
            return;
        }
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = tokio::time::sleep(delay) => {}
        }
    }
}
