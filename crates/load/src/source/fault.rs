//! The reasons why reading ends early.

use std::io;

/// The reason why a source cannot be read to its end.
#[derive(Debug, thiserror::Error)]
pub enum SourceFault {
    /// The file cannot be opened or read.
    #[error("{name}: {error}")]
    Io {
        /// The file, or `standard input`.
        name: String,
        /// The system's error.
        error: io::Error,
    },
    /// The content is invalid as a whole: there is no header, the archive is cut, or the file ends
    /// in the middle of a row.
    #[error("{name}, line {line}: {reason}")]
    Form {
        /// The file, or `standard input`.
        name: String,
        /// The line, from 1.
        line: u64,
        /// The problem, and what to do.
        reason: String,
    },
}
