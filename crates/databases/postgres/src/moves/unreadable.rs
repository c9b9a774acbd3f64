//! Recognizes texts that have no form in UTF-8: databases of another encoding may hold such texts.

use windrow_core::Fault;

/// Returns true if a text has no form in the encoding that it was to be converted to: "invalid byte
/// sequence" (a database of SQL_ASCII), "has no equivalent in encoding" (all others).
pub(super) fn is_unreadable(fault: &Fault) -> bool {
    matches!(&*fault.code, "22021" | "22P05")
}

/// Returns a text in ASCII, with other characters as `\u{..}`.
pub(super) fn spelled_out(text: &str) -> String {
    let spell = |c: char| match c.is_ascii() {
        true => c.to_string(),
        false => c.escape_unicode().to_string(),
    };
    text.chars().map(spell).collect()
}
