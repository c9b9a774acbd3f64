//! Messages of a server.

use std::fmt;

use anyhow::{Result, bail};

/// A message of a server, as it came.
#[derive(Clone, PartialEq, Eq)]
pub struct Message {
    /// The kind of the message.
    pub tag: u8,
    /// The bytes after the length.
    pub body: Vec<u8>,
}

/// A column in a RowDescription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// The column's name.
    pub name: String,
    /// The table that it comes from, 0 for none.
    pub table: u32,
    /// The column's number in that table.
    pub number: u16,
    /// The number of its type.
    pub oid: u32,
    /// The type's length, its modifier, and the format (1: binary), as they came.
    pub rest: Vec<u8>,
}

/// No message of the tests is longer.
const LONGEST: usize = 1 << 30;

/// Returns the first message of what was read, and its length with all; `None` while it is not
/// whole.
///
/// # Errors
/// Its length makes no sense.
pub fn split(input: &[u8]) -> Result<Option<(Message, usize)>> {
    let Some((tag, rest)) = input.split_first() else {
        return Ok(None);
    };
    let Some((length, rest)) = rest.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let length = usize::try_from(u32::from_be_bytes(*length))?;
    if !(4..LONGEST).contains(&length) {
        bail!("a message {:?} of {length} bytes", char::from(*tag));
    }
    let body = rest.get(..length - 4).map(|body| Message {
        tag: *tag,
        body: body.to_vec(),
    });
    Ok(body.map(|message| (message, length + 1)))
}

impl Message {
    /// Returns the fields of an ErrorResponse or NoticeResponse, in their order.
    pub fn fields(&self) -> Vec<(u8, String)> {
        let parts = self.body.split(|byte| *byte == 0);
        parts
            .filter_map(|part| part.split_first())
            .map(|(code, text)| (*code, lossy(text)))
            .collect()
    }

    /// One of them.
    pub fn field(&self, code: u8) -> Option<String> {
        let mut fields = self.fields().into_iter();
        fields.find(|(c, _)| *c == code).map(|(_, text)| text)
    }

    /// Returns the SQLSTATE of an ErrorResponse; `None` for any other message.
    pub fn sqlstate(&self) -> Option<String> {
        (self.tag == b'E').then(|| self.field(b'C')).flatten()
    }

    /// Returns the command of a CommandComplete, such as `INSERT 0 1`.
    pub fn command(&self) -> Option<String> {
        let text = self.body.strip_suffix(&[0])?;
        (self.tag == b'C').then(|| lossy(text))
    }

    /// Returns the values of a DataRow.
    pub fn values(&self) -> Vec<Option<Vec<u8>>> {
        let mut cursor = Cursor(&self.body);
        let count = cursor.u16().unwrap_or(0);
        (0..count).map_while(|_| cursor.value()).collect()
    }

    /// Returns the columns of a RowDescription.
    pub fn columns(&self) -> Vec<Column> {
        let mut cursor = Cursor(&self.body);
        let count = cursor.u16().unwrap_or(0);
        (0..count).map_while(|_| cursor.column()).collect()
    }
}

/// Returns the first row's first value as text, in an answer to a query.
pub fn first_value(answer: &[Message]) -> Option<String> {
    let row = answer.iter().find(|m| m.tag == b'D')?;
    let value = row.values().into_iter().next()??;
    Some(lossy(&value))
}

/// Returns the SQLSTATE of the first error in an answer.
pub fn sqlstate(answer: &[Message]) -> Option<String> {
    answer.iter().find_map(Message::sqlstate)
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// As a person wants to read it.
impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", char::from(self.tag))?;
        match self.tag {
            b'E' | b'N' => {
                for (code, text) in self.fields() {
                    write!(f, "{}={text:?} ", char::from(code))?;
                }
                Ok(())
            }
            b'D' => {
                let values = self.values().into_iter();
                let texts: Vec<_> = values.map(|v| v.map(|v| lossy(&v))).collect();
                write!(f, "{texts:?}")
            }
            b'T' => write!(f, "{:?}", self.columns()),
            _ => write!(f, "{:?}", lossy(&self.body)),
        }
    }
}

struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn take(&mut self, n: usize) -> Option<&[u8]> {
        let (head, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(head)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_be_bytes(self.take(4)?.try_into().ok()?))
    }

    fn value(&mut self) -> Option<Option<Vec<u8>>> {
        match self.u32()? {
            u32::MAX => Some(None),
            length => Some(Some(self.take(length.try_into().ok()?)?.to_vec())),
        }
    }

    fn column(&mut self) -> Option<Column> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let name = lossy(self.take(end)?);
        self.take(1)?;
        Some(Column {
            name,
            table: self.u32()?,
            number: self.u16()?,
            oid: self.u32()?,
            rest: self.take(8)?.to_vec(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_cut_where_they_end() {
        let stream = b"C\0\0\0\x0fINSERT 0 1\0Z\0\0\0\x05I";
        let (first, length) = split(stream).unwrap().unwrap();
        assert_eq!(first.command().as_deref(), Some("INSERT 0 1"));
        let (second, rest) = split(&stream[length..]).unwrap().unwrap();
        assert_eq!((second.tag, length + rest), (b'Z', stream.len()));
        assert!(split(&stream[..length - 1]).unwrap().is_none());
        assert!(split(b"Z\0\0\0\x03").is_err());
    }

    #[test]
    fn rows_and_errors_are_read() {
        let row = Message {
            tag: b'D',
            body: b"\0\x02\0\0\0\x01x\xff\xff\xff\xff".to_vec(),
        };
        assert_eq!(row.values(), [Some(b"x".to_vec()), None]);
        let error = Message {
            tag: b'E',
            body: b"SERROR\0C23505\0Mno\0\0".to_vec(),
        };
        assert_eq!(sqlstate(&[row, error]).as_deref(), Some("23505"));
    }
}
