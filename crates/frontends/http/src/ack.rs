//! When a write is answered with success.

use http::StatusCode;

/// When a write is answered with success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ack {
    /// Once the database has committed.
    #[default]
    Commit,
    /// Once it is durable in the spool; the database gets it later.
    Spool,
}

impl Ack {
    /// Reads what a client has written.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "commit" => Some(Self::Commit),
            "spool" => Some(Self::Spool),
            _ => None,
        }
    }

    /// Returns the name of the number in a success: the number of rows that a write will have
    /// written is not known while the write is in the spool.
    pub(crate) fn counted(self) -> &'static str {
        match self {
            Self::Commit => "rows",
            Self::Spool => "accepted",
        }
    }

    /// Returns the status of an answer of which no part failed.
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Commit => StatusCode::OK,
            Self::Spool => StatusCode::ACCEPTED,
        }
    }
}
