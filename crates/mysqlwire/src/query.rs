//! Sends Windrow's own queries on a server connection, by the text protocol.

use std::io;

use bytes::{Buf, Bytes};
use mysql_common::io::BufMutExt;

use crate::answer::Forms;
use crate::command;
use crate::packet::Wire;
use crate::reply::Reply;

/// The longest packet of an answer to one of Windrow's own queries, in bytes.
const MAX_ANSWER_BYTES: usize = 1 << 20;

/// A row of an answer; `None` is NULL.
pub type TextRow = Vec<Option<Bytes>>;

/// Writes a text into the outbox, as a command of its own. `has_attributes` is true if the
/// connection has `CLIENT_QUERY_ATTRIBUTES`.
pub fn put_query(wire: &mut Wire, sql: &str, has_attributes: bool) {
    let mut content = vec![command::QUERY];
    if has_attributes {
        // One set of attributes, which is empty.
        content.extend_from_slice(&[0, 1]);
    }
    content.extend_from_slice(sql.as_bytes());
    wire.set_next(0);
    wire.put(&content);
}

/// Reads the answer to a text. Not cancel safe.
///
/// # Errors
/// The stream fails or ends.
pub async fn read_reply(wire: &mut Wire, forms: Forms) -> io::Result<Reply> {
    Reply::read(wire, command::QUERY, forms, MAX_ANSWER_BYTES).await
}

/// Adds a value to a row of the text protocol.
pub fn put_text(row: &mut Vec<u8>, value: &[u8]) {
    row.put_lenenc_int(value.len() as u64);
    row.extend_from_slice(value);
}

/// Returns the place of the collation's number in the packet of a column: two bytes. `is_extended`
/// is true if the packet has MariaDB's extended metadata.
pub fn collation_place(column: &[u8], is_extended: bool) -> Option<usize> {
    // Catalog, schema, table, original table, name, original name.
    let texts = if is_extended { 7 } else { 6 };
    let mut at = 0;
    for _ in 0..texts {
        let len = *column.get(at)?;
        at += match len {
            0xfc => {
                let len: [u8; 2] = column.get(at + 1..at + 3)?.try_into().ok()?;
                3 + usize::from(u16::from_le_bytes(len))
            }
            0xfb.. => return None,
            len => 1 + usize::from(len),
        };
    }
    // The length of the fields that follow.
    let place = at + 1;
    (column.len() >= place + 2).then_some(place)
}

/// Reads a row of the text protocol, up to the first incomplete value.
pub fn text_row(mut content: Bytes) -> TextRow {
    let mut row = Vec::new();
    while let Some(first) = content.first().copied() {
        content.advance(1);
        let width = match first {
            0xfb => {
                row.push(None);
                continue;
            }
            0xfc => 2,
            0xfd => 3,
            0xfe => 8,
            _ => 0,
        };
        let len = match width {
            0 => u64::from(first),
            _ if content.len() < width => break,
            _ => content.get_uint_le(width),
        };
        let Some(len) = usize::try_from(len)
            .ok()
            .filter(|len| *len <= content.len())
        else {
            break;
        };
        row.push(Some(content.split_to(len)));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_collation_of_a_column_is_found() {
        let column = b"\x03def\0\0\0\x011\0\x0c\x2d\0\x01\0\0\0\xfd\0\0\0\0\0";
        let place = collation_place(column, false).unwrap();
        assert_eq!(column[place..place + 2], [45, 0]);
        assert_eq!(collation_place(b"\x03def", false), None);
        let column = b"\x03def\0\0\0\x011\0\x02\0j\x0c\x2d\0\x01\0\0\0\xfd\0\0\0\0\0";
        let place = collation_place(column, true).unwrap();
        assert_eq!(column[place..place + 2], [45, 0]);
    }

    #[test]
    fn rows_are_cut_into_values() {
        let long = [b"\xfc\x2c\x01".as_slice(), &[b'x'; 300]].concat();
        let content = [b"\x02ab\xfb\x00".as_slice(), &long].concat();
        let row = text_row(content.into());
        let lengths: Vec<_> = row.iter().map(|v| v.as_ref().map(Bytes::len)).collect();
        assert_eq!(lengths, [Some(2), None, Some(0), Some(300)]);
        assert_eq!(text_row(Bytes::from_static(b"\x05ab")).len(), 0);
        assert_eq!(text_row(Bytes::from_static(b"\xfe\x01")).len(), 0);
    }
}
