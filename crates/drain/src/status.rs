//! The state of a drain at one moment, for operators.

use std::sync::Arc;
use std::time::Duration;

use windrow_spool::SpoolId;

/// A spool on its way into a database, at one moment. Its parts are read one after another: they
/// may be a batch apart from each other.
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
    /// The position of the first entry that is not applied; `None` until the database was asked
    /// for it.
    pub applied: Option<u64>,
    /// The position behind the last entry.
    pub end: u64,
    /// Entries that are not applied. Until the database was asked: those that the spool holds.
    pub entries: u64,
    /// Bytes of the spool's files that count against its limit. Files go as a whole, and some time
    /// after they were applied.
    pub bytes: u64,
    /// The age of the oldest entry that is not applied, by the clock of the gateway that wrote it;
    /// `None` without entries.
    pub age: Option<Duration>,
    /// The current activity.
    pub state: DrainState,
    /// Entries that were applied since the start, with those that became dead letters.
    pub applied_entries: u64,
    /// Entries that the database refused since the start: each is a dead letter.
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
    /// The database has all that is there.
    Level,
    /// Nothing can be applied at this moment; it is tried again and again.
    Waiting {
        /// Why.
        why: Arc<str>,
        /// For how long.
        since: Duration,
    },
    /// Nothing is applied any more before the next start.
    Stopped {
        /// Why.
        why: Arc<str>,
    },
}

impl DrainState {
    /// The word that operators read.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Applying => "applying",
            Self::Level => "level",
            Self::Waiting { .. } => "waiting",
            Self::Stopped { .. } => "stopped",
        }
    }

    /// Why nothing can be applied.
    pub fn why(&self) -> Option<&str> {
        match self {
            Self::Waiting { why, .. } | Self::Stopped { why } => Some(why),
            _ => None,
        }
    }
}
