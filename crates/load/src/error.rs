//! Why a load ends before its end.

use std::io;
use std::time::Duration;

use windrow_core::Fault;

use crate::source::SourceFault;

/// Why a load ends before its end. What was committed before stays.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A file cannot be read, or not any further.
    #[error(transparent)]
    Source(#[from] SourceFault),
    /// What is asked for does not fit the file, the table or the database.
    #[error("{0}")]
    Invalid(String),
    /// The database refuses something that concerns more than single rows.
    #[error("{place}: {fault}")]
    Database {
        /// File and lines, or the file alone.
        place: String,
        /// What it said.
        fault: Fault,
    },
    /// The database was away for too long. What was under way was not written.
    #[error("{place}: the database was waited for as long as --away-wait = {} allows: {fault}", seconds(*.waited))]
    Away {
        /// File and lines, or the file alone.
        place: String,
        /// How long it was waited for.
        waited: Duration,
        /// What was said last.
        fault: Fault,
    },
    /// The connection ended while a commit was under way, and there is no mark that could tell.
    #[error(
        "{place}: the connection ended while these rows were committed, and it cannot be known whether they are in: {fault}; \
         look for them in the table, or load with --on-conflict ignore; with --resume the database itself can tell"
    )]
    Unknown {
        /// File and lines.
        place: String,
        /// What is known.
        fault: Fault,
    },
    /// More rows were refused than are allowed.
    #[error("{rejects} rows were refused, and --max-rejects is {most}; the last one: {last}")]
    TooManyRejects {
        /// How many so far.
        rejects: u64,
        /// How many may be.
        most: u64,
        /// Place and reason of the last one.
        last: String,
    },
    /// The file of refused rows cannot be written or gone on with.
    #[error("{path}: {error}")]
    Rejects {
        /// The file.
        path: String,
        /// What is wrong with it.
        error: io::Error,
    },
    /// Somebody asked for the end.
    #[error("interrupted")]
    Interrupted,
    /// A task of the load ended in a way that it never should.
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
