//! The state of a worker.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use windrow_bookkeeping::ProgressRow;
use windrow_core::{BackgroundConnection, BackgroundRetry, Bookkeeping, Database, Fault};
use windrow_spool::SpoolId;

use crate::flight::{Bounds, UnitPlan};
use crate::options::Options;
use crate::partition::Partition;
use crate::reader::Reader;
use crate::sharing::Sharing;
use crate::size::Size;

/// The longest delay between attempts if the next one may succeed at any moment.
const SOON: Duration = Duration::from_secs(1);

/// Applies one partition.
pub(crate) struct Worker {
    pub(super) spool: SpoolId,
    pub(super) partition: Arc<Partition>,
    /// The row of this partition in the database.
    pub(super) row: ProgressRow,
    pub(super) database: Arc<dyn Database>,
    pub(super) bookkeeping: Arc<dyn Bookkeeping>,
    pub(super) options: Options,
    pub(super) stop: CancellationToken,
    pub(super) sharing: Sharing,
    pub(super) size: Size,
    /// The delays between consecutive attempts that failed through no fault of the entries.
    pub(super) retry: BackgroundRetry,
    pub(super) connection: BackgroundConnection,
    pub(super) wanted: UnitPlan,
    /// The position after an entry that fails by itself again and again, and since when.
    pub(super) failing: Option<(u64, Instant)>,
    /// The position that the database last reported; `None` before it was asked.
    pub(super) found: Option<ReadPoint>,
    /// The time at which a dead letter was last logged.
    pub(super) reported: Option<Instant>,
}

/// The position of the database, and the entries after it.
pub(super) struct ReadPoint {
    /// The position in its row; `None` if there is no row.
    pub(super) from: Option<u64>,
    pub(super) reader: Reader,
}

impl ReadPoint {
    /// Returns the first position that is not applied.
    pub(super) fn position(&self) -> u64 {
        self.from.unwrap_or_default()
    }
}

/// The reason why nothing more is applied over a connection.
#[derive(Debug)]
pub(super) enum StepEnd {
    /// The drain is to stop.
    Stopping,
    /// Nothing will be applied before the next start.
    Never(Box<str>),
    /// A new connection may succeed, after a delay.
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
            row: ProgressRow {
                spool: spool.to_string().into(),
                number: partition.log.partition(),
            },
            sharing: Sharing::new(Arc::clone(&database)),
            size: Size::new(options.first_entries, database.profile().batch_rows),
            retry: BackgroundRetry::new(SOON, options.long_pause),
            connection: BackgroundConnection::new(Arc::clone(&database)),
            wanted: UnitPlan::Many,
            failing: None,
            found: None,
            reported: None,
            spool,
            partition,
            database,
            bookkeeping,
            options,
            stop,
        }
    }

    /// Returns the limits of the next unit.
    pub(super) fn bounds(&self) -> Bounds {
        Bounds {
            entries: self.size.entries(),
            // Two writes move the progress.
            rows: self.database.profile().batch_rows.saturating_sub(2),
            bytes: self.options.unit_bytes,
        }
    }

    /// Notes that nothing can be applied at this moment, and returns the next step: another
    /// attempt.
    pub(super) fn trouble(&mut self, fault: &Fault) -> StepEnd {
        self.failing = None;
        self.partition.waits(fault);
        StepEnd::Again(self.retry.delay(fault))
    }

    /// Waits, at most until the drain is to stop.
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
