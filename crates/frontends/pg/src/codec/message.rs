//! Messages of a client: finds their ends, and parses them without copying from the receive buffer.

use thiserror::Error;
use windrow_core::{Fault, FaultClass, Formats};
use windrow_pgwire::wire::Cursor;

/// The bytes of a message's type and length.
pub(crate) const HEADER: usize = 5;

/// The longest message of kinds that contain at most a name (PostgreSQL's
/// `PQ_SMALL_MESSAGE_LIMIT`), in bytes.
const MAX_SHORT_BYTES: usize = 10_000;

/// The message at the front of the received bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Front {
    /// A complete message, and its length.
    Whole { tag: u8, total: usize },
    /// An incomplete message; its type and length are known once its header has arrived.
    Part { header: Option<(u8, usize)> },
}

/// Bytes that are not a message. The connection cannot continue after them.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum Violation {
    /// An unknown type, in PostgreSQL's words.
    #[error("invalid frontend message type {0}")]
    Tag(u8),
    /// A length that this kind of message cannot have.
    #[error("invalid message length {length} in a message of type `{}`", tag.escape_ascii())]
    Length { tag: u8, length: i32 },
    /// A message that is longer than configured.
    #[error(
        "a message of type `{}` of {length} bytes is longer than max_message allows ({longest} bytes)",
        tag.escape_ascii()
    )]
    TooLong {
        tag: u8,
        length: usize,
        longest: usize,
    },
}

impl Violation {
    /// Returns the error for the client.
    pub(crate) fn fault(self) -> Fault {
        let fault = Fault::new(FaultClass::Invalid, self.code(), self.to_string());
        match self {
            Self::TooLong { .. } => fault.with_hint(Some(
                "Raise max_message, or send large values by COPY, which has no such limit.",
            )),
            _ => fault,
        }
    }

    /// Returns the SQLSTATE.
    fn code(self) -> &'static str {
        match self {
            Self::Tag(_) | Self::Length { .. } => "08P01",
            Self::TooLong { .. } => "54000",
        }
    }
}

/// Examines the front of `bytes`. `longest` is the longest message other than COPY data, in bytes.
#[inline]
pub(crate) fn front(bytes: &[u8], longest: usize) -> Result<Front, Violation> {
    let Some((&[tag, a, b, c, d], behind)) = bytes.split_first_chunk::<HEADER>() else {
        return match bytes.first() {
            Some(&tag) if !is_known(tag) => Err(Violation::Tag(tag)),
            _ => Ok(Front::Part { header: None }),
        };
    };
    if !is_known(tag) {
        return Err(Violation::Tag(tag));
    }
    let length = i32::from_be_bytes([a, b, c, d]);
    let bad = Violation::Length { tag, length };
    // The length includes itself, but not the tag.
    let body = usize::try_from(length).ok().and_then(|n| n.checked_sub(4));
    let body = body.ok_or(bad)?;
    if body > MAX_SHORT_BYTES && is_short(tag) {
        return Err(bad);
    }
    // COPY data is passed on in pieces, whatever its length is.
    if body > longest && tag != b'd' {
        return Err(Violation::TooLong {
            tag,
            length: body,
            longest,
        });
    }
    let total = HEADER + body;
    Ok(if behind.len() >= body {
        Front::Whole { tag, total }
    } else {
        Front::Part {
            header: Some((tag, total)),
        }
    })
}

fn is_known(tag: u8) -> bool {
    matches!(
        tag,
        b'B' | b'C' | b'D' | b'E' | b'F' | b'H' | b'P' | b'Q' | b'S' | b'X' | b'c' | b'd' | b'f'
    )
}

fn is_short(tag: u8) -> bool {
    matches!(tag, b'C' | b'D' | b'E' | b'H' | b'S' | b'X' | b'c' | b'f')
}

