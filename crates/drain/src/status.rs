//! The state of a drain at one moment, for operators.

use std::sync::Arc;
use std::time::Duration;

use windrow_spool::SpoolId;

/// The state of a drain at one moment. Its fields are read one after another, so a batch may land
/// between two of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainStatus {
    /// The spool's name.
    pub spool: SpoolId,
    /// The partitions of the spool, in their order.
    pub partitions: Vec<PartitionStatus>,
}

/// One partition at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionStatus {
    /// The partition's number.
    pub partition: u32,
    /// The position of the first entry that is not applied; `None` until the database was asked.
    pub applied: Option<u64>,
    /// The position after the last entry.
    pub end: u64,
    /// The number of entries that are not applied; until the database was asked, of those in the
    /// spool.
    pub entries: u64,
    /// The bytes of the spool's files that count against its limit. Files are removed as a whole,
    /// some time after they were applied.
    pub bytes: u64,
    /// The age of the oldest entry that is not applied, by the clock of the gateway that wrote it;
    /// `None` without entries.
    pub age: Option<Duration>,
    /// The current activity.
    pub state: DrainState,
    /// Entries applied since the start, including those that became dead letters.
    pub applied_entries: u64,
    /// Entries that the database has refused since the start, each of which is a dead letter.
    pub rejected_entries: u64,
}

/// The activity of a partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum DrainState {
    /// The worker has not begun.
    #[default]
    Starting,
    /// Entries are being applied.
    Applying,
    /// The database has all entries.
    Level,
    /// Nothing can be applied at this moment, and it is tried again and again.
    Waiting {
        /// The reason.
        why: Arc<str>,
        /// The time for which it has waited.
        since: Duration,
    },
    /// Nothing will be applied before the next start.
    Stopped {
        /// The reason.
        why: Arc<str>,
    },
}

impl DrainState {
    /// Returns the word that operators read.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Applying => "applying",
            Self::Level => "level",
            Self::Waiting { .. } => "waiting",
            Self::Stopped { .. } => "stopped",
        }
    }

    /// Returns the reason why nothing can be applied.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Waiting { why, .. } | Self::Stopped { why } => Some(why),
            _ => None,
        }
    }
}
