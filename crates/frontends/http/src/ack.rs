//! The moment at which a write is answered with success.

use http::StatusCode;

/// The moment at which a write is answered with success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ack {
    /// Once the database has committed.
    #[default]
    Commit,
    /// Once the write is durable in the spool; the database gets it later.
    Spool,
}

impl Ack {
    /// Parses a client's word.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "commit" => Some(Self::Commit),
            "spool" => Some(Self::Spool),
            _ => None,
        }
    }

    /// Returns the name of the number in a success. While a write is in the spool, its number of
    /// rows is not known.
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
