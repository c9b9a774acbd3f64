//! The rows of a portion as the data of a COPY.

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use super::misspelled::Misspelled;

/// A portion's rows as COPY's data, piece by piece.
pub(super) trait Data: Send {
    /// How the statement asks for this form, behind `FROM STDIN`.
    fn options(&self) -> String;

    /// True if rows are still to be sent.
    fn has_more(&self) -> bool;

    /// How many rows were sent.
    fn sent(&self) -> usize;

    /// Takes no further rows.
    fn stop(&mut self);

    /// Appends what stands before all rows.
    fn head(&mut self, _: &mut BytesMut) {}

    /// Appends some rows as one message.
    fn piece(&mut self, out: &mut BytesMut);

    /// Appends what stands behind all rows.
    fn tail(&mut self, _: &mut BytesMut) {}

    /// Why it was broken off.
    fn misspelled(&self) -> Option<&Misspelled> {
        None
    }

    /// The rows that were left out so far, by their places.
    fn left(&self) -> &[usize] {
        &[]
    }
}

/// Appends what ends a COPY without its rows.
pub(super) fn push_break(out: &mut BytesMut) {
    let failed = frontend::copy_fail("a value is not spelled as COPY needs it", out);
    debug_assert!(failed.is_ok(), "no zero byte is in it");
}
