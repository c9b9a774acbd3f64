//! The server's messages, borrowed from the receive buffer.
//!
//! The layouts are those of PostgreSQL's documentation, "Message Formats". A message is checked as
//! a whole when it is parsed; reading its fields afterwards cannot fail.

use std::borrow::Cow;

use super::cursor::Cursor;
use super::malformed::Malformed;
use super::server_error::ServerError;

/// A message of the server. [`super::Wire`] itself handles run-time parameters, notifications, and
/// notices that arrive before the first request.
#[derive(Debug)]
pub enum Answer<'a> {
    /// A statement was prepared.
    ParseComplete,
    /// A portal was bound.
    BindComplete,
    /// A statement or portal was closed.
    CloseComplete,
    /// The described statement gives no rows.
    NoData,
    /// An Execute reached its row limit.
    PortalSuspended,
    /// The statement was empty.
    EmptyQuery,
    /// The columns of the rows that follow.
    RowDescription(Fields<'a>),
    /// The types of a prepared statement's parameters.
    ParameterDescription(Oids<'a>),
    /// One row.
    DataRow(DataRow<'a>),
    /// A statement succeeded. It is not committed before [`Answer::Ready`].
    CommandComplete(Tag<'a>),
    /// A statement failed, and the server skips all messages up to the next Sync. Errors that end
    /// the connection (FATAL, PANIC) are in [`super::Broken::error`] instead.
    Error(ServerError),
    /// A notice or warning: the body of NoticeResponse.
    Notice(&'a [u8]),
    /// The answer to a Sync: `I` idle, `T` in a transaction, `E` in a failed transaction.
    Ready(u8),
    /// COPY FROM STDIN waits for data.
    CopyIn,
    /// COPY TO STDOUT begins.
    CopyOut,
    /// A piece of COPY TO STDOUT.
    CopyData(&'a [u8]),
    /// The end of COPY TO STDOUT.
    CopyDone,
}

impl<'a> Answer<'a> {
    /// Parses the body of a message.
    #[inline]
    pub(super) fn parse(tag: u8, body: &'a [u8]) -> Result<Self, Malformed> {
        let answer = match tag {
            b'D' => Self::DataRow(DataRow::parse(body)?),
            b'C' => Self::CommandComplete(Tag::parse(body)?),
            b'1' => bare(body, Self::ParseComplete)?,
            b'2' => bare(body, Self::BindComplete)?,
            b'3' => bare(body, Self::CloseComplete)?,
            b'n' => bare(body, Self::NoData)?,
            b's' => bare(body, Self::PortalSuspended)?,
            b'I' => bare(body, Self::EmptyQuery)?,
            b'c' => bare(body, Self::CopyDone)?,
            b'd' => Self::CopyData(body),
            b'Z' => match body {
                [status] => Self::Ready(*status),
                _ => return Err(Malformed),
            },
            b'T' => Self::RowDescription(Fields::parse(body)?),
            b't' => Self::ParameterDescription(Oids::parse(body)?),
            b'E' => Self::Error(ServerError::parse(body)?),
            b'G' => Self::CopyIn,
            b'H' => Self::CopyOut,
            _ => return Err(Malformed),
        };
        Ok(answer)
    }
}

fn bare<'a>(body: &[u8], answer: Answer<'a>) -> Result<Answer<'a>, Malformed> {
    if body.is_empty() {
        Ok(answer)
    } else {
        Err(Malformed)
    }
}

/// The command tag of a successful statement, such as `INSERT 0 5`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag<'a>(pub(super) &'a str);

impl<'a> Tag<'a> {
    fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut body = Cursor::new(body);
        let tag = body.cstr().ok_or(Malformed)?;
        if !body.is_empty() {
            return Err(Malformed);
        }
        std::str::from_utf8(tag).map(Self).map_err(|_| Malformed)
    }

    /// Returns true if the tag is this command, which counts no rows.
    pub fn is(self, command: &str) -> bool {
        self.0 == command
    }

    /// Returns the number of rows inserted, changed, deleted, copied or selected; 0 for commands
    /// that count none.
    pub fn rows(self) -> u64 {
        self.0
            .rsplit(' ')
            .next()
            .and_then(|n| n.parse().ok())
            .unwrap_or(0)
    }
}

/// A row, with values as text or binary, as the Bind requested.
#[derive(Clone, Copy, Debug)]
pub struct DataRow<'a> {
    body: &'a [u8],
    columns: Cursor<'a>,
    left: u16,
}

impl<'a> DataRow<'a> {
    /// Parses the body of a stored DataRow message; `None` if it does not have that layout.
    pub fn of(body: &'a [u8]) -> Option<Self> {
        Self::parse(body).ok()
    }

    /// The body of the message.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    #[inline]
    fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut columns = Cursor::new(body);
        let left = columns.u16().ok_or(Malformed)?;
        let row = Self {
            body,
            columns,
            left,
        };
        let mut check = columns;
        for _ in 0..left {
            check.column().ok_or(Malformed)?;
        }
        if check.is_empty() {
            Ok(row)
        } else {
            Err(Malformed)
        }
    }

    /// Returns the columns in order; `None` is NULL.
    pub fn columns(&self) -> Columns<'a> {
        Columns {
            columns: self.columns,
            left: self.left,
        }
    }

    /// Returns a column by its position, from 0; `None` is NULL or a position beyond the last
    /// column.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.columns().nth(index).flatten()
    }
}

