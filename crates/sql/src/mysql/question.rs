//! Questions about the previous statement: those that are answered after a joined write, and texts
//! that ask in another way.

use memchr::{memchr_iter, memchr2_iter};

use super::modes::Modes;
use super::reader::{Reader, unquote};
use super::reserved::is_reserved;
use crate::lex::TokenKind;
use crate::text::Text;

/// The longest text that may be a question, in bytes.
const MAX_QUESTION: usize = 256;

/// The value that a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// `SELECT LAST_INSERT_ID()`
    LastInsertId,
    /// `SELECT @@identity`
    Identity,
    /// `SELECT ROW_COUNT()`
    RowCount,
    /// `SELECT FOUND_ROWS()`
    FoundRows,
    /// `SELECT @@warning_count`
    WarningCount,
    /// `SELECT @@error_count`
    ErrorCount,
    /// `SHOW WARNINGS`, without the first `offset` rows, and at most `limit` rows.
    Warnings {
        /// The number of rows that are left out.
        offset: u64,
        /// The largest number of rows.
        limit: Option<u64>,
    },
    /// `SHOW ERRORS`, as [`Asked::Warnings`].
    Errors {
        /// The number of rows that are left out.
        offset: u64,
        /// The largest number of rows.
        limit: Option<u64>,
    },
    /// `SHOW COUNT(*) WARNINGS`
    CountWarnings,
    /// `SHOW COUNT(*) ERRORS`
    CountErrors,
}

impl Asked {
    /// Returns true for the questions that are SHOW statements.
    pub fn is_show(self) -> bool {
        matches!(
            self,
            Self::Warnings { .. } | Self::Errors { .. } | Self::CountWarnings | Self::CountErrors
        )
    }
}

/// A text that consists of one question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The value that is asked for.
    pub asked: Asked,
    /// The name of the column of the answer to a SELECT: the alias, or the expression as the
    /// client wrote it. Empty for SHOW.
    pub column: Box<str>,
}

/// Recognizes a question.
pub fn question(text: &str) -> Option<Question> {
    if text.len() > MAX_QUESTION {
        return None;
    }
    let reader = Text::read(text, |text| Reader::new(text, Modes::default()));
    let mut reader = reader.and_then(Reader::without_doubt).ok()?;
    let question = if reader.word("select") {
        select(&mut reader)
    } else if reader.word("show") {
        let asked = show(&mut reader)?;
        let column = "".into();
        Some(Question { asked, column })
    } else {
        None
    };
    question.filter(|_| reader.kind() == TokenKind::End)
}

fn select(reader: &mut Reader<'_>) -> Option<Question> {
    let from = reader.at;
    let is_variable = reader.is_operator_at(from, "@@") && reader.are_adjacent(from);
    reader.at += usize::from(is_variable);
    let name = reader.slice_at(reader.at).to_ascii_lowercase();
    let is_word = reader.kind() == TokenKind::Word;
    reader.at += 1;
    let asked = match (is_variable, &*name) {
        _ if !is_word => return None,
        (true, "identity") => Asked::Identity,
        (true, "warning_count") => Asked::WarningCount,
        (true, "error_count") => Asked::ErrorCount,
        (false, "last_insert_id") => Asked::LastInsertId,
        (false, "row_count") => Asked::RowCount,
        (false, "found_rows") => Asked::FoundRows,
        _ => return None,
    };
    let is_whole = is_variable || (reader.take(TokenKind::Open) && reader.take(TokenKind::Close));
    if !is_whole {
        return None;
    }
    let own = reader.text_of(from, reader.at);
    let column = match reader.kind() {
        TokenKind::End => own.into(),
        _ => alias(reader)?,
    };
    // A comment in the expression may become a part of the column's name.
    let is_plain = !own.contains(['/', '#', '-']);
    is_plain.then_some(Question { asked, column })
}

/// Reads a name for the column.
fn alias(reader: &mut Reader<'_>) -> Option<Box<str>> {
    reader.word("as");
    let slice = reader.slice_at(reader.at);
    let is_plain = !slice.contains('\\');
    let is_reserved = [true, false].into_iter().any(|is_mariadb| {
        let modes = Modes {
            is_mariadb,
            ..Modes::default()
        };
        is_reserved(slice, modes)
    });
    let name = match reader.kind() {
        TokenKind::Word if slice.is_ascii() && !is_reserved => slice.into(),
        TokenKind::Quoted | TokenKind::Text if is_plain => unquote(slice).into(),
        _ => return None,
    };
    reader.at += 1;
    Some(name)
}

