//! Records of CSV that the server splits into fields itself.

use bytes::{BufMut, BytesMut};
use postgres_protocol::escape::escape_literal;
use windrow_core::{CsvStyle, CsvText};

use super::data::Data;
use super::layout::Layout;
use super::plain::is_plain;
use super::target::Target;
use crate::catalog::column::Kind;

/// Number of bytes of a message.
const PIECE: usize = 128 * 1024;

/// Returns true if each field of such records means what it would mean in an INSERT: the server
/// reads it as the text of its column, and COPY has options for the style (`ProcessCopyOptions` of
/// `src/backend/commands/copy.c`).
pub(super) fn passes(layout: &Layout, style: &CsvStyle) -> bool {
    let CsvStyle {
        delimiter,
        quote,
        null,
    } = style;
    let plain = |byte: u8| byte.is_ascii() && !matches!(byte, 0 | b'\n' | b'\r');
    // If keys may exist already, each row needs its place in the portion.
    layout.staged.is_none()
        && layout.columns.iter().all(is_read)
        && plain(*delimiter)
        && plain(*quote)
        && delimiter != quote
        && !null
            .bytes()
            .any(|byte| byte == *delimiter || byte == *quote || matches!(byte, 0 | b'\n' | b'\r'))
}

/// Returns true if the column takes a field of CSV unchanged.
fn is_read(target: &Target) -> bool {
    // A column of JSON does too: the field is the text of the JSON.
    let json = matches!(target.kind, Kind::Json | Kind::Jsonb);
    !target.is_judged() && (json || is_plain(&target.kind))
}

/// Records that are being sent.
pub(super) struct Verbatim<'a> {
    csv: CsvText<'a>,
    rest: &'a [u8],
}

impl<'a> Verbatim<'a> {
    pub(super) fn new(csv: CsvText<'a>) -> Self {
        Self {
            csv,
            rest: csv.text.as_bytes(),
        }
    }
}

impl Data for Verbatim<'_> {
    fn options(&self) -> String {
        let literal = |byte: u8| escape_literal(char::from(byte).encode_utf8(&mut [0; 4]));
        let CsvStyle {
            delimiter,
            quote,
            null,
        } = self.csv.style;
        format!(
            " (FORMAT csv, DELIMITER {}, QUOTE {}, NULL {})",
            literal(*delimiter),
            literal(*quote),
            escape_literal(null),
        )
    }

    fn has_more(&self) -> bool {
        !self.rest.is_empty()
    }

    fn sent(&self) -> usize {
        self.csv.records
    }

    fn stop(&mut self) {
        self.rest = &[];
    }

    fn piece(&mut self, out: &mut BytesMut) {
        // Messages may end anywhere in a record (PostgreSQL's documentation, "COPY Operations").
        let (piece, rest) = self.rest.split_at(self.rest.len().min(PIECE));
        self.rest = rest;
        out.put_u8(b'd');
        out.put_u32(4 + u32::try_from(piece.len()).unwrap_or_default());
        out.put_slice(piece);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_cannot_end_their_literals() {
        let style = CsvStyle {
            delimiter: b'\'',
            quote: b'\\',
            null: "N'A\\".into(),
        };
        let csv = CsvText {
            style: &style,
            text: "",
            records: 0,
        };
        assert_eq!(
            Verbatim::new(csv).options(),
            " (FORMAT csv, DELIMITER '''', QUOTE  E'\\\\', NULL  E'N''A\\\\')"
        );
    }
}
