//! Why a portion's form cannot say what is in it.

use windrow_core::{Fault, FaultClass};

use crate::values::text::Unwritable;

/// A field that a form has no words for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Misspelled {
    /// Not spelled as the binary form's writer knows it: the server is to read the text.
    Spelling,
    /// Windrow refuses it: its column would not keep it exactly.
    Misfit,
    /// There is no text for it either.
    Unwritable(String),
    /// It is longer than the protocol allows.
    TooLong,
}

impl From<Unwritable> for Misspelled {
    fn from(why: Unwritable) -> Self {
        Self::Unwritable(why.0)
    }
}

impl Misspelled {
    /// What is said of a portion that is not written because of it.
    pub(super) fn fault(self) -> Fault {
        let message = match self {
            Self::Spelling => "a value cannot be sent by COPY".to_owned(),
            Self::Misfit => "a column does not keep a value as it is".to_owned(),
            Self::Unwritable(why) => why,
            Self::TooLong => {
                "a value is larger than 1 GiB, which PostgreSQL does not take".to_owned()
            }
        };
        Fault::new(FaultClass::Value, "22P02", message)
    }
}
