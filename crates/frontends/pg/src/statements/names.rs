//! The names of statements in the texts of EXECUTE and DEALLOCATE.

use std::ops::Range;

/// The name in EXECUTE, as the server reads it, and where it stands; `None` for any other text.
pub(crate) fn executed(text: &[u8]) -> Option<(Range<usize>, String)> {
    let text = std::str::from_utf8(text).ok()?;
    let rest = strip_word(text.trim_start(), "execute")?;
    let start = text.len() - rest.len();
    if let Some(quoted) = rest.strip_prefix('"') {
        let length = quoted.find('"')?;
        let name = quoted.get(..length)?;
        let is_whole = !quoted.get(length + 1..)?.starts_with('"');
        return is_whole.then(|| (start..start + length + 2, name.to_owned()));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let length = rest.find(|c: char| !is_plain(c)).unwrap_or(rest.len());
    let name = rest.get(..length).filter(|name| !name.is_empty())?;
    Some((start..start + length, name.to_ascii_lowercase()))
}

/// The name in DEALLOCATE of one statement, as the server reads it; `None` for any other text.
pub(crate) fn deallocate(text: &[u8]) -> Option<String> {
    let name = deallocated(text)?;
    if let Some(quoted) = name
        .strip_prefix('"')
        .and_then(|name| name.strip_suffix('"'))
    {
        let plain = quoted.replace("\"\"", "\u{0}");
        return (!plain.contains('"')).then(|| plain.replace('\u{0}', "\""));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    let is_name = !name.is_empty() && name.chars().all(is_plain);
    (is_name && !name.eq_ignore_ascii_case("all")).then(|| name.to_ascii_lowercase())
}

/// True for DEALLOCATE ALL.
pub(crate) fn deallocates_all(text: &[u8]) -> bool {
    deallocated(text).is_some_and(|name| name.eq_ignore_ascii_case("all"))
}

/// What stands behind DEALLOCATE.
fn deallocated(text: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let rest = strip_word(text, "deallocate")?;
    let rest = strip_word(rest, "prepare").unwrap_or(rest);
    Some(rest.trim_end_matches(|c: char| c == ';' || c.is_ascii_whitespace()))
}

fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(word.len())?;
    let trimmed = rest.trim_start();
    (head.eq_ignore_ascii_case(word) && trimmed.len() < rest.len()).then_some(trimmed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn execute_names_a_statement() {
        for (text, name) in [
            ("execute One (1, 2)", Some(("One", "one"))),
            (" EXECUTE \"My one\"(1);", Some(("\"My one\"", "My one"))),
            ("execute a", Some(("a", "a"))),
            ("execute \"a\"\"b\"", None),
            ("executed a", None),
            ("select 1", None),
            ("execute", None),
        ] {
            let found = executed(text.as_bytes());
            let found = found
                .as_ref()
                .map(|(place, name)| (&text[place.clone()], &**name));
            assert_eq!(found, name, "{text}");
        }
    }
}
