//! A text that is being read.

use std::ops::Deref;

use windrow_core::long_text;

/// A text that may be cut into tokens. Only [`Text::read`] makes one, so no reader of this crate
/// keeps the other clients of its thread waiting for a long text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a>(&'a str);

impl<'a> Text<'a> {
    /// Runs a reader of a text.
    pub(crate) fn read<T>(text: &'a str, reads: impl FnOnce(Self) -> T) -> T {
        long_text::read(text.len(), || reads(Self(text)))
    }

    pub(crate) fn as_str(self) -> &'a str {
        self.0
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.0
    }
}
