//! A client's key.

use windrow_bookkeeping::KeyPart;
use windrow_core::Fault;

/// A client's name for one of its requests and all repetitions of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct IdempotencyKey(Box<str>);

impl IdempotencyKey {
    /// Checks a key.
    ///
    /// # Errors
    /// It is empty, too long, or has other characters than the visible ones of ASCII.
    pub fn new(text: &str) -> Result<Self, Fault> {
        if text.is_empty() {
            return Err(Fault::invalid("the idempotency key is empty"));
        }
        if text.len() > KeyPart::KEY_BYTES {
            return Err(Fault::invalid(format!(
                "the idempotency key has {} bytes; {} are the most",
                text.len(),
                KeyPart::KEY_BYTES
            )));
        }
        match text.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Ok(Self(text.into())),
            false => Err(Fault::invalid(
                "the idempotency key has characters that are not visible ones of ASCII",
            )),
        }
    }

    /// Returns a key of the gateway's own, for a request without one. It contains a blank, so no
    /// client can have it.
    pub(crate) fn own() -> Self {
        Self(format!("windrow {:032x}", rand::random::<u128>()).into())
    }

    /// Reads the value of the header `Idempotency-Key`: a string in quotation marks, as in the
    /// draft (draft-ietf-httpapi-idempotency-key-header-07, with RFC 8941, section 3.3.3), or the
    /// key without them, as most clients send it.
    ///
    /// # Errors
    /// As [`IdempotencyKey::new`]; a quotation mark is missing, or a backslash comes before any
    /// other character than a backslash or a quotation mark.
    pub fn from_header(value: &[u8]) -> Result<Self, Fault> {
        let text = std::str::from_utf8(value).map_err(|_| malformed())?;
        match text.trim_matches([' ', '\t']).strip_prefix('"') {
            None => Self::new(text.trim_matches([' ', '\t'])),
            Some(quoted) => Self::new(&unquoted(quoted).ok_or_else(malformed)?),
        }
    }

    /// Returns the key.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the text up to the closing quotation mark, which must be the last character.
fn unquoted(text: &str) -> Option<String> {
    let mut characters = text.strip_suffix('"')?.chars();
    let mut out = String::with_capacity(text.len());
    while let Some(character) = characters.next() {
        match character {
            '\\' => out.push(
                characters
                    .next()
                    .filter(|next| matches!(next, '"' | '\\'))?,
            ),
            '"' => return None,
            other => out.push(other),
        }
    }
    Some(out)
}

fn malformed() -> Fault {
    Fault::invalid(
        "the header Idempotency-Key makes no sense; write a string such as \"8e03978e-40d5-43dd\"",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_with_quotation_marks_and_without() {
        let read = |text: &str| IdempotencyKey::from_header(text.as_bytes());
        for text in ["\"a-1\"", "a-1", " \"a-1\" ", "a-1 "] {
            assert_eq!(read(text).unwrap().as_str(), "a-1", "{text}");
        }
        assert_eq!(read(r#""a\"\\b""#).unwrap().as_str(), r#"a"\b"#);
        let long = "x".repeat(256);
        for wrong in [
            "", "\"\"", "\"a", r#""a\""#, r#""\a""#, r#""a"b""#, "a b", "ä", &long,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read(&long).unwrap_err().message.contains("256 bytes; 255"));
    }
}
