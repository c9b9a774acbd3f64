//! One use of a statement by a client, with the raw bytes of its values.

use std::mem::size_of;
use std::sync::Arc;

use super::arguments::{Arguments, Formats};
use super::statement::Statement;

/// One use of a statement by a client.
#[derive(Clone, Debug)]
pub struct SqlCall {
    /// The statement that the call executes.
    pub statement: Arc<Statement>,
    /// The values, one for each parameter of the statement.
    pub arguments: Arguments,
    /// The formats of the values.
    pub formats: Formats,
    /// The requested formats of the result columns.
    pub results: Formats,
    /// True if this use parses the text, so that the types are those at the time of execution.
    /// False if the types of `statement` were reported to the client earlier and must stay.
    pub fresh: bool,
    /// The client's own text, if literals were lifted out of it.
    pub origin: Option<Box<Origin>>,
}

/// The text that a client wrote, if literals or comments were lifted out of it. A call that is sent
/// by itself is sent with this text, so that positions in errors refer to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The text, in UTF-8.
    pub text: Arc<[u8]>,
    /// The number of parameters to which the client gives values. The parameters of the lifted
    /// literals come after them. `None`: the text was a simple query.
    pub own: Option<usize>,
}

impl Origin {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text).unwrap_or_default()
    }
}

impl SqlCall {
    /// Returns the number of values in the client's Bind, if literals were lifted out of a prepared
    /// text.
    pub fn own_parameters(&self) -> Option<usize> {
        self.origin.as_ref()?.own
    }
    /// Returns the bytes that the call takes in memory.
    pub fn bytes(&self) -> usize {
        let each = |formats: &Formats| match formats {
            Formats::Each(each) => each.len(),
            Formats::Text | Formats::Binary => 0,
        };
        size_of::<Self>()
            + self.arguments.as_bytes().len()
            + self.origin.as_ref().map_or(0, |origin| origin.text.len())
            + each(&self.formats)
            + each(&self.results)
    }
}
