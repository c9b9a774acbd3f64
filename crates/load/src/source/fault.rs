//! Why reading ends early.

use std::io;

/// Why a source cannot be read any further.
#[derive(Debug, thiserror::Error)]
pub enum SourceFault {
    /// It cannot be opened or read.
    #[error("{name}: {error}")]
    Io {
        /// The file, or `standard input`.
        name: String,
        /// What the system said.
        error: io::Error,
    },
    /// What is in it makes no sense as a whole (no header, a cut archive, a row in the middle of
    /// which it ends).
    #[error("{name}, line {line}: {reason}")]
    Form {
        /// The file, or `standard input`.
        name: String,
        /// The line, from 1.
        line: u64,
        /// What was wrong, and what to do.
        reason: String,
    },
}
