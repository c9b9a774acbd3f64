//! What an operator knows better than the proof.

use std::collections::BTreeSet;

/// Functions that an operator answers for, as `schema.name`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trusted(BTreeSet<Box<str>>);

impl Trusted {
    /// Whether the function is one of them.
    pub fn has(&self, function: &str) -> bool {
        self.0.contains(function)
    }
}

impl<S: Into<Box<str>>> FromIterator<S> for Trusted {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }
}