/// A client's message, parsed as far as a session needs it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Message<'a> {
    /// A simple query: its text.
    Query(&'a [u8]),
    /// A statement to be prepared.
    Parse(Parse<'a>),
    /// A portal to be bound.
    Bind(Bind<'a>),
    /// Describe a statement or a portal.
    Describe(Kind, &'a [u8]),
    /// Execute a portal: its name and the most rows (0: all).
    Execute(&'a [u8], i32),
    /// Close a statement or a portal.
    Close(Kind, &'a [u8]),
    /// The end of a segment.
    Sync,
    /// Asks for the answers so far.
    Flush,
    /// The client ends the session.
    Terminate,
    /// Any other message, or one with a malformed body: the server reports what is wrong.
    Other(u8),
}

/// The kind of object that Describe and Close name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A prepared statement.
    Statement,
    /// A portal.
    Portal,
}

/// A Parse message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parse<'a> {
    /// The statement's name; empty for the unnamed one.
    pub(crate) name: &'a [u8],
    /// The statement's text.
    pub(crate) text: &'a [u8],
    /// The types that the client names, as big-endian numbers.
    pub(crate) types: &'a [u8],
}

/// A Bind message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bind<'a> {
    /// The portal's name; empty for the unnamed one.
    pub(crate) portal: &'a [u8],
    /// The statement's name.
    pub(crate) statement: &'a [u8],
    formats: &'a [u8],
    /// The number of values.
    pub(crate) count: usize,
    /// The values, each as a length and that many bytes.
    pub(crate) values: &'a [u8],
    results: &'a [u8],
}

impl<'a> Message<'a> {
    /// Parses the body of a message.
    #[inline]
    pub(crate) fn read(tag: u8, body: &'a [u8]) -> Self {
        Self::well_formed(tag, body).unwrap_or(Self::Other(tag))
    }

    /// Returns true if the message uses the existing unnamed statement.
    pub(crate) fn uses_unnamed(&self) -> bool {
        match self {
            Self::Bind(bind) => bind.statement.is_empty(),
            Self::Describe(Kind::Statement, name) => name.is_empty(),
            _ => false,
        }
    }

    fn well_formed(tag: u8, body: &'a [u8]) -> Option<Self> {
        let mut rest = Cursor::new(body);
        let message = match tag {
            b'Q' => Self::Query(rest.cstr()?),
            b'P' => Self::Parse(Parse::read(&mut rest)?),
            b'B' => Self::Bind(Bind::read(&mut rest)?),
            b'D' => Self::Describe(kind(&mut rest)?, rest.cstr()?),
            b'E' => Self::Execute(rest.cstr()?, rest.i32()?),
            b'C' => Self::Close(kind(&mut rest)?, rest.cstr()?),
            b'S' => Self::Sync,
            b'H' => Self::Flush,
            b'X' => Self::Terminate,
            _ => return None,
        };
        // PostgreSQL does not check the bodies of Terminate, Sync and Flush more closely either.
        rest.is_empty().then_some(message)
    }
}

impl<'a> Parse<'a> {
    fn read(rest: &mut Cursor<'a>) -> Option<Self> {
        let (name, text) = (rest.cstr()?, rest.cstr()?);
        let count = usize::from(rest.u16()?);
        let types = rest.bytes(count * size_of::<u32>())?;
        Some(Self { name, text, types })
    }

    /// Returns the types that the client names; 0 if the server decides.
    pub(crate) fn type_oids(&self) -> impl ExactSizeIterator<Item = u32> + Clone + 'a {
        self.types
            .chunks_exact(size_of::<u32>())
            .map(|oid| oid.try_into().map(u32::from_be_bytes).unwrap_or_default())
    }
}

impl<'a> Bind<'a> {
    #[inline]
    fn read(rest: &mut Cursor<'a>) -> Option<Self> {
        let (portal, statement) = (rest.cstr()?, rest.cstr()?);
        let formats = codes(rest)?;
        let count = usize::from(rest.u16()?);
        let before = rest.rest();
        for _ in 0..count {
            rest.column()?;
        }
        let values = before.get(..before.len() - rest.rest().len())?;
        let results = codes(rest)?;
        Some(Self {
            portal,
            statement,
            formats,
            count,
            values,
            results,
        })
    }

    /// Returns the formats of the values; `None` if the codes are invalid.
    #[inline]
    pub(crate) fn formats(&self) -> Option<Formats> {
        formats(self.formats, self.count)
    }

    /// Returns the formats of `columns` columns; `None` if the codes are invalid.
    #[inline]
    pub(crate) fn results(&self, columns: usize) -> Option<Formats> {
        formats(self.results, columns)
    }
}

/// Parses format codes: none, one for all, or one for each.
#[inline]
fn formats(codes: &[u8], count: usize) -> Option<Formats> {
    match codes {
        [] | [0, 0] => Some(Formats::Text),
        [0, 1] => Some(Formats::Binary),
        each if each.len() == 2 * count => {
            let each = each.chunks_exact(2);
            let known = each.clone().all(|code| matches!(code, [0, 0 | 1]));
            known.then(|| Formats::of(each.map(|code| code == [0, 1])))
        }
        _ => None,
    }
}

fn kind(rest: &mut Cursor<'_>) -> Option<Kind> {
    match rest.bytes(1)? {
        b"S" => Some(Kind::Statement),
        b"P" => Some(Kind::Portal),
        _ => None,
    }
}

#[inline]
fn codes<'a>(rest: &mut Cursor<'a>) -> Option<&'a [u8]> {
    let count = usize::from(rest.u16()?);
    rest.bytes(2 * count)
}
