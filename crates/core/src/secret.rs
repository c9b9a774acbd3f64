//! Secrets, which are never shown: passwords, tokens, verifiers, and URLs that may contain one.

use std::convert::Infallible;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use subtle::ConstantTimeEq;

/// A text that neither `Debug` nor `Display` shows, so it may be part of settings, errors and
/// logged values. Only [`Secret::reveal`] returns it.
#[derive(Clone, Default)]
pub struct Secret(Box<str>);

impl Secret {
    /// Returns the text, for a login. It must not be part of any message.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// True if the text is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Compares in constant time for texts of the same length.
impl PartialEq for Secret {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_bytes().ct_eq(other.0.as_bytes()).into()
    }
}

impl Eq for Secret {}

impl Hash for Secret {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text.into())
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl From<&String> for Secret {
    fn from(text: &String) -> Self {
        Self(text.as_str().into())
    }
}

impl FromStr for Secret {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(text.into())
    }
}

/// Returns the name of a URL's parameter for a message: unchanged if it is a word. Anything else
/// may be part of a password whose special characters were not encoded.
pub fn shown_parameter(name: &str) -> String {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    if !name.is_empty() && name.bytes().all(is_word) {
        format!("{name:?}")
    } else {
        "whose name is not shown, as it may be a part of a password (encode ?, /, # and @ in it)"
            .to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_shown_by_its_name_alone() {
        let secret = Secret::from("s3cret");
        assert_eq!(
            format!("{secret} {secret:?} {:#?}", Some(&secret)),
            "*** *** Some(\n    ***,\n)"
        );
        assert_eq!(secret.reveal(), "s3cret");
        assert!(secret == Secret::from("s3cret".to_owned()));
        for other in ["", "s3cre", "s3cret0", "S3cret"] {
            assert!(secret != Secret::from(other));
        }
    }
}
