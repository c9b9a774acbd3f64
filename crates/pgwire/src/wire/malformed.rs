//! The error of a message that cannot be parsed.

/// A message whose layout is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Malformed {
    /// Returns a description for the message with this tag.
    pub(super) fn of(self, tag: u8) -> String {
        format!(
            "the server's message `{}` does not have the layout of PostgreSQL's protocol",
            tag.escape_ascii()
        )
    }
}
