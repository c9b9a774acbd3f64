//! Words for true and false.

/// Parses the words for true and false that CSV files have, and PostgreSQL's letters for them.
/// SQLite, MySQL and MariaDB know the words only in SQL, not as texts for a BOOLEAN.
pub fn truth(text: &str) -> Option<bool> {
    let is = |word: &str| text.eq_ignore_ascii_case(word);
    match () {
        () if is("true") || is("t") => Some(true),
        () if is("false") || is("f") => Some(false),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_else_is_true_or_false() {
        for (text, read) in [
            ("TRUE", Some(true)),
            ("t", Some(true)),
            ("False", Some(false)),
            ("F", Some(false)),
            ("yes", None),
            ("1", None),
            ("", None),
        ] {
            assert_eq!(truth(text), read, "{text}");
        }
    }
}
