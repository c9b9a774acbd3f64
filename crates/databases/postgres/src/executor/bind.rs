//! Builds a Bind message part by part.

use bytes::{BufMut, BytesMut};
use postgres_protocol::message::frontend;
use windrow_calls::Formats;

use crate::values::encode::{Unfit, put_i32_at};

/// A Bind message under construction: `put` its parts, then `close` it.
pub(crate) struct Bind<'o> {
    pub(crate) out: &'o mut BytesMut,
    start: usize,
}

impl<'o> Bind<'o> {
    /// Begins the message for a prepared statement, or for the unnamed one.
    pub(crate) fn open(out: &'o mut BytesMut, statement: Option<u64>) -> Self {
        let start = out.len();
        out.put_u8(b'B');
        out.put_i32(0);
        out.put_u8(0);
        if let Some(number) = statement {
            out.put_u8(b'w');
            out.put_slice(itoa::Buffer::new().format(number).as_bytes());
        }
        out.put_u8(0);
        Self { out, start }
    }

    pub(crate) fn formats(&mut self, formats: &Formats) -> Result<(), Unfit> {
        match formats {
            Formats::Text => self.out.put_i16(0),
            Formats::Binary => self.all_binary(),
            Formats::Each(each) => {
                self.count(each.len())?;
                for binary in each {
                    self.out.put_i16(i16::from(*binary));
                }
            }
        }
        Ok(())
    }

    pub(crate) fn all_binary(&mut self) {
        self.out.put_i16(1);
        self.out.put_i16(1);
    }

    /// Appends the formats of a set-based statement's rows. Windrow's own columns, `heads` in
    /// number, are binary, and those of the writes are as given. If `heads` is 0, all are text.
    pub(crate) fn results(
        &mut self,
        heads: u8,
        own: impl ExactSizeIterator<Item = bool>,
    ) -> Result<(), Unfit> {
        if heads == 0 {
            self.out.put_i16(0);
            return Ok(());
        }
        self.count(usize::from(heads) + own.len())?;
        for is_binary in (0..heads).map(|_| true).chain(own) {
            self.out.put_i16(i16::from(is_binary));
        }
        Ok(())
    }

    pub(crate) fn count(&mut self, count: usize) -> Result<(), Unfit> {
        self.out.put_u16(u16::try_from(count).map_err(|_| Unfit)?);
        Ok(())
    }

    /// Appends a parameter. Its length is filled in after it is written.
    pub(crate) fn parameter(
        &mut self,
        write: impl FnOnce(&mut BytesMut) -> Result<(), Unfit>,
    ) -> Result<(), Unfit> {
        let at = self.out.len();
        self.out.put_i32(0);
        write(self.out)?;
        put_i32_at(self.out, at, self.out.len() - at - size_of::<i32>())
    }

    /// Ends a message without parameters, whose rows are read as text.
    pub(crate) fn close_bare(self) -> Result<(), Unfit> {
        // No formats, no parameters, no formats of results.
        self.out.put_slice(&[0; 6]);
        self.close()
    }

    /// Ends the message, and appends the Execute of its portal.
    pub(crate) fn close(self) -> Result<(), Unfit> {
        put_i32_at(self.out, self.start + 1, self.out.len() - self.start - 1)?;
        frontend::execute("", 0, self.out).map_err(|_| Unfit)
    }
}
