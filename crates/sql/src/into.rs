//! The meaning of INTO: INSERT INTO and MERGE INTO write rows, SELECT INTO makes a table.

use crate::lex::TokenKind;
use crate::words::Words;

/// The part of a statement that was passed, as far as it decides what an INTO means.
#[derive(Default)]
pub(crate) struct PassedPart {
    /// Open parentheses.
    depth: usize,
    /// True if a query begins outside of all parentheses.
    has_query: bool,
}

impl PassedPart {
    /// Notes a token of the statement.
    pub(crate) fn pass(&mut self, words: Words<'_>, at: usize) {
        match words.kind(at) {
            TokenKind::Open => self.depth += 1,
            TokenKind::Close => self.depth = self.depth.saturating_sub(1),
            TokenKind::Word if self.depth == 0 => {
                self.has_query |= words.any(at, &["select", "values", "table"]);
            }
            _ => {}
        }
    }

    /// Returns true if the INTO at a place belongs to INSERT or MERGE, and not to a SELECT INTO
    /// after a column called `insert` or `merge`. All tokens before it were passed.
    pub(crate) fn writes_into(&self, words: Words<'_>, at: usize) -> bool {
        if at == 0 || !words.any(at - 1, &["insert", "merge"]) {
            return false;
        }
        let is_wrapped = words.any(0, &["explain", "prepare"]);
        if at == 1 || words.kind(at - 2) == TokenKind::Open || is_wrapped {
            return true;
        }
        // After WITH, the statement itself stands outside of all parentheses.
        self.depth == 0 && !self.has_query && words.is(0, "with")
    }
}
