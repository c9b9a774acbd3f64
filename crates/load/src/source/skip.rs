//! Checks that all formats apply to records.

use super::portion::{Portion, PortionLimits};

/// Returns true if no further record fits.
pub(super) fn is_full(portion: &Portion, most: PortionLimits, bad_bytes: usize) -> bool {
    portion.records.len() + portion.bad.len() >= most.records.max(1)
        || portion.rows.bytes() + bad_bytes >= most.bytes.max(1)
}

/// Returns the record as text.
///
/// # Errors
/// A message for the user.
pub(super) fn utf8(raw: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(raw).map_err(|error| {
        format!(
            "is no text in the file's encoding from byte {} of the record on (without another encoding being named, a \
             file is UTF-8)",
            error.valid_up_to() + 1
        )
    })
}

/// Checks that a text contains no NUL character.
///
/// # Errors
/// A message for the user.
pub(super) fn no_nul(text: &[u8]) -> Result<(), String> {
    match memchr::memchr(0, text) {
        None => Ok(()),
        Some(at) => Err(format!(
            "has a NUL character, as its byte {}, which no column of text can hold",
            at + 1
        )),
    }
}
