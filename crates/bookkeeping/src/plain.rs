//! Texts of SQL that every database understands.

use windrow_core::Fault;

/// Returns a name that Windrow has created as a literal: letters and digits of ASCII, and signs
/// without a meaning within quotes or for `LIKE`.
///
/// # Errors
/// The name has another character, which is a defect.
pub(crate) fn quoted(name: &str) -> Result<String, Fault> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".?-/".contains(&byte);
    match name.bytes().all(plain) {
        true => Ok(format!("'{name}'")),
        false => Err(Fault::internal(format!(
            "{name:?} is no name that Windrow gives to its own rows"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_could_end_a_literal_are_refused() {
        assert_eq!(quoted("0f.a1?7").unwrap(), "'0f.a1?7'");
        assert_eq!(quoted("f.csv-0a/lane").unwrap(), "'f.csv-0a/lane'");
        for name in ["a'b", "a\\", "a\0", "ä", "a%", "a_"] {
            assert!(quoted(name).is_err(), "{name}");
        }
    }
}
