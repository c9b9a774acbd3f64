//! Parses names as the server quotes them: a quote inside a name is doubled.

/// Reads the quoted name at the beginning of a text, and returns the name and the text behind the
/// closing quote.
pub(crate) fn quoted_name(quote: char, text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix(quote)?;
    let mut name = String::new();
    loop {
        let (before, behind) = rest.split_once(quote)?;
        name.push_str(before);
        match behind.strip_prefix(quote) {
            Some(more) => {
                name.push(quote);
                rest = more;
            }
            None => return Some((name, behind)),
        }
    }
}
