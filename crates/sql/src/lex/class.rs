//! What a byte may be a part of.

/// May begin an identifier without quotes.
const BEGINS: u8 = 1;
/// May stand in one behind its first character.
pub(super) const CONTINUES: u8 = 2;
/// May stand in an operator.
const OPERATOR: u8 = 4;
/// Space, as far as all versions of the server agree.
pub(super) const SPACE: u8 = 8;

/// What each byte may be.
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

/// Whether a byte is of a class.
#[inline]
pub(super) fn is(byte: u8, class: u8) -> bool {
    CLASSES
        .get(usize::from(byte))
        .is_some_and(|found| found & class != 0)
}

/// Whether it may begin an identifier.
#[inline]
pub(super) fn begins(byte: u8) -> bool {
    is(byte, BEGINS)
}

/// Whether it may stand in an operator.
#[inline]
pub(super) fn is_operator(byte: u8) -> bool {
    is(byte, OPERATOR)
}
