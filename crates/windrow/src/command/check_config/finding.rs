//! The result of one check.

use std::fmt;

use windrow_core::Fault;

/// The result of one check: the subject, and a sentence about it.
pub(super) struct ConnectFinding {
    subject: String,
    said: Result<String, String>,
}

impl ConnectFinding {
    /// Returns the finding of a check that succeeded.
    pub(super) fn good(subject: impl Into<String>, said: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            said: Ok(said.into()),
        }
    }

    /// Returns the finding of a check that failed, with what to do about it.
    pub(super) fn bad(subject: impl Into<String>, said: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            said: Err(said.into()),
        }
    }

    /// Returns the finding for an answer of a database.
    pub(super) fn of(subject: impl Into<String>, said: Result<String, Fault>) -> Self {
        match said {
            Ok(said) => Self::good(subject, said),
            Err(fault) => Self::bad(subject, format!("does not answer as it should: {fault}")),
        }
    }

    /// True if nothing is wrong.
    pub(super) fn is_good(&self) -> bool {
        self.said.is_ok()
    }
}

impl fmt::Display for ConnectFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Ok(said) | Err(said)) = &self.said;
        write!(f, "{}: {said}", self.subject)
    }
}
