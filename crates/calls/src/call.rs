//! One use of a statement by a client, with the raw bytes of its values.

use std::mem::size_of;
use std::sync::Arc;

use windrow_core::{Op, TableName, Work};

use crate::arguments::{Arguments, Formats};
use crate::done::CallDone;
use crate::statement::Statement;

/// One use of a statement by a client.
#[derive(Clone, Debug)]
pub struct SqlCall {
    /// What is done.
    pub statement: Arc<Statement>,
    /// With which values: as many as the statement has parameters.
    pub arguments: Arguments,
    /// How the values are encoded.
    pub formats: Formats,
    /// How the rows that come back are to be encoded.
    pub results: Formats,
    /// True where its text is parsed at this very use, so that its types are those of the moment
    /// at which it runs. False: its client was told the types of `statement` before, and they
    /// stay what they were.
    pub fresh: bool,
    /// The client's own text, if literals were lifted out of it.
    pub origin: Option<Box<Origin>>,
}

/// The text that a client wrote, if literals or comments were lifted out of it. A call that is sent
/// by itself is sent as this text, so that errors point into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The text, in UTF-8.
    pub text: Arc<[u8]>,
    /// The number of parameters that the client gives a value to; the parameters of the literals
    /// come after them. `None`: the text came as a simple query.
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
}

impl Work for SqlCall {
    type Done = CallDone;

    fn op(&self) -> Op {
        self.statement.parsed().op
    }

    fn table(&self) -> &TableName {
        &self.statement.parsed().table
    }

    fn bytes(&self) -> usize {
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
