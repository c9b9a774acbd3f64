//! Why a write is not joined with others.

use std::fmt;

/// Why a write is sent as its own statement, in a transaction of its own: what stands in the way,
/// and what may be done.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Apart {
    /// A short phrase that is the same for all of a kind, for counting: `a view`, `a deferred
    /// constraint`.
    pub phrase: &'static str,
    /// What stands in the way, by kind and name: `trigger audit_rows on shop.orders`. Empty where
    /// there is no such object.
    pub object: Box<str>,
    /// What an operator can do about it. Empty where nothing can be done.
    pub advice: &'static str,
    /// Code runs of which nothing is proven: it may leave settings, a role, locks or temporary
    /// objects behind on its connection, which nobody else may meet.
    pub unproven: bool,
}

impl Apart {
    /// A reason that says all by its phrase, where no unproven code runs.
    pub fn of(phrase: &'static str) -> Self {
        Self {
            phrase,
            ..Self::default()
        }
    }

    /// The same, with what stands in the way.
    #[must_use]
    pub fn by(mut self, object: impl Into<Box<str>>) -> Self {
        self.object = object.into();
        self
    }

    /// The same, with what an operator can do.
    #[must_use]
    pub fn advised(mut self, advice: &'static str) -> Self {
        self.advice = advice;
        self
    }

    /// The same, where unproven code runs.
    #[must_use]
    pub fn unproven(mut self) -> Self {
        self.unproven = true;
        self
    }
}

impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.phrase)?;
        match self.object.is_empty() {
            true => Ok(()),
            false => write!(f, ": {}", self.object),
        }
    }
}
