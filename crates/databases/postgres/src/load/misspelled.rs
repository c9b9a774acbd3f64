//! Fields of a portion that its form cannot express.

use windrow_core::{Fault, FaultClass};

use crate::values::text::Unwritable;

/// The reason why a form cannot express a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Misspelled {
    /// The encoder of the binary form does not know the spelling: the server has to read the text.
    Spelling,
    /// Windrow refuses the field: its column would not keep the value exactly.
    Misfit,
    /// The value has no text form either.
    Unwritable(String),
    /// The value is longer than the protocol allows.
    TooLong,
}

impl From<Unwritable> for Misspelled {
    fn from(why: Unwritable) -> Self {
        Self::Unwritable(why.0)
    }
}

impl Misspelled {
    /// Returns the fault of a portion that is not written because of the field.
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
