//! Commits a transaction in the round trip of its statements: the server itself turns autocommit
//! on, which commits, if no statement failed or warned. Used by `attempt`.

use super::steps::ClientStep;

/// The way in which a transaction ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closing {
    /// In a round trip of its own, once all answers are known.
    Apart,
    /// By the count of warnings of its only statement.
    One,
    /// By the number of statements that left nothing to look at.
    Counted(usize),
}

impl Closing {
    /// Returns the way in the round trip of these statements.
    pub(super) fn along(steps: &[ClientStep]) -> Self {
        match steps {
            [step] if !step.shows_warnings && !step.asks_id => Self::One,
            _ => Self::Counted(steps.len()),
        }
    }

    /// Returns the statement that begins the transaction, if one is needed.
    pub(super) fn begin(self, has_autocommit: bool) -> Option<&'static [u8]> {
        match self {
            // `BEGIN` would not do: if the server ends the transaction at a deadlock, the
            // statements behind it would commit by themselves.
            Self::Apart | Self::One => has_autocommit.then_some(b"SET autocommit = 0"),
            Self::Counted(_) => Some(b"SET autocommit = 0, @windrow_clean = 0"),
        }
    }

    /// Returns the statement that counts a step, right behind its own statement.
    pub(super) fn count(self, step: &ClientStep) -> Option<&'static [u8]> {
        match self {
            Self::Apart | Self::One => None,
            // A warning that was asked for is known.
            Self::Counted(_) if step.shows_warnings => {
                Some(b"SET @windrow_clean = @windrow_clean + (@@error_count = 0)")
            }
            Self::Counted(_) => {
                Some(b"SET @windrow_clean = @windrow_clean + (@@warning_count = 0)")
            }
        }
    }

    /// Returns the statement that commits if all is well, and changes nothing otherwise.
    pub(super) fn end(self) -> Option<String> {
        match self {
            Self::Apart => None,
            Self::One => Some("SET autocommit = (@@warning_count = 0)".to_owned()),
            Self::Counted(steps) => Some(format!("SET autocommit = (@windrow_clean = {steps})")),
        }
    }
}
