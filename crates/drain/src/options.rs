//! Limits of a drain.

use std::path::PathBuf;
use std::time::Duration;

/// Limits of a drain. By default nothing needs setting.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes of entries that are in memory at most for each partition, read and not applied yet.
    /// One entry may be larger by itself.
    pub memory: usize,
    /// Bytes of one transaction at most; an entry that is larger is applied by itself.
    pub unit_bytes: usize,
    /// Entries of the first transaction. How many later ones take follows from how it goes.
    pub first_entries: usize,
    /// The time for which applied entries stay in the spool: a database that loses its last commits
    /// in a crash finds them there.
    pub keep: Duration,
    /// The pause between attempts where trying again soon would not help: a wrong password, a right
    /// that is missing.
    pub long_pause: Duration,
    /// The time for which an entry that fails by itself is tried again, if such a failure is mostly
    /// not the fault of a write: a conflict, or a statement that takes too long. After that time
    /// the entry is refused.
    pub refuse_after: Duration,
    /// The folder for entries that do not fit into the table of dead letters, each in a file. It
    /// is made if it is not there. `None`: such an entry is tried again until the table takes it,
    /// and holds up what is behind it.
    pub aside: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory: 16 << 20,
            unit_bytes: 4 << 20,
            first_entries: 256,
            keep: Duration::from_secs(10),
            long_pause: Duration::from_secs(10),
            refuse_after: Duration::from_secs(60),
            aside: None,
        }
    }
}
