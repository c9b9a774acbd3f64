//! Functions that the operator trusts.

use std::collections::BTreeSet;

/// Functions that an operator trusts, as `schema.name`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trusted(BTreeSet<Box<str>>);

impl Trusted {
    /// Returns true if the operator trusts the function.
    pub fn has(&self, function: &str) -> bool {
        self.0.contains(function)
    }
}

impl<S: Into<Box<str>>> FromIterator<S> for Trusted {
    fn from_iter<I: IntoIterator<Item = S>>(names: I) -> Self {
        Self(names.into_iter().map(Into::into).collect())
    }
}
