//! A message of the server that cannot be read.

/// A message that does not have the layout it should have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Malformed {
    /// What to say of it.
    pub(super) fn of(self, tag: u8) -> String {
        format!(
            "the server's message `{}` does not have the layout of PostgreSQL's protocol",
            tag.escape_ascii()
        )
    }
}
