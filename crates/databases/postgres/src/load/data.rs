//! The rows of a portion as the data of a COPY.

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::misspelled::Misspelled;

/// A portion's rows as COPY's data, piece by piece.
pub(super) trait Data: Send {
    /// Returns the statement's options for this form, which follow `FROM STDIN`.
    fn options(&self) -> String;

    /// Returns true if rows are still to be sent.
    fn has_more(&self) -> bool;

    /// Returns the number of rows that were sent.
    fn sent(&self) -> usize;

    /// Takes no further rows.
    fn stop(&mut self);

    /// Appends the header before all rows.
    fn head(&mut self, _: &mut BytesMut) {}

    /// Appends some rows as one message.
    fn piece(&mut self, out: &mut BytesMut);

    /// Appends the end after all rows.
    fn tail(&mut self, _: &mut BytesMut) {}

    /// Returns the reason why the rows were broken off, if they were.
    fn misspelled(&self) -> Option<&Misspelled> {
        None
    }

    /// Returns the places of the rows that were left out so far.
    fn left(&self) -> &[usize] {
        &[]
    }
}

/// Appends the message that makes a COPY fail.
pub(super) fn push_break(out: &mut BytesMut) {
    let failed = frontend::copy_fail("a value is not spelled as COPY needs it", out);
    debug_assert!(failed.is_ok(), "no zero byte is in it");
}
