//! The reason why an operation of the spool failed, classified where it arises.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use windrow_core::{Fault, FaultClass};

use crate::entry::Position;

/// The reason why an operation of the spool failed. Cheap to clone: all appends that waited for the
/// same sync get the same one.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SpoolFault {
    /// The operating system reported an error; nothing was written.
    #[error("the spool cannot {doing} {path}: {source}", path = path.display())]
    System {
        /// The failed action.
        doing: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: Arc<io::Error>,
    },

    /// The disk (or the quota) is full; nothing was written, and earlier entries are kept. Later
    /// appends are tried again.
    #[error(
        "the disk of the spool is full: {bytes} bytes could not be written to {path} ({source}); \
         free some space, or let the database catch up", path = path.display()
    )]
    DiskFull {
        /// The file that was to be written.
        path: PathBuf,
        /// The bytes to be written.
        bytes: u64,
        /// The system's error.
        source: Arc<io::Error>,
    },

    /// The limit on the spool's size is reached; nothing was written.
    #[error(
        "the spool is full: it holds {held} bytes, {more} more were to come, and its limit \
         (spool.max_bytes) is {limit}; it empties as the database catches up"
    )]
    SizeLimit {
        /// The bytes held.
        held: u64,
        /// The bytes to be added.
        more: u64,
        /// The limit in bytes.
        limit: u64,
    },

    /// The limit on the age of the oldest entry is reached; nothing was written.
    #[error(
        "the oldest entry of the spool has waited for {} s, and the limit (spool.max_age) is {} s; \
         nothing more is taken until the database has caught up", age.as_secs(), limit.as_secs()
    )]
    AgeLimit {
        /// The age of the oldest entry.
        age: Duration,
        /// The limit.
        limit: Duration,
    },

    /// The append is too large; nothing was written.
    #[error(
        "{bytes} bytes in {entries} entries are too much for the spool at once, whose limit is \
         {limit} bytes with {per_entry} for each entry counted in; without the spool (ack=commit) \
         more can be written"
    )]
    TooLarge {
        /// The bytes of the payloads.
        bytes: usize,
        /// The number of entries.
        entries: usize,
        /// The limit in bytes.
        limit: usize,
        /// The bytes of an entry besides its payload.
        per_entry: usize,
    },

    /// The sync that this append waited for failed. After a restart, the entry may be there or not.
    #[error(
        "it cannot be known whether the spool has kept the write: {why}; the spool takes nothing \
         more until Windrow is started again"
    )]
    Unknown {
        /// The failure.
        why: Arc<str>,
    },

    /// An earlier sync failed, so that a later success would prove nothing; nothing was written.
    #[error(
        "the spool takes nothing more: {why}. Once that is mended, start Windrow again, which checks \
         what is there"
    )]
    Poisoned {
        /// The failure.
        why: Arc<str>,
    },

    /// Acknowledged bytes have changed since they were written.
    #[error(
        "the spool is damaged: {path}, byte {offset}, at position {position}: {what}; nothing was \
         changed. `windrow spool verify` says more, `windrow spool dump` shows what can be read; \
         bring the file back from a copy, or move the directory away to begin again",
        path = path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first damaged byte.
        offset: u64,
        /// The position that was to be read there.
        position: Position,
        /// The damage.
        what: Box<str>,
    },

    /// A newer Windrow has written the file.
    #[error(
        "{path} has format {found}, and this program knows formats up to {known}; run the newer \
         Windrow that wrote it, or let that one empty the spool first", path = path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of the format.
        found: u32,
        /// The newest format that this program reads.
        known: u32,
    },

    /// The directory contains something else.
    #[error("{path} is no spool: {what}; name another directory", path = path.display())]
    NotASpool {
        /// The directory.
        path: PathBuf,
        /// The contradiction that was found.
        what: Box<str>,
    },

    /// Another process uses the directory.
    #[error(
        "the spool {path} is in use by another process; each Windrow needs a spool of its own",
        path = path.display()
    )]
    InUse {
        /// The directory.
        path: PathBuf,
    },

    /// The configured number of partitions differs from the spool's, which is fixed when it is
    /// created.
    #[error(
        "the spool {path} has {found} partitions and {asked} are asked for (spool.partitions); let \
         it empty itself and create it again, because writes would lose their order", 
        path = path.display()
    )]
    Partitions {
        /// The directory.
        path: PathBuf,
        /// The number in the spool.
        found: u32,
        /// The configured number.
        asked: u32,
    },

    /// An option has an impossible value.
    #[error("{0}")]
    Option(Box<str>),

    /// The position was trimmed.
    #[error(
        "position {asked} is gone from partition {partition}: its first entry is {first}; who asks \
         has fallen behind what was applied, as a database does that comes back from a backup"
    )]
    Trimmed {
        /// The partition.
        partition: u32,
        /// The position asked for.
        asked: Position,
        /// The first position that still exists.
        first: Position,
    },

    /// The position is after the end of the log, where no entry has ever been.
    #[error(
        "position {asked} is beyond the end of partition {partition}, which is {end}: entries that \
         were acknowledged are missing, as where the spool comes back from an old copy"
    )]
    Beyond {
        /// The partition.
        partition: u32,
        /// The position asked for.
        asked: Position,
        /// The end of the log.
        end: Position,
    },

    /// The brokers of a replicated log did not accept the entries; nothing was written. Later
    /// appends are tried again.
    #[error("the spool is out of reach: {why}")]
    Unreached {
        /// The failed action and its error.
        why: Arc<str>,
    },

    /// The brokers of a replicated log were sent the entries and did not answer in time. The
    /// entries may be in the log or not; later appends are tried again.
    #[error("it cannot be known whether the spool has kept the write: {why}")]
    Unsettled {
        /// The error.
        why: Arc<str>,
    },

    /// A replicated log contains something that is not an entry.
    #[error(
        "at position {position} the spool holds what is no entry: {what}. Nothing behind it is \
         applied: nobody but Windrow may write there"
    )]
    Strange {
        /// The position of it.
        position: Position,
        /// The contradiction that was found.
        what: Box<str>,
    },

    /// The spool has been closed; nothing was written.
    #[error("the spool is closed: Windrow is shutting down")]
    Closed,
}

