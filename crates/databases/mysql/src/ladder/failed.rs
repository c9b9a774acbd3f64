//! Why a statement has no answers.

use crate::fault::Trouble;

/// Why there are no answers for the rows of a statement.
#[derive(Debug)]
pub(crate) enum Failed {
    /// Nothing of it was executed.
    Trouble(Trouble),
    /// The statement was executed and must be undone: nobody can say which answer belongs to which
    /// row.
    Unsure,
}

impl From<Trouble> for Failed {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}
