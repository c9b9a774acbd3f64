//! Checks of records that all formats have in common.

use super::portion::{Portion, PortionLimits};

/// True if no further record is to be added.
pub(super) fn is_full(portion: &Portion, most: PortionLimits, bad_bytes: usize) -> bool {
    portion.records.len() + portion.bad.len() >= most.records.max(1)
        || portion.rows.bytes() + bad_bytes >= most.bytes.max(1)
}

/// Returns the record as text.
///
/// # Errors
/// What to tell the user.
pub(super) fn utf8(raw: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(raw).map_err(|error| {
        format!(
            "is no text in the file's encoding from byte {} of the record on (without another encoding being named, a \
             file is UTF-8)",
            error.valid_up_to() + 1
        )
    })
}

/// # Errors
/// What to tell the user.
pub(super) fn no_nul(text: &[u8]) -> Result<(), String> {
    match memchr::memchr(0, text) {
        None => Ok(()),
        Some(at) => Err(format!(
            "has a NUL character, as its byte {}, which no column of text can hold",
            at + 1
        )),
    }
}
