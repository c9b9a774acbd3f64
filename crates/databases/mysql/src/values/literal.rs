//! Writes values as literals, for statements in which a parameter would lose its type.

use mysql_async::Value as Cell;

/// Appends a value. If `binary` is set, its bytes are no text.
pub(crate) fn push(sql: &mut String, cell: &Cell, binary: bool) {
    match cell {
        Cell::NULL => sql.push_str("NULL"),
        Cell::Int(n) => sql.push_str(&n.to_string()),
        Cell::UInt(n) => sql.push_str(&n.to_string()),
        Cell::Double(x) => sql.push_str(&format!("{x:e}")),
        Cell::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !binary => push_text(sql, text),
            _ => push_hex(sql, bytes),
        },
        // Encoded values are never of these types.
        Cell::Float(_) | Cell::Date(..) | Cell::Time(..) => sql.push_str("NULL"),
    }
}

/// Appends a text, in hexadecimal if its meaning depends on `sql_mode`.
pub(crate) fn push_text(sql: &mut String, text: &str) {
    let plain = !text.bytes().any(|b| matches!(b, b'\'' | b'\\' | 0));
    if plain {
        sql.push('\'');
        sql.push_str(text);
        sql.push('\'');
    } else {
        sql.push_str("_utf8mb4 ");
        push_hex(sql, text.as_bytes());
    }
}

/// Returns the largest number of bytes of a value in a statement, with a comma.
pub(crate) fn size(cell: &Cell) -> usize {
    match cell {
        Cell::Bytes(bytes) => 2 * bytes.len() + 16,
        _ => 28,
    }
}

/// Appends bytes.
pub(crate) fn push_hex(sql: &mut String, bytes: &[u8]) {
    const DIGITS: [char; 16] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F',
    ];
    sql.push_str("X'");
    for byte in bytes {
        for nibble in [byte >> 4, byte & 15] {
            sql.extend(DIGITS.get(usize::from(nibble)));
        }
    }
    sql.push('\'');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_value_can_end_its_literal() {
        let mut sql = String::new();
        for text in ["plain é", "it's", "back\\slash", ""] {
            push(&mut sql, &Cell::Bytes(text.into()), false);
            sql.push(' ');
        }
        push(&mut sql, &Cell::Bytes(vec![0, 255]), true);
        push(&mut sql, &Cell::UInt(u64::MAX), false);
        assert_eq!(
            sql,
            "'plain é' _utf8mb4 X'69742773' _utf8mb4 X'6261636B5C736C617368' '' X'00FF'18446744073709551615"
        );
    }
}
