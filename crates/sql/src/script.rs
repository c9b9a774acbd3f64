//! Cuts texts of several writes into their statements.
//!
//! The PostgreSQL frontend uses this for simple queries, and reads each write as if it had been
//! sent by itself.

use std::ops::Range;

use crate::block::{self, BlockEffect};
use crate::lex::{Token, TokenKind};
use crate::text::Text;
use crate::tokens::Tokens;
use crate::words::Words;

/// The longest text that is cut, in bytes.
const MAX_SCRIPT: usize = 1 << 20;

/// The most writes of one text.
const MAX_WRITES: usize = 1_000;

/// The writes of a text that contains nothing but writes, and possibly a transaction block around
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteScript {
    /// The tags of BEGIN and COMMIT, if the text begins and ends with them.
    pub block: Option<[&'static str; 2]>,
    /// The range of each write in the text: all bytes between the semicolons around it.
    pub writes: Vec<Range<usize>>,
}

/// Cuts a text that consists of several writes, or of a transaction block of writes. `standard` is
/// the session's `standard_conforming_strings`. Returns `None` for any other text, one with more
/// than 1,000 writes, and one longer than 1 MiB.
pub fn write_script(text: &str, standard: bool) -> Option<WriteScript> {
    if text.len() > MAX_SCRIPT {
        return None;
    }
    Text::read(text, |text| cut(text, standard))
}

fn cut(text: Text<'_>, standard: bool) -> Option<WriteScript> {
    let tokens = Tokens::of(text, standard).ok()?;
    let text = text.as_str();
    let mut pieces = pieces(text, &tokens.list);
    let block = match pieces.as_slice() {
        [(_, first), .., (_, last)] if block::opens_plainly(Words::new(text, first)) => {
            let (_, begin) = block::read(Words::new(text, first))?;
            let (effect, commit) = block::read(Words::new(text, last))?;
            (effect == BlockEffect::Commits).then_some([begin, commit])
        }
        _ => None,
    };
    if block.is_some() {
        pieces.pop();
        pieces.remove(0);
    }
    let least = if block.is_some() { 1 } else { 2 };
    if !(least..=MAX_WRITES).contains(&pieces.len()) {
        return None;
    }
    let writes = pieces.into_iter().map(|(place, tokens)| {
        let words = Words::new(text, tokens);
        words.writes().then_some(place)
    });
    let writes = writes.collect::<Option<_>>()?;
    Some(WriteScript { block, writes })
}

/// Cuts a text at its semicolons. Leaves statements without tokens out.
fn pieces<'t>(text: &str, tokens: &'t [Token]) -> Vec<(Range<usize>, &'t [Token])> {
    let mut pieces = Vec::new();
    let (mut start, mut rest) = (0, tokens);
    loop {
        let end = rest.iter().position(|t| t.kind == TokenKind::Semicolon);
        let (piece, behind) = rest.split_at(end.unwrap_or(rest.len()));
        let semicolon = behind.first();
        if !piece.is_empty() {
            pieces.push((start..semicolon.map_or(text.len(), |t| t.start), piece));
        }
        let Some(semicolon) = semicolon else {
            return pieces;
        };
        start = semicolon.end;
        rest = behind.get(1..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> Option<(Option<[&'static str; 2]>, Vec<&str>)> {
        let script = write_script(text, true)?;
        let writes = script.writes.into_iter().map(|place| &text[place]);
        Some((script.block, writes.collect()))
    }

    #[test]
    fn writes_are_cut_at_semicolons() {
        let insert = "insert into t values (1)";
        for (text, block, writes) in [
            (
                "insert into t values (1);update t set v = ';' where id = 1",
                None,
                &[insert, "update t set v = ';' where id = 1"][..],
            ),
            (
                ";; /* ; */ insert into t values (1) -- ;\n; ;delete from t where v = $a$;$a$;",
                None,
                &[
                    " /* ; */ insert into t values (1) -- ;\n",
                    "delete from t where v = $a$;$a$",
                ],
            ),
            (
                "begin;insert into t values (1);commit",
                Some(["BEGIN", "COMMIT"]),
                &[insert],
            ),
            (
                "START TRANSACTION;insert into t values (1);insert into t values (1);END WORK; -- x",
                Some(["START TRANSACTION", "COMMIT"]),
                &[insert, insert],
            ),
        ] {
            assert_eq!(cut(text), Some((block, writes.to_vec())), "{text}");
        }
    }

    #[test]
    fn other_texts_are_not_cut() {
        for text in [
            "",
            ";",
            "insert into t values (1)",
            "insert into t values (1);;",
            "begin; commit",
            "begin; begin; commit",
            "begin; insert into t values (1)",
            "begin; insert into t values (1); rollback",
            "begin; insert into t values (1); commit and chain",
            "begin read write; insert into t values (1); commit",
            "begin isolation level serializable; insert into t values (1); commit",
            "begin; insert into t values (1); commit; insert into t values (2)",
            "insert into t values (1); begin; insert into t values (2); commit",
            "insert into t values (1); commit",
            "insert into t values (1); select 1",
            "create function f() begin atomic insert into t values (1); delete from t; end",
            "create rule r as on insert to t do (insert into u values (1); delete from u)",
            "insert into t values ('open); delete from t",
        ] {
            assert_eq!(cut(text), None, "{text}");
        }
        let many = |count| "delete from t;".repeat(count);
        assert_eq!(cut(&many(1_000)).unwrap().1.len(), 1_000);
        assert_eq!(cut(&many(1_001)), None);
    }

    #[test]
    fn a_backslash_escapes_as_the_session_says() {
        let text = r"delete from t where v = '\'; delete from t --';";
        assert_eq!(write_script(text, true).unwrap().writes.len(), 2);
        assert_eq!(write_script(text, false), None);
    }
}
