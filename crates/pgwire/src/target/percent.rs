//! Percent-decoding, as strict as libpq's.

use windrow_core::Fault;

/// Decodes a part of a URL. `what` names the part for the message; the part itself may be secret.
pub(super) fn decode(part: &str, what: &str) -> Result<String, Fault> {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        if *first != b'%' {
            bytes.push(*first);
            continue;
        }
        let byte = rest
            .split_first_chunk::<2>()
            .and_then(|([high, low], behind)| Some((hex(*high)? << 4 | hex(*low)?, behind)));
        match byte {
            Some((0, _)) => {
                return Err(Fault::invalid(format!(
                    "{what} of the URL holds %00, which PostgreSQL does not allow"
                )));
            }
            Some((byte, behind)) => {
                bytes.push(byte);
                rest = behind;
            }
            None => {
                return Err(Fault::invalid(format!(
                    "{what} of the URL holds a % that two hexadecimal digits do not follow; a plain % is written %25"
                )));
            }
        }
    }
    String::from_utf8(bytes)
        .map_err(|_| Fault::invalid(format!("{what} of the URL is not UTF-8 once decoded")))
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
}
