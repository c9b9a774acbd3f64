//! Writes a table as an answer. All columns are texts, which are the same in both formats.

use bytes::{BufMut, BytesMut};

use crate::codec::answer::{message, text};

/// The OID of the type `text`.
const TEXT: u32 = 25;

/// A column: its name, and its explanation.
pub(super) type Column = (&'static str, &'static str);

/// The rows of a table.
pub(super) type Rows = Vec<Vec<String>>;

/// Writes RowDescription.
pub(super) fn fields(out: &mut BytesMut, columns: &[Column]) {
    message(out, b'T', |out| {
        out.put_u16(u16::try_from(columns.len()).unwrap_or_default());
        for (name, _) in columns {
            text(out, name.as_bytes());
            out.put_u32(0);
            out.put_u16(0);
            out.put_u32(TEXT);
            out.put_i16(-1);
            out.put_i32(-1);
            out.put_u16(0);
        }
    });
}

/// Writes DataRows.
pub(super) fn rows(out: &mut BytesMut, rows: &[Vec<String>]) {
    for row in rows {
        message(out, b'D', |out| {
            out.put_u16(u16::try_from(row.len()).unwrap_or_default());
            for value in row {
                out.put_i32(i32::try_from(value.len()).unwrap_or_default());
                out.put_slice(value.as_bytes());
            }
        });
    }
}

/// Returns a switch as the console shows it.
pub(super) fn on(on: bool) -> String {
    if on { "on" } else { "off" }.to_owned()
}
