//! Classes of bytes: the tokens that a byte may be part of.

/// The class of bytes that may begin an identifier without quotes.
const BEGINS: u8 = 1;
/// The class of bytes that may continue such an identifier.
pub(super) const CONTINUES: u8 = 2;
/// The class of bytes in operators.
const OPERATOR: u8 = 4;
/// The class of space that all versions of the server recognize.
pub(super) const SPACE: u8 = 8;

/// The classes of each byte.
static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut all = classes.as_mut_slice();
    let mut byte = 0_u8;
    while let [class, rest @ ..] = all {
        let letter = byte.is_ascii_alphabetic() || byte == b'_' || byte >= 0x80;
        *class = match byte {
            _ if letter => BEGINS | CONTINUES,
            b'0'..=b'9' | b'$' => CONTINUES,
            b'~' | b'!' | b'@' | b'#' | b'^' | b'&' | b'|' | b'`' | b'?' => OPERATOR,
            b'+' | b'-' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' => OPERATOR,
            b' ' | b'\t' | b'\n' | b'\r' | 0x0c => SPACE,
            _ => 0,
        };
        all = rest;
        byte = byte.wrapping_add(1);
    }
    classes
}

/// Returns true if a byte has a class.
#[inline]
pub(super) fn is(byte: u8, class: u8) -> bool {
    CLASSES
        .get(usize::from(byte))
        .is_some_and(|found| found & class != 0)
}

/// Returns true if a byte may begin an identifier.
#[inline]
pub(super) fn begins(byte: u8) -> bool {
    is(byte, BEGINS)
}

/// Returns true if a byte may be part of an operator.
#[inline]
pub(super) fn is_operator(byte: u8) -> bool {
    is(byte, OPERATOR)
}
