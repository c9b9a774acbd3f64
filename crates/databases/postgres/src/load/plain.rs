//! COPY's text form: the text that a write of each field alone would send, with COPY's escapes
//! (PostgreSQL's documentation, "COPY", "Text Format").

use bytes::{BufMut, BytesMut};
use windrow_core::Field;

use super::misspelled::Misspelled;
use crate::catalog::column::Kind;
use crate::values::text;

/// The separator between two fields.
pub(super) const DELIMITER: u8 = b'\t';

/// The end of a row.
pub(super) const END: u8 = b'\n';

const NULL: &[u8] = b"\\N";

/// Appends a field. If it fails, the caller cuts off what was appended.
pub(super) fn push(
    kind: &Kind,
    field: &Field<'_>,
    out: &mut BytesMut,
    scratch: &mut Vec<u8>,
) -> Result<(), Misspelled> {
    match *field {
        Field::Null => out.put_slice(NULL),
        Field::Plain(text) | Field::Text(text) if is_plain(kind) => escape(text.as_bytes(), out),
        _ => {
            scratch.clear();
            text::push(kind, &field.value(), scratch).map_err(Misspelled::from)?;
            escape(scratch, out);
        }
    }
    Ok(())
}

/// Returns true if a text in a column of this kind stands for itself.
pub(super) fn is_plain(kind: &Kind) -> bool {
    !matches!(
        kind,
        Kind::Bytea | Kind::Json | Kind::Jsonb | Kind::Array(..)
    )
}

fn escape(text: &[u8], out: &mut BytesMut) {
    let mut left = text;
    while let Some(at) = left.iter().position(|b| is_special(*b)) {
        let (plain, rest) = left.split_at(at);
        out.put_slice(plain);
        let Some((special, behind)) = rest.split_first() else {
            break;
        };
        let letter = match special {
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            other => *other,
        };
        out.put_slice(&[b'\\', letter]);
        left = behind;
    }
    out.put_slice(left);
}

fn is_special(b: u8) -> bool {
    matches!(b, b'\\' | b'\n' | b'\r' | b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_ends_it() {
        let mut out = BytesMut::new();
        escape("a\tb\\N\r\n\\.\u{b}é\\".as_bytes(), &mut out);
        assert_eq!(out, "a\\tb\\\\N\\r\\n\\\\.\u{b}é\\\\".as_bytes());
    }
}
