//! Limits of a spool, and its access to the system.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::entry::SpoolId;
use crate::fault::SpoolFault;
use crate::format::{ENTRY_HEADER, GROUP_HEADER};

/// Where the time is taken from: the system's clock, or what a test says.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// A clock of one's own. It is asked for each sync.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time now.
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

/// Limits of a spool. By default nothing needs setting.
#[derive(Clone, Debug)]
pub struct Options {
    /// Logs side by side, each with its own order. Fixed when the spool is made.
    pub partitions: u32,
    /// The most bytes of files with entries that are not trimmed, over all partitions. What has
    /// been trimmed may take the disk a segment for each partition more.
    pub max_bytes: u64,
    /// The age of the oldest entry that is not trimmed from which on nothing more is taken. `None`:
    /// no limit.
    pub max_age: Option<Duration>,
    /// The most bytes of one append, with [`Options::PER_ENTRY`] for each entry.
    pub max_append: usize,
    /// Bytes after which a segment is followed by another; a quarter of `max_bytes` at most.
    /// Trimming frees whole segments.
    pub segment_bytes: u64,
    /// The most bytes that wait for one sync together. A larger append is synced by itself.
    pub group_bytes: usize,
    /// Appends that wait for the writer of a partition at most; beyond that, appending waits.
    pub queue: usize,
    /// The number of this gateway in the origin of its entries. `None`: a random one at each start.
    pub gateway: Option<u64>,
    /// The name of a spool that is made. `None`: drawn.
    pub id: Option<SpoolId>,
    /// The clock that entries are written by.
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

/// The most partitions: each has a thread and three open files.
const MAX_PARTITIONS: u32 = 256;

/// The most that `max_append` may be: what a group's header can say.
const MAX_APPEND: usize = 1 << 30;

impl Options {
    /// Bytes that an entry takes on the disk besides its payload.
    pub const PER_ENTRY: usize = ENTRY_HEADER;
    /// Bytes that each sync takes besides its entries.
    pub const PER_GROUP: usize = GROUP_HEADER;

    /// Refuses what makes no sense.
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

    /// Bytes after which a segment is followed by another.
    pub(crate) fn segment_limit(&self) -> u64 {
        self.segment_bytes.min(self.max_bytes / 4)
    }
}
