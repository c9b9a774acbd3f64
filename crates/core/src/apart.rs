//! The reason why a write is not joined with others.

use std::fmt;

use crate::advice::advice;

/// The reason why a write is a statement and a transaction of its own, and advice for the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Apart {
    /// The kind of reason as a short phrase, by which reasons are counted: `a view`, `a deferred
    /// constraint`.
    pub phrase: &'static str,
    /// The object that prevents joining, by kind and name: `trigger audit_rows on shop.orders`.
    /// Empty if no object does.
    pub object: Box<str>,
    /// Advice for the operator; empty if there is none.
    pub advice: &'static str,
    /// True if unproven code runs. It may leave settings, a role, locks or temporary objects on its
    /// connection, so no other session may use that connection afterwards.
    pub unproven: bool,
}

impl Apart {
    /// Returns a reason that has only a phrase, without unproven code.
    pub fn of(phrase: &'static str) -> Self {
        Self {
            phrase,
            ..Self::default()
        }
    }

    /// Adds the object that prevents joining.
    #[must_use]
    pub fn by(mut self, object: impl Into<Box<str>>) -> Self {
        self.object = object.into();
        self
    }

    /// Adds advice for the operator.
    #[must_use]
    pub fn advised(mut self, advice: &'static str) -> Self {
        self.advice = advice;
        self
    }

    /// Returns the advice for the operator: the reason's own, or that for its phrase.
    pub fn what_to_do(&self) -> &'static str {
        match self.advice {
            "" => advice(self.phrase),
            own => own,
        }
    }

    /// Marks the reason as running unproven code.
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
