//! The reasons why a load ends early.

use std::io;
use std::time::Duration;

use windrow_core::Fault;

use crate::source::SourceFault;

/// The reason why a load ends early. Portions that were committed before stay.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file cannot be read to its end.
    #[error(transparent)]
    Source(#[from] SourceFault),
    /// The options do not fit the file, the table or the database.
    #[error("{0}")]
    Invalid(String),
    /// The database refuses something that concerns more than single rows.
    #[error("{place}: {fault}")]
    Database {
        /// File and lines, or the file alone.
        place: String,
        /// The database's error.
        fault: Fault,
    },
    /// The database was unreachable for too long. Portions under way were not written.
    #[error("{place}: the database was waited for as long as --away-wait = {} allows: {fault}", seconds(*.waited))]
    Away {
        /// File and lines, or the file alone.
        place: String,
        /// The time that the load waited.
        waited: Duration,
        /// The last error.
        fault: Fault,
    },
    /// The connection ended while a commit was under way, and there is no mark that shows the
    /// outcome.
    #[error(
        "{place}: the connection ended while these rows were committed, and it cannot be known whether they are in: {fault}; \
         look for them in the table, or load with --on-conflict ignore; with --resume the database itself can tell"
    )]
    Unknown {
        /// File and lines.
        place: String,
        /// The error of the connection.
        fault: Fault,
    },
    /// More rows were refused than are allowed.
    #[error("{rejects} rows were refused, and --max-rejects is {most}; the last one: {last}")]
    TooManyRejects {
        /// The number of refused rows.
        rejects: u64,
        /// The largest number that is allowed.
        most: u64,
        /// Place and reason of the last one.
        last: String,
    },
    /// The file of refused rows cannot be written or continued.
    #[error("{path}: {error}")]
    Rejects {
        /// The file.
        path: String,
        /// The error of the system.
        error: io::Error,
    },
    /// The load was interrupted.
    #[error("interrupted")]
    Interrupted,
    /// A task of the load ended in a way that is a defect.
    #[error("{0}; this is a defect in Windrow")]
    Defect(&'static str),
}

fn seconds(time: Duration) -> String {
    if time.subsec_nanos() == 0 {
        format!("{}s", time.as_secs())
    } else {
        format!("{}ms", time.as_millis())
    }
}
