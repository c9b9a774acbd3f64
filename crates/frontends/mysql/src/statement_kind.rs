//! The facts about a text that decide how it is executed while its session uses the spool or a key.

/// The verbs of statements that write nothing.
const READING: [&str; 7] = [
    "desc", "describe", "explain", "select", "set", "show", "use",
];

/// The facts about a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StatementKind {
    /// True if the text may be an INSERT.
    pub(crate) is_insert: bool,
    /// True if the text writes nothing.
    pub(crate) only_reads: bool,
}

impl StatementKind {
    /// A text that was not read and may be of any kind.
    pub(crate) const UNKNOWN: Self = Self {
        is_insert: true,
        only_reads: false,
    };

    /// Returns the facts about a text, or its beginning.
    pub(crate) fn of(text: &str) -> Self {
        let Some(text) = without_comments(text) else {
            return Self::UNKNOWN;
        };
        let end = text.find(|char: char| !char.is_ascii_alphabetic());
        let verb = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
        let is = |word: &&str| verb.eq_ignore_ascii_case(word);
        let is_one = !text.trim_end().trim_end_matches(';').contains(';');
        Self {
            is_insert: ["insert", "replace"].iter().any(is),
            only_reads: is_one && READING.iter().any(is),
        }
    }
}

/// Returns a text without the comments at its beginning. `None` if nothing follows them, or the
/// server executes such a comment.
fn without_comments(text: &str) -> Option<&str> {
    let mut text = text.trim_start();
    loop {
        let behind = if let Some(comment) = text.strip_prefix("/*") {
            if comment.starts_with('!') || comment.starts_with("M!") {
                return None;
            }
            comment.split_once("*/")?.1
        } else if text.starts_with('#') || text.starts_with("--") {
            text.split_once('\n')?.1
        } else {
            return text
                .starts_with(|char: char| char.is_ascii_alphabetic())
                .then_some(text);
        };
        text = behind.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_known_by_its_first_word() {
        for (text, expected) in [
            ("insert into t values (1)", (true, false)),
            (" /* by */ -- x\n# y\nREPLACE t values (1)", (true, false)),
            ("update t set a = 1", (false, false)),
            ("begin", (false, false)),
            ("Select 1;", (false, true)),
            ("set names utf8mb4", (false, true)),
            ("select 1; delete from t", (false, false)),
            ("/*!50000 insert */ into t values (1)", (true, false)),
            ("(select 1)", (true, false)),
            ("", (true, false)),
        ] {
            let kind = StatementKind::of(text);
            assert_eq!((kind.is_insert, kind.only_reads), expected, "{text}");
        }
    }
}
