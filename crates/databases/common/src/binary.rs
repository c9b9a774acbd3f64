//! Binary data as text.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// The prefix of hexadecimal digits, which no base64 has.
const HEX: &str = "\\x";

/// Appends the bytes of a text: base64 with padding, or hexadecimal digits after `\x` as PostgreSQL
/// writes them.
///
/// # Errors
/// A description of the defect, to follow the name of what the text is for.
pub fn decode(text: &str, out: &mut Vec<u8>) -> Result<(), String> {
    let Some(digits) = text.strip_prefix(HEX) else {
        return STANDARD.decode_vec(text, out).map_err(|error| {
            format!(
                "must be base64, or hexadecimal digits after \\x, because the column holds binary data: {error}"
            )
        });
    };
    for pair in digits.as_bytes().chunks(2) {
        let byte = match pair {
            [high, low] => nibble(*high).zip(nibble(*low)),
            _ => None,
        };
        let Some((high, low)) = byte else {
            return Err("has something else than pairs of hexadecimal digits after \\x".into());
        };
        out.push(high << 4 | low);
    }
    Ok(())
}

fn nibble(digit: u8) -> Option<u8> {
    let value = char::from(digit).to_digit(16)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_are_read() {
        let read = |text: &str| {
            let mut out = Vec::new();
            decode(text, &mut out).map(|()| out)
        };
        assert_eq!(read("AP8="), Ok(vec![0, 255]));
        assert_eq!(read("\\x00fF"), Ok(vec![0, 255]));
        assert_eq!(read("\\x"), Ok(vec![]));
        assert_eq!(read(""), Ok(vec![]));
        for bad in ["no base64!", "\\x0", "\\x0g", "\\xä"] {
            assert!(read(bad).is_err(), "{bad}");
        }
    }
}
