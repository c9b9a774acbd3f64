//! Writes JSON texts.

use serde_json::value::RawValue;

/// Appends a text as a JSON string.
pub fn push_text(out: &mut Vec<u8>, text: &str) {
    // Writing to memory cannot fail.
    serde_json::to_writer(out, text).ok();
}

/// True for one whole JSON value, which can be part of a request as it is.
pub fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_end_its_string() {
        let mut out = Vec::new();
        push_text(&mut out, "a\"],[\"\\\n\0ü");
        assert_eq!(out, r#""a\"],[\"\\\n\u0000ü""#.as_bytes());
    }

    #[test]
    fn only_one_whole_value_is_json() {
        for good in ["{\"a\":[1,2]}", "[]", "1.5e3", "null", "\"x\""] {
            assert!(is_json(good), "{good}");
        }
        for bad in ["", "{", "[1]]", "1,2", "NaN", "01", "'x'", "{a:1}"] {
            assert!(!is_json(bad), "{bad}");
        }
    }
}
