//! Lifts literals into buffers that are reused.

use crate::reading::MAX_TEXT;

/// A text whose literals are lifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifted<'a> {
    /// The text with `$n` in the places of the literals, without its comments, which often differ
    /// from text to text. Hints (`/*+ .. */`) stay.
    pub template: &'a str,
    /// The number of the client's own parameters, which come first.
    pub own: usize,
    /// The type of each literal (an OID); 0 if the server decides.
    pub types: &'a [u32],
    /// The literals as in a Bind message, in text form: for each a length (big-endian i32, -1 for
    /// NULL) and that many bytes.
    pub values: &'a [u8],
    /// True if the template contains literals, so that it may never occur again.
    pub leftover: bool,
}

impl Lifted<'_> {
    /// The number of literals.
    pub fn count(&self) -> usize {
        self.types.len()
    }
}

/// Lifts the literals out of one text after another, in the same buffers.
#[derive(Debug, Default)]
pub struct Lifter {
    pub(super) template: String,
    pub(super) own: usize,
    pub(super) types: Vec<u32>,
    pub(super) values: Vec<u8>,
    pub(super) leftover: bool,
}

impl Lifter {
    /// Returns the result of the last [`Lifter::lift`], which must not have returned `None`.
    pub fn lifted(&self) -> Lifted<'_> {
        Lifted {
            template: &self.template,
            own: self.own,
            types: &self.types,
            values: &self.values,
            leftover: self.leftover,
        }
    }

    /// Forgets the last text. The buffers do not keep the size of the largest text, because an
    /// unused lifter would hold memory that nothing counts.
    pub fn clear(&mut self) {
        self.template.clear();
        self.own = 0;
        self.types.clear();
        self.values.clear();
        self.leftover = false;
        self.template.shrink_to(4 * MAX_TEXT);
        self.values.shrink_to(4 * MAX_TEXT);
    }
}
