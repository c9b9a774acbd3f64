//! Writes messages to the server, with names that all sessions share.

use std::ops::Range;

use bytes::{BufMut, BytesMut};

use crate::codec::answer::{message, text};
use crate::codec::message::{Bind, HEADER};
use crate::pool::NOWHERE;

/// Writes Parse.
pub(super) fn parse(out: &mut BytesMut, name: &[u8], sql: &[u8], types: &[u32]) {
    message(out, b'P', |out| {
        text(out, name);
        text(out, sql);
        out.put_u16(u16::try_from(types.len()).unwrap_or(u16::MAX));
        types.iter().for_each(|oid| out.put_u32(*oid));
    });
}

/// Writes Bind. `rest`: the bytes after the names.
pub(super) fn bind(out: &mut BytesMut, portal: &[u8], statement: &[u8], rest: &[u8]) {
    message(out, b'B', |out| {
        text(out, portal);
        text(out, statement);
        out.put_slice(rest);
    });
}

/// Returns the bytes of a Bind after the names of its portal and its statement.
pub(super) fn behind_names<'b>(bind: &Bind<'_>, bytes: &'b [u8]) -> &'b [u8] {
    let names = HEADER + bind.portal.len() + bind.statement.len() + 2;
    bytes.get(names..).unwrap_or_default()
}

/// Writes a Bind that fails.
pub(super) fn failing(out: &mut BytesMut) {
    bind(out, b"", NOWHERE.as_bytes(), &[0; 6]);
}

/// Writes Describe or Close of a statement.
pub(super) fn statement(out: &mut BytesMut, tag: u8, name: &[u8]) {
    message(out, tag, |out| {
        out.put_u8(b'S');
        text(out, name);
    });
}

/// Writes Execute of the unnamed portal.
pub(super) fn execute(out: &mut BytesMut) {
    message(out, b'E', |out| {
        text(out, b"");
        out.put_u32(0);
    });
}

/// Writes Close of the unnamed portal.
pub(super) fn close_portal(out: &mut BytesMut) {
    message(out, b'C', |out| {
        out.put_u8(b'P');
        text(out, b"");
    });
}

/// Writes Sync.
pub(super) fn sync(out: &mut BytesMut) {
    message(out, b'S', |_| {});
}

/// Writes a simple query.
pub(super) fn query(out: &mut BytesMut, sql: &[u8]) {
    message(out, b'Q', |out| text(out, sql));
}

/// Writes an ErrorResponse in which a part of the body is replaced.
pub(super) fn error(out: &mut BytesMut, body: &[u8], place: Range<usize>, instead: &[u8]) {
    message(out, b'E', |out| {
        out.put_slice(body.get(..place.start).unwrap_or_default());
        out.put_slice(instead);
        out.put_slice(body.get(place.end..).unwrap_or_default());
    });
}
