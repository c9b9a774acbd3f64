//! A decimal number as `numeric_recv` reads it (`src/backend/utils/adt/numeric.c`).

use bytes::{BufMut, BytesMut};

/// Decimal digits in one digit of the binary form.
const GROUP: usize = 4;

/// Maximum number of digits that are written here. A longer number is left to the server.
const MAX_DIGITS: usize = 1000;

/// Appends the length and the binary form of a sign, digits, a point and digits. Returns `None`,
/// and appends nothing, for any other spelling.
pub(super) fn push(text: &[u8], out: &mut BytesMut) -> Option<()> {
    let (negative, digits) = match text.split_first()? {
        (b'-', rest) => (true, rest),
        (b'+', rest) => (false, rest),
        _ => (false, text),
    };
    let point = digits.iter().position(|b| *b == b'.');
    let (whole, fraction) = match point {
        Some(at) => (digits.get(..at)?, digits.get(at + 1..)?),
        None => (digits, &[][..]),
    };
    let plain = |part: &[u8]| part.iter().all(u8::is_ascii_digit);
    let count = whole.len() + fraction.len();
    if count == 0 || count > MAX_DIGITS || !plain(whole) || !plain(fraction) {
        return None;
    }
    let zeros = whole.iter().take_while(|b| **b == b'0').count();
    let whole = whole.get(zeros..)?;
    let whole_groups = whole.len().div_ceil(GROUP);
    let groups = whole_groups + fraction.len().div_ceil(GROUP);
    out.put_i32(i32::try_from(8 + 2 * groups).ok()?);
    out.put_i16(i16::try_from(groups).ok()?);
    // The place of the first group before the point, counted from 0.
    out.put_i16(i16::try_from(whole_groups).ok()? - 1);
    out.put_u16(if negative { 0x4000 } else { 0 });
    out.put_u16(u16::try_from(fraction.len()).ok()?);
    let (first, others) = whole.split_at(whole.len() % GROUP);
    if !first.is_empty() {
        out.put_u16(group(first));
    }
    for four in others.chunks(GROUP) {
        out.put_u16(group(four));
    }
    for four in fraction.chunks(GROUP) {
        let missing = (four.len()..GROUP).fold(1, |scale, _| scale * 10);
        out.put_u16(group(four) * missing);
    }
    Some(())
}

fn group(digits: &[u8]) -> u16 {
    digits
        .iter()
        .fold(0, |number, digit| number * 10 + u16::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Digits, weight, sign, scale.
    fn sent(text: &str) -> Option<(Vec<u16>, i16, u16, u16)> {
        let mut out = BytesMut::new();
        push(text.as_bytes(), &mut out)?;
        let all: Vec<u16> = out[4..]
            .chunks(2)
            .map(|two| u16::from_be_bytes([two[0], two[1]]))
            .collect();
        assert_eq!(usize::from(all[0]), all.len() - 4);
        assert_eq!(
            out[..4],
            i32::try_from(out.len() - 4).unwrap().to_be_bytes()
        );
        Some((all[4..].to_vec(), all[1].cast_signed(), all[2], all[3]))
    }

    #[test]
    fn digits_are_grouped_from_the_point() {
        for (text, expected) in [
            ("0", (vec![], -1, 0, 0)),
            ("12345.678", (vec![1, 2345, 6780], 1, 0, 3)),
            ("-1.50", (vec![1, 5000], 0, 0x4000, 2)),
            ("0.00001", (vec![0, 1000], -1, 0, 5)),
            ("+10000", (vec![1, 0], 1, 0, 0)),
            ("00.10", (vec![1000], -1, 0, 2)),
            (".5", (vec![5000], -1, 0, 1)),
            ("5.", (vec![5], 0, 0, 0)),
        ] {
            assert_eq!(sent(text), Some(expected), "{text}");
        }
        for misspelled in [
            "", "-", ".", "1e5", "NaN", " 1", "1 ", "1_0", "--1", "1.2.3",
        ] {
            assert_eq!(sent(misspelled), None, "{misspelled}");
        }
    }
}
