//! Limits of a spool, and its access to the system.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::entry::SpoolId;
use crate::fault::SpoolFault;
use crate::format::{ENTRY_HEADER, GROUP_HEADER};

/// The source of the time: the system's clock, or a test's.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// Returns a clock. It is read for each sync.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Returns the time now.
    pub fn now(&self) -> SystemTime {
        (self.0)()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Limits of a spool. The defaults need no change.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of logs, each with its own order. Fixed when the spool is created.
    pub partitions: u32,
    /// The most bytes of files with entries that are not trimmed, of all partitions together.
    /// Trimmed entries may take one further segment of each partition.
    pub max_bytes: u64,
    /// The age of the oldest entry that is not trimmed from which on nothing more is accepted;
    /// `None` for no limit.
    pub max_age: Option<Duration>,
    /// The most bytes of one append, including [`Options::PER_ENTRY`] for each entry.
    pub max_append: usize,
    /// The bytes after which another segment begins; at most a quarter of `max_bytes`. Trimming
    /// frees whole segments.
    pub segment_bytes: u64,
    /// The most bytes that one sync makes durable together. A larger append is synced by itself.
    pub group_bytes: usize,
    /// The most appends that wait for the writer of a partition; beyond it, appending waits.
    pub queue: usize,
    /// The number of this gateway in the origin of its entries; `None` for a random one at each
    /// start.
    pub gateway: Option<u64>,
    /// The name of a new spool; `None` for a random one.
    pub id: Option<SpoolId>,
    /// The clock for the times of entries.
    pub clock: Clock,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            partitions: 1,
            max_bytes: 8 << 30,
            max_age: None,
            max_append: 16 << 20,
            segment_bytes: 64 << 20,
            group_bytes: 4 << 20,
            queue: 1024,
            gateway: None,
            id: None,
            clock: Clock::default(),
        }
    }
}

/// The most partitions; each has a thread and three open files.
const MAX_PARTITIONS: u32 = 256;

/// The largest `max_append` that a group's header can describe.
const MAX_APPEND: usize = 1 << 30;

impl Options {
    /// The bytes of an entry on the disk besides its payload.
    pub const PER_ENTRY: usize = ENTRY_HEADER;
    /// The bytes of each sync besides its entries.
    pub const PER_GROUP: usize = GROUP_HEADER;

    /// Refuses impossible values.
    pub(crate) fn check(&self) -> Result<(), SpoolFault> {
        let refuse = |what: String| Err(SpoolFault::Option(what.into()));
        if !(1..=MAX_PARTITIONS).contains(&self.partitions) {
            let given = self.partitions;
            return refuse(format!(
                "spool.partitions is {given}; it must be 1 to {MAX_PARTITIONS}"
            ));
        }
        if self.max_append > MAX_APPEND || self.group_bytes > MAX_APPEND {
            return refuse(format!(
                "spool.max_append and spool.group_bytes must not be above {MAX_APPEND}"
            ));
        }
        if self.queue == 0 {
            return refuse("spool.queue is 0; it must be at least 1".to_owned());
        }
        Ok(())
    }

    /// Returns the bytes after which another segment begins.
    pub(crate) fn segment_limit(&self) -> u64 {
        self.segment_bytes.min(self.max_bytes / 4)
    }
}