fn show(reader: &mut Reader<'_>) -> Option<Asked> {
    if reader.word("count") {
        let is_all = reader.take(TokenKind::Open)
            && reader.is_operator_at(reader.at, "*")
            && reader.kind_at(reader.at + 1) == TokenKind::Close;
        reader.at += 2;
        let asks_for_warnings = reader.word("warnings");
        return match asks_for_warnings || reader.word("errors") {
            true if is_all && asks_for_warnings => Some(Asked::CountWarnings),
            true if is_all => Some(Asked::CountErrors),
            _ => None,
        };
    }
    let asks_for_warnings = reader.word("warnings");
    if !asks_for_warnings && !reader.word("errors") {
        return None;
    }
    let (offset, limit) = limit(reader)?;
    Some(match asks_for_warnings {
        true => Asked::Warnings { offset, limit },
        false => Asked::Errors { offset, limit },
    })
}

/// Reads `LIMIT n`, `LIMIT offset, n` or `LIMIT n OFFSET offset`.
fn limit(reader: &mut Reader<'_>) -> Option<(u64, Option<u64>)> {
    if !reader.word("limit") {
        return Some((0, None));
    }
    let first = number(reader)?;
    if reader.take(TokenKind::Comma) {
        return Some((first, Some(number(reader)?)));
    }
    if reader.word("offset") {
        return Some((number(reader)?, Some(first)));
    }
    Some((0, Some(first)))
}

fn number(reader: &mut Reader<'_>) -> Option<u64> {
    let slice = reader.slice_at(reader.at);
    reader.take(TokenKind::Integer).then_some(())?;
    slice.parse().ok()
}

/// Returns true if a text may ask, anywhere, for the number of rows, warnings or errors of the
/// previous statement.
pub fn mentions_row_count(text: &str) -> bool {
    let counts = ["row_count", "found_rows", "warning_count", "error_count"];
    let word = "diagnostics";
    // G is the rarest of these letters in texts.
    let mut letters = memchr2_iter(b'g', b'G', text.as_bytes());
    let is_there = |at: usize| {
        at.checked_sub(3)
            .is_some_and(|start| is_word(text, start, word))
    };
    has_any(text, &counts) || letters.any(is_there)
}

/// Returns true if a text may ask, anywhere, for the id that the previous statement generated.
pub fn mentions_insert_id(text: &str) -> bool {
    if has_any(text, &["last_insert_id"]) {
        return true;
    }
    let mut signs = memchr_iter(b'@', text.as_bytes());
    signs.any(|at| {
        let rest = text.get(at + 1..).unwrap_or_default();
        begins_with(rest, "identity")
            || begins_with(rest, "session.identity")
            || begins_with(rest, "local.identity")
    })
}

/// Returns true if a text begins with a word, in any case.
fn begins_with(text: &str, word: &str) -> bool {
    text.get(..word.len())
        .is_some_and(|found| found.eq_ignore_ascii_case(word))
}

/// Returns true if a text has one of these words, which contain an underscore.
fn has_any(text: &str, words: &[&str]) -> bool {
    memchr_iter(b'_', text.as_bytes()).any(|at| {
        words.iter().any(|word| {
            let start = word.find('_').and_then(|before| at.checked_sub(before));
            start.is_some_and(|start| is_word(text, start, word))
        })
    })
}

/// Returns true if a word begins at a position, and is not a part of a longer one.
fn is_word(text: &str, start: usize, word: &str) -> bool {
    let continues = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    let bytes = text.as_bytes();
    let end = start + word.len();
    let found = bytes.get(start..end);
    let before = start.checked_sub(1).and_then(|before| bytes.get(before));
    found.is_some_and(|found| found.eq_ignore_ascii_case(word.as_bytes()))
        && !before.is_some_and(continues)
        && !bytes.get(end).is_some_and(continues)
}

#[cfg(test)]
mod tests;