impl SpoolFault {
    /// Classifies the system's error for a file.
    pub(crate) fn system(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self::System {
            doing,
            path: path.to_owned(),
            source: Arc::new(source),
        }
    }

    /// Returns the class and SQLSTATE of the fault that a client gets.
    fn class(&self) -> (FaultClass, &'static str) {
        match self {
            Self::DiskFull { .. } | Self::SizeLimit { .. } => (FaultClass::Overloaded, "53100"),
            Self::AgeLimit { .. } => (FaultClass::Overloaded, "53400"),
            Self::TooLarge { .. } => (FaultClass::TooLarge, "54000"),
            Self::Unknown { .. } | Self::Unsettled { .. } => (FaultClass::Unknown, "08007"),
            Self::Poisoned { .. } | Self::Unreached { .. } => (FaultClass::Unavailable, "58030"),
            Self::System { .. } | Self::InUse { .. } => (FaultClass::Unavailable, "58030"),
            Self::Closed => (FaultClass::Cancelled, "57014"),
            Self::NotASpool { .. } | Self::Partitions { .. } | Self::Option(_) => {
                (FaultClass::Invalid, "22023")
            }
            Self::Newer { .. } => (FaultClass::Unsupported, "0A000"),
            Self::Damaged { .. }
            | Self::Strange { .. }
            | Self::Trimmed { .. }
            | Self::Beyond { .. } => (FaultClass::Other, "XX001"),
        }
    }
}

impl From<SpoolFault> for Fault {
    fn from(fault: SpoolFault) -> Self {
        let (class, code) = fault.class();
        Self::new(class, code, fault.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_failed_sync_leaves_the_outcome_open() {
        let why: Arc<str> = "x".into();
        let unknown = Fault::from(SpoolFault::Unknown {
            why: Arc::clone(&why),
        });
        assert_eq!(
            (unknown.class, &*unknown.code),
            (FaultClass::Unknown, "08007")
        );
        assert!(!unknown.may_retry());
        let refused = Fault::from(SpoolFault::Poisoned { why });
        assert!(refused.may_retry(), "nothing was written");
    }
}