/// The columns of a [`DataRow`].
#[derive(Clone, Debug)]
pub struct Columns<'a> {
    columns: Cursor<'a>,
    left: u16,
}

impl<'a> Columns<'a> {
    /// Returns the number of remaining columns, and their bytes as in a DataRow.
    pub fn rest(&self) -> (u16, &'a [u8]) {
        (self.left, self.columns.rest())
    }
}

impl<'a> Iterator for Columns<'a> {
    type Item = Option<&'a [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        self.columns.column()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left), Some(usize::from(self.left)))
    }
}

impl ExactSizeIterator for Columns<'_> {}

/// The columns of a result.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    body: &'a [u8],
    fields: Cursor<'a>,
    left: u16,
}

/// One column of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The name of the column. Bytes that are not UTF-8 (databases in SQL_ASCII) are replaced.
    pub name: Cow<'a, str>,
    /// The table of the column, or 0.
    pub table_oid: u32,
    /// The number of the column in that table, or 0.
    pub column_id: i16,
    /// The type of the column.
    pub type_oid: u32,
    /// The size of the type in bytes; negative if it varies.
    pub type_size: i16,
    /// The type's modifier (length, precision), or -1.
    pub type_modifier: i32,
    /// 0 text, 1 binary.
    pub format: i16,
}

impl<'a> Fields<'a> {
    /// The body of the message.
    pub fn body(&self) -> &'a [u8] {
        self.body
    }

    fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut fields = Cursor::new(body);
        let left = fields.u16().ok_or(Malformed)?;
        let mut check = fields;
        for _ in 0..left {
            field(&mut check).ok_or(Malformed)?;
        }
        if check.is_empty() {
            Ok(Self { body, fields, left })
        } else {
            Err(Malformed)
        }
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Field<'a>;

    fn next(&mut self) -> Option<Field<'a>> {
        self.left = self.left.checked_sub(1)?;
        field(&mut self.fields)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::from(self.left), Some(usize::from(self.left)))
    }
}

impl ExactSizeIterator for Fields<'_> {}

fn field<'a>(from: &mut Cursor<'a>) -> Option<Field<'a>> {
    Some(Field {
        name: String::from_utf8_lossy(from.cstr()?),
        table_oid: from.u32()?,
        column_id: from.i16()?,
        type_oid: from.u32()?,
        type_size: from.i16()?,
        type_modifier: from.i32()?,
        format: from.i16()?,
    })
}

/// The types of a prepared statement's parameters, in their order.
#[derive(Clone, Debug)]
pub struct Oids<'a>(Cursor<'a>);

impl<'a> Oids<'a> {
    fn parse(body: &'a [u8]) -> Result<Self, Malformed> {
        let mut body = Cursor::new(body);
        let count = usize::from(body.u16().ok_or(Malformed)?);
        if body.rest().len() == count * size_of::<u32>() {
            Ok(Self(body))
        } else {
            Err(Malformed)
        }
    }
}

impl Iterator for Oids<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        self.0.u32()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.0.rest().len() / size_of::<u32>();
        (left, Some(left))
    }
}

impl ExactSizeIterator for Oids<'_> {}
