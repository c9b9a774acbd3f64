//! The end of a certificate's validity, read from its DER form (RFC 5280, section 4.1).

use windrow_core::calendar::day_number;

const SEQUENCE: u8 = 0x30;
/// The tag of the version, which certificates of version 1 do not have.
const VERSION: u8 = 0xa0;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// Returns the moment after which a certificate is not valid, in seconds since 1970; `None` if the
/// bytes are not a certificate.
pub(super) fn not_after(certificate: &[u8]) -> Option<i64> {
    let (_, certificate, _) = element(certificate)?;
    let (_, mut fields, _) = element(certificate)?;
    if fields.first() == Some(&VERSION) {
        fields = element(fields)?.2;
    }
    // Serial number, algorithm of the signature, issuer.
    for _ in 0..3 {
        fields = element(fields)?.2;
    }
    let (SEQUENCE, validity, _) = element(fields)? else {
        return None;
    };
    let (kind, text, _) = element(element(validity)?.2)?;
    moment(kind, std::str::from_utf8(text).ok()?)
}

/// Returns the first element's tag and content, and the bytes after the element.
fn element(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let ([tag, length], rest) = bytes.split_first_chunk()?;
    let (length, rest) = match length {
        0..=0x7f => (usize::from(*length), rest),
        0x81..=0x84 => {
            let (digits, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
            let add = |sum, digit: &u8| sum << 8 | usize::from(*digit);
            (digits.iter().fold(0, add), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    Some((*tag, content, rest))
}

/// Returns the moment that a text describes. UTCTime has years of two digits, from 1950 on.
fn moment(kind: u8, text: &str) -> Option<i64> {
    let digits = text.strip_suffix('Z')?;
    let (year, rest) = match kind {
        UTC_TIME => {
            let (year, rest) = digits.split_at_checked(2)?;
            let year: i64 = year.parse().ok()?;
            (year + if year < 50 { 2000 } else { 1900 }, rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = digits.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let part = |at: usize| rest.get(at..at + 2)?.parse::<i64>().ok();
    let day = day_number(year, part(0)?, part(2)?)?;
    Some(day * 86_400 + part(4)? * 3_600 + part(6)? * 60 + part(8)?)
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn ends(year: i32) -> Option<i64> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.not_after = date_time_ymd(year, 3, 1);
        let made = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        not_after(made.der())
    }

    #[test]
    fn the_end_is_read_in_both_spellings() {
        assert_eq!(ends(2040), Some(2_214_172_800));
        assert_eq!(ends(2060), Some(2_845_324_800));
    }

    #[test]
    fn other_bytes_have_no_end() {
        for bytes in [
            &[][..],
            &[0x30],
            &[0x30, 0x84],
            &[0x30, 0x88, 255, 255],
            &[0x30, 2, 0x30, 9],
            &[0x30, 4, 0x30, 2, 0xa0, 0],
        ] {
            assert_eq!(not_after(bytes), None);
        }
    }
}
