//! Reads numbers and strings from the bytes of a message, never past their end.

use memchr::memchr;

/// The rest of a message. Each method takes bytes from the front, or returns `None` if there are
/// too few.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    /// Returns a reader of these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes that are left.
    pub fn rest(self) -> &'a [u8] {
        self.0
    }

    /// True if no bytes are left.
    pub fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// Takes bytes.
    #[inline]
    pub fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(super) fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Takes a number of two bytes.
    #[inline]
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    pub(super) fn i16(&mut self) -> Option<i16> {
        self.array().map(i16::from_be_bytes)
    }

    /// Takes a number of four bytes.
    #[inline]
    pub fn i32(&mut self) -> Option<i32> {
        self.array().map(i32::from_be_bytes)
    }

    pub(super) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// Takes the bytes up to a zero byte, and the zero byte.
    #[inline]
    pub fn cstr(&mut self) -> Option<&'a [u8]> {
        let end = memchr(0, self.0)?;
        let text = self.bytes(end)?;
        self.bytes(1)?;
        Some(text)
    }

    /// Takes a column of a DataRow: a length and that many bytes, or -1 for NULL.
    #[inline]
    pub fn column(&mut self) -> Option<Option<&'a [u8]>> {
        let len = self.i32()?;
        match usize::try_from(len) {
            Ok(len) => self.bytes(len).map(Some),
            Err(_) => (len == -1).then_some(None),
        }
    }
}
